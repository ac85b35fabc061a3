//! An open-loop load: requests come when the schedule says so.
//!
//! Each takes an idle connection, or makes one, which its patience pays for. A caller whose patience ends hangs up: it says
//! Terminate (or nothing) and closes. All of it is carried by one thread, which reports how late it was itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::figures::{Outcome, Record};
use super::schedule::Schedule;
use super::sessions::Sessions;
use crate::stall::Bye;
use crate::wire::{Address, ConnectOptions, Connection, Error, Reply, frame};

pub use super::schedule::Phase;

/// Requests under way at once; further ones are not sent, and the run counts as not measured.
pub const MOST_IN_FLIGHT: usize = 4_000;
/// Requests of a run; the load stops there, and the run counts as not measured.
pub const MOST_REQUESTS: usize = 2_000_000;
/// Kinds of errors that are told apart.
const MOST_ERROR_TEXTS: usize = 50;
/// Longest error text that is kept, in characters.
const MOST_ERROR_CHARACTERS: usize = 100;
/// How long one may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);
/// After a refusal a caller comes back after up to that long.
const REFUSED_REST_MS: u64 = 200;
/// At the end, requests under way have so much longer than their patience.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The pooler.
    pub pooler: Address,
    /// Role.
    pub user: String,
    /// Each request goes to one of them, by lot.
    pub databases: Vec<String>,
    /// Startup parameters.
    pub parameters: Vec<(String, String)>,
    /// What is asked.
    pub query: String,
    /// A caller hangs up when it has waited so long since the moment that was meant.
    pub patience: Duration,
    /// When, and how many.
    pub phases: Vec<Phase>,
    /// How often a request that failed is tried again: at once after giving up, after up to 200 ms after an error.
    pub retries: u32,
    /// What a caller that gives up sends.
    pub bye: Bye,
    /// Share of callers that leave without a word while they wait for the answer.
    pub dying_share: f64,
    /// What is random follows from it.
    pub seed: u64,
}

/// What a load saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Every request, in the order in which they ended.
    pub records: Vec<Record>,
    /// Errors by their text.
    pub error_texts: BTreeMap<String, u64>,
    /// Connections that were made.
    pub connects: u64,
    /// Requests that were not sent, since too many were under way already.
    pub not_sent: u64,
}

/// A load that runs, on a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    options: LoadOptions,
    connect: Vec<ConnectOptions>,
    query: Vec<u8>,
    sessions: Sessions,
    began: Instant,
    stop: AtomicBool,
    seen: Mutex<Seen>,
}

/// One request as it was meant.
#[derive(Clone, Copy)]
struct Request {
    meant: Instant,
    database: usize,
    /// The caller leaves so long after it has asked.
    leaves_after: Option<Duration>,
    retry: u32,
}

impl Load {
    /// Starts it now.
    ///
    /// # Errors
    /// No thread or runtime.
    pub fn start(options: LoadOptions) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connect = |database: &String| {
            let mut connect = ConnectOptions::new(options.pooler.clone(), &options.user, database);
            connect.parameters.clone_from(&options.parameters);
            connect
        };
        let shared = Arc::new(Shared {
            connect: options.databases.iter().map(connect).collect(),
            query: frame::query(&options.query),
            sessions: Sessions::new(options.databases.len()),
            began: Instant::now(),
            stop: AtomicBool::new(false),
            seen: Mutex::default(),
            options,
        });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("load".to_owned())
            .spawn(move || runtime.block_on(dispatch(&own)))
            .context("no thread for the load")?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Since its beginning.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.began.elapsed()
    }

    /// Looks at what has ended so far.
    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.shared.lock())
    }

    /// No further request is made; those under way are waited for. Returns all that was seen.
    ///
    /// # Errors
    /// Its thread panicked.
    pub fn finish(mut self) -> anyhow::Result<Seen> {
        self.join()?;
        Ok(std::mem::take(&mut self.shared.lock()))
    }

    fn join(&mut self) -> anyhow::Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| anyhow!("the load's thread panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // A panic of that thread has been printed by its own hook.
        let _ = self.join();
    }
}

/// Sends each request at its time, until it is told to stop.
async fn dispatch(shared: &Arc<Shared>) {
    let options = &shared.options;
    let mut random = fastrand::Rng::with_seed(options.seed ^ 0x10AD);
    let mut requests = JoinSet::new();
    for due in Schedule::new(&options.phases, options.seed).take(MOST_REQUESTS) {
        let meant = shared.began + due;
        // Awake often enough to hear that it is over.
        while !shared.is_over() && meant > Instant::now() {
            sleep_until(meant.min(Instant::now() + Duration::from_millis(50))).await;
        }
        if shared.is_over() {
            break;
        }
        let database = random.usize(..options.databases.len().max(1));
        let dies = random.f64() < options.dying_share;
        let leaves_after = dies.then(|| options.patience.mul_f64(random.f64() * 0.2));
        while requests.try_join_next().is_some() {}
        if requests.len() >= MOST_IN_FLIGHT {
            shared.lock().not_sent += 1;
            continue;
        }
        let (shared, retry) = (Arc::clone(shared), 0);
        requests.spawn(async move { shared.request(Request { meant, database, leaves_after, retry }).await });
        // Where the schedule is behind, what is under way must move all the same.
        tokio::task::yield_now().await;
    }
    let limit = options.patience + END_LIMIT;
    // Whoever is still under way then is dropped, and so hangs up.
    let _ = timeout(limit, async { while requests.join_next().await.is_some() {} }).await;
}

impl Shared {
    /// One request, and what is tried again for it.
    async fn request(&self, mut request: Request) {
        loop {
            let outcome = self.attempt(request).await;
            let tried_again = match outcome {
                Outcome::Good | Outcome::Died => false,
                _ => request.retry < self.options.retries && !self.is_over(),
            };
            if !tried_again {
                return;
            }
            if outcome != Outcome::GaveUp {
                sleep(Duration::from_millis(fastrand::u64(..=REFUSED_REST_MS))).await;
            }
            request = Request { meant: Instant::now(), retry: request.retry + 1, ..request };
        }
    }

    async fn attempt(&self, request: Request) -> Outcome {
        let late = request.meant.elapsed();
        let mut connection = self.sessions.take(request.database);
        let ask = self.ask(request.database, &mut connection);
        let give_up = request.meant + self.options.patience;
        let leave = request.leaves_after.map(|after| Instant::now() + after);
        let answer = timeout_at(leave.map_or(give_up, |leave| leave.min(give_up)), ask).await;
        let outcome = match &answer {
            Ok(Ok(reply)) if reply.errors.is_empty() => Outcome::Good,
            Ok(Ok(_)) => Outcome::Refused,
            Ok(Err(_)) => Outcome::Broken,
            Err(_) if leave.is_some_and(|leave| leave < give_up) => Outcome::Died,
            Err(_) => Outcome::GaveUp,
        };
        let took = request.meant.elapsed();
        // An answer that came together with the end of the patience is too late.
        let is_late = outcome == Outcome::Good && took > self.options.patience;
        let outcome = if is_late { Outcome::GaveUp } else { outcome };
        {
            let mut seen = self.lock();
            let (at, again) = (request.meant - self.began, request.retry > 0);
            let database = u16::try_from(request.database).unwrap_or(u16::MAX);
            if seen.records.len() < MOST_REQUESTS {
                seen.records.push(Record { at, late, took, database, again, outcome });
            }
            match answer {
                Ok(Ok(reply)) => {
                    reply.errors.first().into_iter().for_each(|error| seen.note(&error.to_string()));
                }
                Ok(Err(error)) => seen.note(&error.to_string()),
                Err(_) => {}
            }
        }
        match (outcome, connection) {
            (Outcome::Good | Outcome::Refused, Some(connection)) => {
                self.sessions.put(request.database, connection);
            }
            (Outcome::GaveUp, Some(connection)) if self.options.bye == Bye::Terminate => {
                // It leaves either way.
                let _ = timeout(GOODBYE, connection.terminate()).await;
            }
            _ => {}
        }
        outcome
    }

    /// The connection stays with the caller, who may have to say goodbye on it.
    async fn ask(&self, database: usize, connection: &mut Option<Connection>) -> Result<Reply, Error> {
        if connection.is_none() {
            let options = &self.connect[database];
            let fresh = connection.insert(Connection::open(&options.address, None).await?);
            fresh.log_in(options).await?;
            self.lock().connects += 1;
        }
        let Some(connection) = connection else {
            return Err(Error::Protocol("no connection".to_owned()));
        };
        connection.send(&self.query).await?;
        connection.read_reply().await
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // Each record is whole, so a panic elsewhere spoils nothing.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn note(&mut self, text: &str) {
        let mut text: String = text.chars().take(MOST_ERROR_CHARACTERS).collect();
        if self.error_texts.len() >= MOST_ERROR_TEXTS && !self.error_texts.contains_key(&text) {
            "other".clone_into(&mut text);
        }
        *self.error_texts.entry(text).or_default() += 1;
    }
}
