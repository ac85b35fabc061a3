//! The runs: preflight, try, rest, try again.

use std::net::SocketAddr;
use std::time::Duration;

use overload::Backoff;
use serde::Serialize;
use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use crate::names::concurrent_index;
use crate::plan::{Plan, Unit};
use crate::pooler;
use crate::preflight::{Blocker, blockers};

/// So often a statement may be cancelled by others before that is taken as a no.
pub const MAX_CANCELLED: u32 = 5;
/// Rest between two looks at what is in the way.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The first rest after a try that did not get its lock, and the longest.
const FIRST_REST: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(10);
/// `lock_timeout` of what runs in no transaction: its waits keep nobody from reading or writing.
const CONCURRENT_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Longest wait for one lock, and so longest time that others stand behind it; at least 1 ms.
    pub lock_timeout: Duration,
    /// The sum of such waits, after which it is given up.
    pub blocked_budget: Duration,
    /// Everything together, rests too.
    pub time_limit: Duration,
    /// Transactions on the tables concerned that are older are waited for, before anything is tried.
    pub oldest: Duration,
    /// Give up at once where one is in the way.
    pub refuse_if_blocked: bool,
    /// A pooler's metrics page, which is asked for its waiters.
    pub pooler: Option<SocketAddr>,
    /// With more clients waiting there, nothing is tried, and what runs is cancelled.
    pub most_waiters: u32,
    /// Only say what would be done, and who is in the way now.
    pub dry_run: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lock_timeout: Duration::from_millis(200),
            blocked_budget: Duration::from_secs(20),
            time_limit: Duration::from_secs(600),
            oldest: Duration::from_secs(2),
            refuse_if_blocked: false,
            pooler: None,
            most_waiters: 10,
            dry_run: false,
        }
    }
}

/// What happens now.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A unit begins: its number, of so many, and its first line.
    Unit(usize, usize, usize),
    /// Somebody is in the way; it is waited for.
    Blocked(Blocker),
    /// Clients wait at the pooler, so many.
    PoolerBusy(u32),
    /// A try did not get its lock, or was cancelled; the next comes after a rest.
    Resting(String, Duration),
    /// An invalid index of an earlier try is dropped.
    DroppingLeftover(String),
    /// A unit is done.
    Done(usize),
}

/// What was done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Units of the file.
    pub units: usize,
    /// Those that are done.
    pub done: usize,
    /// Tries.
    pub tries: u32,
    /// How long others may have stood behind it, ms.
    pub blocked_ms: u64,
    /// Who was in the way when it was last looked.
    pub blockers: Vec<Blocker>,
    /// Invalid indexes that were dropped.
    pub leftovers_dropped: Vec<String>,
    /// It was a dry run.
    pub dry_run: bool,
}

/// Why a migration is not done. A unit is done whole or not at all: it is safe to run what is left.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// Logging in, or the connection.
    #[error("the database cannot be reached: {0}")]
    Connection(#[source] tokio_postgres::Error),
    /// The database says no: trying again is of no use before something has changed.
    #[error("the unit that starts in line {line} failed, and was rolled back: {text}")]
    Statement {
        /// Where the unit starts.
        line: usize,
        /// The database's words.
        text: String,
    },
    /// Somebody was in the way for too long; later it may work.
    #[error("given up at the unit that starts in line {line}: {reason}")]
    GivenUp {
        /// Where the unit starts.
        line: usize,
        /// What ran out.
        reason: String,
    },
    /// A time of nothing would be no timeout at all.
    #[error("lock_timeout must be at least 1 ms")]
    NoTimeout,
}

impl MigrateError {
    /// Whether the same command may succeed later.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::GivenUp { .. })
    }
}

/// Runs a plan. What has been done so far is in `report` also when it fails.
///
/// # Errors
/// [`MigrateError`].
pub async fn run(
    config: &Config,
    plan: &Plan,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), MigrateError> {
    if options.lock_timeout < Duration::from_millis(1) {
        return Err(MigrateError::NoTimeout);
    }
    let (client, connection) = config.connect(NoTls).await.map_err(MigrateError::Connection)?;
    // Its end is seen by the client's next call.
    let driver = tokio::spawn(connection);
    let mut runner =
        Runner { client, options, report, progress, ends_at: Instant::now() + options.time_limit };
    runner.report.units = plan.units.len();
    runner.report.dry_run = options.dry_run;
    let result = runner.run(plan).await;
    drop(runner);
    drop(driver.await);
    result
}

struct Runner<'a> {
    client: Client,
    options: &'a Options,
    report: &'a mut Report,
    progress: &'a mut dyn FnMut(Progress),
    ends_at: Instant,
}

impl Runner<'_> {
    async fn run(&mut self, plan: &Plan) -> Result<(), MigrateError> {
        for (at, unit) in plan.units.iter().enumerate() {
            (self.progress)(Progress::Unit(at + 1, plan.units.len(), unit.line));
            if self.options.dry_run {
                let found = self.blockers(unit).await?;
                self.report.blockers.extend(found);
                continue;
            }
            self.unit(unit).await?;
            self.report.done += 1;
            (self.progress)(Progress::Done(at + 1));
        }
        Ok(())
    }

    async fn unit(&mut self, unit: &Unit) -> Result<(), MigrateError> {
        let mut backoff = Backoff::new();
        let mut cancelled = 0;
        loop {
            self.wait_for_room(unit).await?;
            self.drop_leftover(unit).await?;
            self.report.tries += 1;
            let began = Instant::now();
            let Err(error) = self.attempt(unit).await else { return Ok(()) };
            let took = began.elapsed();
            let Some(code) = error.code().cloned() else { return Err(MigrateError::Connection(error)) };
            let text = words(&error);
            if code == SqlState::QUERY_CANCELED {
                cancelled += 1;
            } else if code != SqlState::LOCK_NOT_AVAILABLE && code != SqlState::T_R_DEADLOCK_DETECTED {
                self.drop_leftover(unit).await?;
                return Err(MigrateError::Statement { line: unit.line, text });
            }
            if unit.in_transaction {
                self.report.blocked_ms += u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            }
            if cancelled >= MAX_CANCELLED {
                self.drop_leftover(unit).await?;
                return self.give_up(unit, format!("it was cancelled {cancelled} times"));
            }
            if Duration::from_millis(self.report.blocked_ms) >= self.options.blocked_budget {
                let spent = self.report.blocked_ms;
                return self
                    .give_up(unit, format!("others have been blocked for {spent} ms, which is the budget"));
            }
            if Instant::now() >= self.ends_at {
                return self.give_up(unit, format!("the time is over; the last try: {text}"));
            }
            let rest = backoff.failed(FIRST_REST, LONGEST_REST, fastrand::u64(..));
            (self.progress)(Progress::Resting(text, rest));
            sleep(rest).await;
        }
    }

    /// Waits, without asking for any lock, until nobody old is in the way and the pooler has no queue.
    async fn wait_for_room(&mut self, unit: &Unit) -> Result<(), MigrateError> {
        let mut named = None;
        loop {
            let found = self.blockers(unit).await?;
            let blocker = found.first().cloned();
            self.report.blockers = found;
            let waiters = self.waiters().await;
            match (blocker, waiters) {
                (None, None) => return Ok(()),
                (Some(blocker), _) if self.options.refuse_if_blocked => {
                    return self.give_up(unit, format!("{blocker} is in the way"));
                }
                (Some(blocker), _) => {
                    if named != Some(blocker.pid) {
                        named = Some(blocker.pid);
                        (self.progress)(Progress::Blocked(blocker));
                    }
                }
                (None, Some(waiters)) => (self.progress)(Progress::PoolerBusy(waiters)),
            }
            if Instant::now() >= self.ends_at {
                let who = self.report.blockers.first().map_or_else(
                    || "clients wait at the pooler".to_owned(),
                    |blocker| format!("{blocker} is in the way"),
                );
                return self.give_up(unit, format!("the time is over, and {who}"));
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn blockers(&self, unit: &Unit) -> Result<Vec<Blocker>, MigrateError> {
        // What runs in no transaction keeps nobody waiting while it waits itself.
        if !unit.in_transaction {
            return Ok(Vec::new());
        }
        blockers(&self.client, &unit.statements, self.options.oldest).await.map_err(MigrateError::Connection)
    }

    /// Clients that wait at the pooler, if they are too many.
    async fn waiters(&self) -> Option<u32> {
        let waiters = pooler::waiters(self.options.pooler?).await?;
        (waiters > f64::from(self.options.most_waiters)).then_some(waiters as u32)
    }

    /// One try; never without a timeout. What runs is cancelled if clients begin to queue at the pooler.
    async fn attempt(&self, unit: &Unit) -> Result<(), tokio_postgres::Error> {
        let cancel = self.client.cancel_token();
        let watch = async {
            loop {
                sleep(LOOK_AGAIN).await;
                if self.waiters().await.is_some() {
                    // Where it cannot be sent, lock_timeout ends it.
                    drop(cancel.cancel_query(NoTls).await);
                }
            }
        };
        let work = self.statements(unit);
        tokio::pin!(work);
        if self.options.pooler.is_none() {
            return work.await;
        }
        tokio::select! {
            done = &mut work => done,
            () = watch => work.await,
        }
    }

    async fn statements(&self, unit: &Unit) -> Result<(), tokio_postgres::Error> {
        if !unit.in_transaction {
            let timeout = CONCURRENT_LOCK_TIMEOUT.max(self.options.lock_timeout).as_millis();
            self.client.batch_execute(&format!("SET lock_timeout = {timeout}")).await?;
            for statement in &unit.statements {
                self.client.batch_execute(statement).await?;
            }
            return Ok(());
        }
        let timeout = self.options.lock_timeout.as_millis();
        self.client.batch_execute(&format!("BEGIN; SET LOCAL lock_timeout = {timeout}")).await?;
        let mut result = Ok(());
        for statement in &unit.statements {
            result = self.client.batch_execute(statement).await;
            if result.is_err() {
                break;
            }
        }
        match result {
            Ok(()) => self.client.batch_execute("COMMIT").await,
            Err(error) => {
                // If the connection is gone, so is the transaction.
                drop(self.client.batch_execute("ROLLBACK").await);
                Err(error)
            }
        }
    }

    /// A concurrent build that failed leaves an invalid index, which costs every write and serves no read.
    async fn drop_leftover(&mut self, unit: &Unit) -> Result<(), MigrateError> {
        const QUERY: &str = "SELECT i.indexrelid::regclass::text FROM pg_index i \
            WHERE i.indexrelid = to_regclass($1) AND NOT i.indisvalid \
            AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)";
        let indexes = unit.statements.iter().filter(|_| !unit.in_transaction);
        let creates =
            indexes.filter(|statement| statement.get(..6).is_some_and(|w| w.eq_ignore_ascii_case("create")));
        for name in creates.filter_map(|statement| concurrent_index(statement)) {
            let rows = self.client.query(QUERY, &[&name]).await.map_err(MigrateError::Connection)?;
            for row in rows {
                let index: String = row.get(0);
                (self.progress)(Progress::DroppingLeftover(index.clone()));
                let timeout = CONCURRENT_LOCK_TIMEOUT.as_millis();
                let set = format!("SET lock_timeout = {timeout}");
                self.client.batch_execute(&set).await.map_err(MigrateError::Connection)?;
                let dropped = self.client.batch_execute(&format!("DROP INDEX CONCURRENTLY {index}")).await;
                dropped.map_err(|error| MigrateError::Statement { line: unit.line, text: words(&error) })?;
                self.report.leftovers_dropped.push(index);
            }
        }
        Ok(())
    }

    fn give_up(&self, unit: &Unit, reason: String) -> Result<(), MigrateError> {
        Err(MigrateError::GivenUp { line: unit.line, reason })
    }
}

fn words(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |error| format!("{} ({})", error.message(), error.code().code()))
}
