//! The clients of the scenario, and what they count.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{Bye, StallOptions};
use crate::wire::{ConnectOptions, Connection, Error, frame};

/// Different error texts that are told apart; further ones are counted as "other".
const MAX_ERROR_TEXTS: usize = 100;

/// Longest error text that is kept, in characters.
const MAX_ERROR_CHARACTERS: usize = 80;

/// Latencies that are kept; the scenario makes far fewer.
const MAX_LATENCIES: usize = 10_000_000;

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) good: u64,
    pub(super) gave_up: u64,
    pub(super) errors: u64,
    pub(super) connects: u64,
}

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) seconds: Vec<Counts>,
    pub(super) error_texts: BTreeMap<String, u64>,
    /// When a query began (since the start), and how long its answer took.
    pub(super) latencies: Vec<(Duration, Duration)>,
}

/// The count that all clients share.
#[derive(Debug)]
pub(super) struct Tally {
    start: Instant,
    record: Mutex<Record>,
}

impl Tally {
    pub(super) fn new(start: Instant) -> Self {
        Self { start, record: Mutex::new(Record::default()) }
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn good_in(&self, second: usize) -> u64 {
        self.lock().seconds.get(second).map_or(0, |counts| counts.good)
    }

    pub(super) fn take(&self) -> Record {
        std::mem::take(&mut self.lock())
    }

    fn count(&self, what: impl FnOnce(&mut Counts)) {
        let second = usize::try_from(self.now().as_secs()).unwrap_or(usize::MAX);
        let mut record = self.lock();
        if record.seconds.len() <= second {
            record.seconds.resize(second + 1, Counts::default());
        }
        what(&mut record.seconds[second]);
    }

    fn answered(&self, began: Instant) {
        self.count(|counts| counts.good += 1);
        let mut record = self.lock();
        if record.latencies.len() < MAX_LATENCIES {
            record.latencies.push((began - self.start, began.elapsed()));
        }
    }

    fn failed(&self, text: &str) {
        self.count(|counts| counts.errors += 1);
        let mut record = self.lock();
        let mut text: String = text.chars().take(MAX_ERROR_CHARACTERS).collect();
        if record.error_texts.len() >= MAX_ERROR_TEXTS && !record.error_texts.contains_key(&text) {
            "other".clone_into(&mut text);
        }
        *record.error_texts.entry(text).or_default() += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        // Counts are whole after every statement, so a panic elsewhere spoils nothing.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How one connection of a client ended.
enum End {
    GaveUp(Option<Connection>),
    Failed(String),
    /// It leaves after each query, as it was told to.
    Leaves(Connection),
}

#[derive(Debug)]
pub(super) struct Load {
    options: StallOptions,
    connect: ConnectOptions,
    query: Vec<u8>,
    tally: Arc<Tally>,
}

impl Load {
    pub(super) fn new(options: StallOptions, tally: Arc<Tally>) -> Self {
        let (connect, query) = (options.connect_options(), frame::query(&options.query));
        Self { options, connect, query, tally }
    }

    /// One client, until its task is ended from outside.
    pub(super) async fn client(self: Arc<Self>, number: usize) {
        let options = &self.options;
        sleep(options.ramp.mul_f64(number as f64 / options.clients.max(1) as f64)).await;
        loop {
            match self.session().await {
                End::GaveUp(connection) => {
                    self.tally.count(|counts| counts.gave_up += 1);
                    if let (Some(connection), Bye::Terminate) = (connection, options.bye) {
                        // It leaves either way.
                        let _ = timeout(options.patience, connection.terminate()).await;
                    }
                }
                End::Failed(text) => {
                    self.tally.failed(&text);
                    sleep(options.backoff).await;
                }
                End::Leaves(connection) => {
                    let _ = timeout(options.patience, connection.terminate()).await;
                }
            }
        }
    }

    /// One connection from beginning to end.
    async fn session(&self) -> End {
        let patience = self.options.patience;
        let began = Instant::now();
        // Two steps under one deadline, so that who gives up during login can still say Terminate.
        let mut connection = match timeout(patience, Connection::open(&self.connect.address, None)).await {
            Err(_) => return End::GaveUp(None),
            Ok(Err(error)) => return End::Failed(describe(&error)),
            Ok(Ok(connection)) => connection,
        };
        match timeout(patience.saturating_sub(began.elapsed()), connection.log_in(&self.connect)).await {
            Err(_) => return End::GaveUp(Some(connection)),
            Ok(Err(error)) => return End::Failed(describe(&error)),
            Ok(Ok(())) => self.tally.count(|counts| counts.connects += 1),
        }
        loop {
            let began = Instant::now();
            match timeout(patience, self.ask(&mut connection)).await {
                Err(_) => return End::GaveUp(Some(connection)),
                Ok(Err(text)) => return End::Failed(text),
                Ok(Ok(())) => self.tally.answered(began),
            }
            if !self.options.think.is_zero() {
                sleep(self.options.think).await;
            }
            if self.options.reconnect {
                return End::Leaves(connection);
            }
        }
    }

    async fn ask(&self, connection: &mut Connection) -> Result<(), String> {
        let exchange = async {
            connection.send(&self.query).await?;
            connection.read_reply().await
        };
        match exchange.await.and_then(crate::wire::Reply::into_result) {
            Ok(_) => Ok(()),
            Err(error) => Err(describe(&error)),
        }
    }
}

/// The server's own words where there are some: they are what an operator would see.
fn describe(error: &Error) -> String {
    match (error.server(), error) {
        (Some(server), _) => server.message.clone(),
        (None, Error::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
            "connection reset".to_owned()
        }
        (None, error) => error.to_string(),
    }
}
