//! Clients that ask and ask, and count what they hear.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drill::wire::{ConnectOptions, Connection, Error, ServerError};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Rest after an error, before the next attempt.
const BACKOFF: Duration = Duration::from_millis(50);

/// The load of most tests: each question keeps a server busy for 10 ms, and nobody gives up.
pub(crate) fn busy_load(options: &ConnectOptions, clients: usize) -> Load {
    Load::start(options, clients, Duration::from_millis(10), Duration::from_secs(60))
}

/// What the clients have heard so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) answers: u64,
    /// Answers that belong to somebody else.
    pub(crate) foreign: u64,
    /// Clients that waited longer than their patience.
    pub(crate) gave_up: u64,
    /// Ends without a word.
    pub(crate) silent_ends: BTreeMap<String, u64>,
    /// What they were told, by SQLSTATE, with one example.
    pub(crate) errors: BTreeMap<String, (u64, ServerError)>,
}

/// Clients under way. Dropping it ends them where they stand.
pub(crate) struct Load {
    heard: Arc<Mutex<Heard>>,
    stop: tokio::sync::watch::Sender<bool>,
    clients: JoinSet<()>,
}

impl Load {
    /// Each client asks `select ID from pg_sleep(busy)` without a pause and checks that the answer is its own. With as
    /// many servers as `pool`, they make `pool / busy` answers a second, which leaves the processors room.
    pub(crate) fn start(
        options: &ConnectOptions,
        clients: usize,
        busy: Duration,
        patience: Duration,
    ) -> Self {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            let (options, heard, stopped) = (options.clone(), Arc::clone(&heard), stopped.clone());
            let sql = format!("select {number} from pg_sleep({})", busy.as_secs_f64());
            tasks.spawn(async move {
                let client = Client { options, sql, number: number.to_string(), patience, heard, stopped };
                client.run().await;
            });
        }
        Self { heard, stop, clients: tasks }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }

    /// Answers a second, over a while from now.
    pub(crate) async fn rate_over(&self, span: Duration) -> f64 {
        let (before, began) = (self.heard().answers, Instant::now());
        sleep(span).await;
        (self.heard().answers - before) as f64 / began.elapsed().as_secs_f64()
    }

    /// Waits until the rate of half a second is at least `share` of `rate`; tells how long that took.
    pub(crate) async fn recovery(&self, rate: f64, share: f64, limit: Duration) -> Duration {
        let began = Instant::now();
        let mut seen = Vec::new();
        loop {
            let now = self.rate_over(Duration::from_millis(500)).await;
            seen.push(now as u64);
            if now >= share * rate {
                return began.elapsed().saturating_sub(Duration::from_millis(500));
            }
            assert!(began.elapsed() < limit, "{rate} answers a second before, after {limit:?} only {seen:?}");
        }
    }

    /// Lets every client finish its question and leave.
    pub(crate) async fn finish(mut self) -> Heard {
        self.stop.send_replace(true);
        let all = async { while self.clients.join_next().await.is_some() {} };
        timeout(Duration::from_secs(30), all).await.expect("every client ends");
        self.heard()
    }
}

impl Heard {
    /// Nobody got a foreign answer, nobody was cut off without a word, and only these SQLSTATEs were told.
    pub(crate) fn assert_clear(&self, allowed: &[&str]) {
        assert_eq!(self.foreign, 0, "foreign answers: {self:?}");
        assert!(self.silent_ends.is_empty(), "ends without a word: {self:?}");
        for (code, (_, example)) in &self.errors {
            assert!(
                allowed.contains(&code.as_str()),
                "not expected: {example} (allowed: {allowed:?})\n{self:?}"
            );
            assert!(!example.message.is_empty(), "no text: {example:?}");
        }
    }

    pub(crate) fn error_count(&self) -> u64 {
        self.errors.values().map(|(count, _)| count).sum()
    }
}

struct Client {
    options: ConnectOptions,
    sql: String,
    number: String,
    patience: Duration,
    heard: Arc<Mutex<Heard>>,
    stopped: tokio::sync::watch::Receiver<bool>,
}

impl Client {
    async fn run(&self) {
        while !*self.stopped.borrow() {
            match timeout(self.patience, Connection::connect(&self.options)).await {
                Err(_) => self.note(|heard| heard.gave_up += 1),
                Ok(Err(error)) => self.failed(&error).await,
                Ok(Ok(connection)) => self.session(connection).await,
            }
        }
    }

    async fn session(&self, mut connection: Connection) {
        while !*self.stopped.borrow() {
            match timeout(self.patience, connection.query(&self.sql)).await {
                Err(_) => {
                    self.note(|heard| heard.gave_up += 1);
                    return;
                }
                Ok(Err(error)) => return self.failed(&error).await,
                Ok(Ok(reply)) => match reply.error() {
                    Some(error) => self.failed(&Error::Server(Box::new(error.clone()))).await,
                    None if reply.value() == Some(&self.number) => self.note(|heard| heard.answers += 1),
                    None => self.note(|heard| heard.foreign += 1),
                },
            }
        }
        // It leaves either way.
        let _ = connection.terminate().await;
    }

    async fn failed(&self, error: &Error) {
        self.note(|heard| match error.server() {
            Some(told) => {
                heard.errors.entry(told.code.clone()).or_insert_with(|| (0, told.clone())).0 += 1;
            }
            None => *heard.silent_ends.entry(error.to_string()).or_default() += 1,
        });
        sleep(BACKOFF).await;
    }

    fn note(&self, what: impl FnOnce(&mut Heard)) {
        what(&mut self.heard.lock().unwrap());
    }
}
