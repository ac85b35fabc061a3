//! A client of PostgreSQL itself and one of the pooler that say the same: what is right is what PostgreSQL answers.

use drill::wire::{Connection, Message};
use tokio::time::{Duration, sleep, timeout};

use crate::compare::{self, Transcript};
use crate::support::{House, PATIENCE, within};

/// Nothing more may come within this after the answer that a test names.
const SILENCE: Duration = Duration::from_millis(30);

/// The two clients.
pub(crate) struct Twins {
    direct: Connection,
    pooled: Connection,
}

impl Twins {
    pub(crate) async fn connect(house: &House) -> Self {
        Self { direct: house.direct().await, pooled: house.client().await }
    }

    /// Both send these messages, in one write, and read the answer: `kinds` are the types of its messages. Each byte
    /// has to be the same. Gives PostgreSQL's answer.
    pub(crate) async fn ask(&mut self, messages: &[Vec<u8>], kinds: &str) -> Vec<Message> {
        let bytes = messages.concat();
        let direct = exchange(&mut self.direct, &bytes, kinds).await;
        let pooled = exchange(&mut self.pooled, &bytes, kinds).await;
        let told: String = direct.iter().map(|message| char::from(message.kind)).collect();
        assert_eq!(told, kinds, "PostgreSQL answers {direct:?}");
        let transcript =
            |answer: &[Message]| Transcript { parts: vec![Vec::new(), answer.to_vec()], trouble: None };
        if let Some(difference) = compare::difference(&transcript(&direct), &transcript(&pooled)) {
            panic!("the pooler answers otherwise than PostgreSQL: {difference}");
        }
        direct
    }

    /// Both have nothing more to read.
    pub(crate) async fn assert_silent(&mut self) {
        sleep(SILENCE).await;
        for client in [&mut self.direct, &mut self.pooled] {
            let more = timeout(SILENCE, client.read_message()).await;
            assert!(more.is_err(), "more than was asked for: {more:?}");
        }
    }
}

/// Sends, and reads as many messages as are expected.
async fn exchange(client: &mut Connection, bytes: &[u8], kinds: &str) -> Vec<Message> {
    client.send(bytes).await.unwrap();
    let mut answer = Vec::new();
    while answer.len() < kinds.len() {
        let what = format!("{kinds}, of which there is {answer:?}");
        answer.push(within(PATIENCE, &what, client.read_message()).await.unwrap());
    }
    answer
}
