//! Plays a script against one side and keeps what came back.

use std::time::Duration;

use drill::wire::{ConnectOptions, Connection, Error, Message, frame};
use tokio::time::{sleep, timeout};

use crate::compare::Transcript;
use crate::script::{Ending, Script, Turn, Way};

/// How long PostgreSQL itself has to be silent until its answer to a turn without an end of its own (a Flush, the
/// start of a COPY) is taken for whole. If it is not, less is awaited of the pooler there, and more later.
const QUIET: Duration = Duration::from_millis(4);

/// How long any answer may take.
const LIMIT: Duration = Duration::from_secs(15);

/// Rest between two writes.
const PIECE_REST: Duration = Duration::from_millis(1);

/// The answer to [`last_word`].
const LAST_VALUE: &str = "nothing is owed";

/// What decides that the answer to a turn is whole.
pub(crate) enum Pace<'a> {
    /// PostgreSQL itself: it is, when it has been quiet.
    Listen,
    /// The pooler: when as much has come as from PostgreSQL.
    Follow(&'a Transcript),
}

/// Plays a script.
pub(crate) async fn play(options: &ConnectOptions, script: &Script, pace: &Pace<'_>) -> Transcript {
    let mut transcript = Transcript::default();
    if let Err(trouble) = live(options, script, pace, &mut transcript).await {
        transcript.trouble = Some(trouble);
    }
    transcript
}

async fn live(
    options: &ConnectOptions,
    script: &Script,
    pace: &Pace<'_>,
    transcript: &mut Transcript,
) -> Result<(), String> {
    let mut options = options.clone();
    options.parameters.extend(script.parameters.iter().cloned());
    let mut connection = limited("the socket", Connection::open(&options.address, None)).await?;
    limited("start-up", connection.send(&options.startup_frame())).await?;
    transcript.parts.push(Vec::new());
    until_last(&mut connection, transcript, |message| message.kind == b'Z').await?;
    for (number, turn) in script.turns.iter().enumerate() {
        transcript.parts.push(Vec::new());
        write(&mut connection, turn).await?;
        match pace {
            Pace::Listen => listen(&mut connection, turn, transcript).await?,
            Pace::Follow(other) => {
                let wanted = progress(other.parts.iter().take(number + 2).flatten());
                while !is_there(transcript, wanted) {
                    let message = limited("the next message", connection.read_message()).await?;
                    keep(transcript, message);
                }
            }
        }
    }
    match &script.ending {
        Ending::InStep => {
            transcript.parts.push(Vec::new());
            limited("the last word", connection.send(&last_word())).await?;
            let mut seen = false;
            let last = |message: &Message| {
                seen |= message.kind == b'D' && message.body.ends_with(LAST_VALUE.as_bytes());
                seen && message.kind == b'Z'
            };
            until_last(&mut connection, transcript, last).await?;
            limited("goodbye", connection.terminate()).await
        }
        Ending::Death { turn, bytes, way } => {
            let whole = turn.bytes();
            limited("its last bytes", connection.send(&whole[..whole.len().min(*bytes)])).await?;
            match way {
                Way::Reset => connection.abort().map_err(|error| error.to_string()),
                Way::End => Ok(()),
                Way::Terminate => limited("goodbye", connection.terminate()).await,
            }
        }
    }
}

/// In whatever state the session is, this ends a COPY, ends a batch, and asks a question.
fn last_word() -> Vec<u8> {
    let ask = format!("select '{LAST_VALUE}'");
    // A transaction that has failed would refuse the question.
    [frame::copy_fail("the end"), frame::sync(), frame::query("rollback"), frame::query(&ask)].concat()
}

async fn write(connection: &mut Connection, turn: &Turn) -> Result<(), String> {
    for (number, piece) in turn.pieces().iter().enumerate() {
        if number > 0 {
            sleep(PIECE_REST).await;
        }
        limited("its messages", connection.send(piece)).await?;
    }
    Ok(())
}

/// How many ReadyForQuery there are, and how many messages behind the last of them.
fn progress<'a>(messages: impl Iterator<Item = &'a Message>) -> (usize, usize) {
    messages.fold((0, 0), |(readies, behind), message| match message.kind {
        b'Z' => (readies + 1, 0),
        _ => (readies, behind + 1),
    })
}

/// Whether as much has come as is wanted. Behind an error nothing more does before the next ReadyForQuery.
fn is_there(transcript: &Transcript, wanted: (usize, usize)) -> bool {
    let seen = progress(transcript.parts.iter().flatten());
    let failed = transcript.parts.iter().flatten().next_back().is_some_and(|last| last.kind == b'E');
    seen >= wanted || seen.0 == wanted.0 && failed
}

/// Reads what PostgreSQL has to say to a turn.
async fn listen(connection: &mut Connection, turn: &Turn, transcript: &mut Transcript) -> Result<(), String> {
    let asked = turn.steps.iter().filter(|step| step.asks_ready()).count();
    let ends = turn.steps.last().is_some_and(|step| step.asks_ready());
    let mut ready = 0;
    while !(ends && ready >= asked) {
        match timeout(QUIET, connection.read_message()).await {
            Ok(Ok(message)) => {
                ready += usize::from(message.kind == b'Z');
                keep(transcript, message);
            }
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

async fn until_last(
    connection: &mut Connection,
    transcript: &mut Transcript,
    mut last: impl FnMut(&Message) -> bool,
) -> Result<(), String> {
    loop {
        let message = limited("the next message", connection.read_message()).await?;
        let is_last = last(&message);
        keep(transcript, message);
        if is_last {
            return Ok(());
        }
    }
}

fn keep(transcript: &mut Transcript, message: Message) {
    if let Some(part) = transcript.parts.last_mut() {
        part.push(message);
    }
}

async fn limited<T>(what: &str, work: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match timeout(LIMIT, work).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err(format!("{what}: nothing within {LIMIT:?}")),
    }
}
