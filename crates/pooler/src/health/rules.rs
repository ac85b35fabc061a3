//! What the rows of the pools say about the database behind them.
//!
//! A pool is `gone` only on evidence: someone waits and nothing comes back, or attempts to open a server fail. It is
//! `refused` when the server itself says no for good: that is no outage of the database. It is
//! `saturated` when clients wait while answers flow, or while clients themselves hold its servers.
//!
//! One case cannot be told from outside: all servers of a pool at work on queries far longer than any before, someone
//! waiting, and no other pool on that server that has an answer. It counts as gone until the first of them answers.

use overload::{Cause, LatencyHistogram};
use pooling::snapshot::{HolderRow, Overview, PoolRow};
use settings::pooler::{PoolerConfig, ServerAddress};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A failure counts by itself for so long after the first of its run, even if nobody waits.
pub const RECENT_FAILURE: Duration = Duration::from_secs(60);

/// A database that has not answered for so long while someone waits is frozen; longer where its queries take long.
pub const LEAST_SILENCE: Duration = Duration::from_secs(5);

/// Where queries take long, frozen means this many times as long as 99 of 100 of them.
pub const SILENCE_FACTOR: u32 = 2;

/// No query history, however slow, delays the verdict beyond this.
pub const GREATEST_SILENCE: Duration = Duration::from_secs(120);

/// Cause of a pool whose servers have stopped answering.
pub const FROZEN: &str = "no_answer";

/// Cause of a pool whose logins to the server hang.
pub const NO_LOGIN: &str = "no_login";

/// Cause of a pool that is opening its first server.
pub const OPENING: &str = "opening_servers";

/// Cause of a pool whose servers are all busy.
pub const BUSY: &str = "all_servers_busy";

/// Cause of a pool whose servers are held by clients that do not use them.
pub const HELD: &str = "held_by_clients";

/// The verdict, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Someone asks and nothing comes back.
    Gone,
    /// The server is there and refuses this pool: a wrong password, a database that does not exist. Others may be fine.
    Refused,
    /// Clients wait while answers flow.
    Saturated,
    /// Neither.
    Fine,
}

impl State {
    /// The word in the answer.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Gone => "database gone",
            Self::Refused => "refused",
            Self::Saturated => "saturated",
            Self::Fine => "fine",
        }
    }
}

/// A pool that is not fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Gone or saturated.
    pub state: State,
    /// Of which database.
    pub database: Arc<str>,
    /// Of which user.
    pub user: Arc<str>,
    /// One of the constants above, or the label of the cause that the last attempt to open a server failed with.
    pub cause: &'static str,
    /// In full.
    pub text: String,
    /// For how long.
    pub since: Duration,
    /// Clients that wait.
    pub waiting: usize,
}

/// What the verdict rests on.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The pools as they are now.
    pub overview: &'a Overview,
    /// Who holds servers without using them.
    pub holders: &'a [HolderRow],
    /// The pools as they were some seconds ago: tells failures that go on from one that nobody has tried since.
    pub earlier: Option<&'a Overview>,
    /// Tells which pools share a server: one that answers others is not frozen.
    pub config: Option<&'a PoolerConfig>,
}

/// The state of the worst pool, and all pools that are not fine, the worst first.
#[must_use]
pub fn judge(evidence: Evidence<'_>) -> (State, Vec<Finding>) {
    let answers = Answers::new(evidence);
    let earlier = evidence.earlier.map(|earlier| earlier.pools.as_slice()).unwrap_or_default();
    // There may be tens of thousands of pools.
    let earlier: HashMap<_, _> = earlier.iter().map(|pool| (name_of(pool), pool)).collect();
    let mut holders: HashMap<_, usize> = HashMap::new();
    for holder in evidence.holders {
        *holders.entry((&*holder.database, &*holder.user)).or_default() += 1;
    }
    let mut findings: Vec<Finding> = evidence
        .overview
        .pools
        .iter()
        .filter_map(|pool| {
            let before = earlier.get(&name_of(pool)).copied();
            let held = holders.get(&name_of(pool)).copied().unwrap_or_default();
            judge_pool(pool, held, before, answers.silence(pool))
        })
        .collect();
    findings.sort_by_key(|finding| (finding.state, Reverse(finding.since)));
    (findings.first().map_or(State::Fine, |worst| worst.state), findings)
}

fn judge_pool(pool: &PoolRow, held: usize, before: Option<&PoolRow>, silence: Duration) -> Option<Finding> {
    let finding = |state, cause, text: String, since| {
        let (database, user) = (Arc::clone(&pool.database), Arc::clone(&pool.user));
        Some(Finding { state, database, user, cause, text, since, waiting: pool.cl_waiting })
    };
    let waits = pool.cl_waiting > 0;
    if connected(pool) == 0
        && let Some((cause, text, since)) = &pool.failure
        && (waits || *since <= RECENT_FAILURE || fails_still(pool, before))
    {
        let state = if is_definite(cause) { State::Refused } else { State::Gone };
        return finding(state, cause, text.clone(), *since);
    }
    if !waits {
        return None;
    }
    if connected(pool) == 0 {
        if pool.sv_login > 0 && silence >= LEAST_SILENCE {
            let text = "the server takes connections and does not finish a login".to_owned();
            return finding(State::Gone, NO_LOGIN, text, silence);
        }
        return finding(
            State::Saturated,
            OPENING,
            "clients wait for the first server".to_owned(),
            pool.maxwait,
        );
    }
    if held > 0 && held >= busy(pool) {
        let text =
            format!("{held} servers are held by clients that do not use them; SHOW HOLDERS names them");
        return finding(State::Saturated, HELD, text, pool.maxwait);
    }
    if silence >= allowed_silence(&pool.counters.query) {
        let text = "clients wait and no server has answered a query since".to_owned();
        return finding(State::Gone, FROZEN, text, silence);
    }
    finding(State::Saturated, BUSY, "clients wait while servers answer".to_owned(), pool.maxwait)
}

/// When each server last answered a query, of whatever pool.
struct Answers<'a> {
    config: Option<&'a PoolerConfig>,
    latest: HashMap<Server<'a>, Duration>,
}

/// A server by its address, or by the database's name where the address is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Server<'a> {
    At(&'a ServerAddress),
    Named(&'a str),
}

impl<'a> Answers<'a> {
    fn new(evidence: Evidence<'a>) -> Self {
        let mut answers = Self { config: evidence.config, latest: HashMap::new() };
        for pool in &evidence.overview.pools {
            if let Some(since) = pool.since_last_answer {
                let latest = answers.latest.entry(server_of(answers.config, pool)).or_insert(since);
                *latest = since.min(*latest);
            }
        }
        answers
    }

    /// How long someone has waited in this pool without any answer to anyone. A server that nobody used for an hour is
    /// not silent for it.
    fn silence(&self, pool: &PoolRow) -> Duration {
        let latest = self.latest.get(&server_of(self.config, pool));
        latest.map_or(pool.maxwait, |since| pool.maxwait.min(*since))
    }
}

fn server_of<'a>(config: Option<&'a PoolerConfig>, pool: &'a PoolRow) -> Server<'a> {
    let database = config.and_then(|config| config.find_database(&pool.database));
    database.map_or(Server::Named(&pool.database), |database| Server::At(&database.address))
}

/// Servers that have logged in and are not being closed.
const fn connected(pool: &PoolRow) -> usize {
    busy(pool) + pool.sv_idle
}

/// Of those, the ones that are not idle.
const fn busy(pool: &PoolRow) -> usize {
    pool.sv_active + pool.sv_active_cancel + pool.sv_being_canceled + pool.sv_used + pool.sv_tested
}

/// True for the label of a cause that is the server's own, definite answer.
fn is_definite(label: &str) -> bool {
    Cause::ALL.iter().any(|cause| cause.is_permanent() && cause.label() == label)
}

/// How long a pool with such queries may be silent.
#[must_use]
pub fn allowed_silence(queries: &LatencyHistogram) -> Duration {
    let rare = queries.count() / 100;
    let mut slower = queries.count();
    for (bound, count) in queries.buckets() {
        slower = slower.saturating_sub(count);
        if slower <= rare {
            let usual = bound.map_or(GREATEST_SILENCE, Duration::from_micros);
            return (usual * SILENCE_FACTOR).clamp(LEAST_SILENCE, GREATEST_SILENCE);
        }
    }
    LEAST_SILENCE
}

/// More attempts have failed, or more clients have been refused, than some seconds ago.
fn fails_still(pool: &PoolRow, before: Option<&PoolRow>) -> bool {
    let total = |pool: &PoolRow| {
        let failures = pool.counters.server_open_failures.iter().map(|(_, count)| *count);
        failures.fold(pool.counters.refusals, u64::saturating_add)
    };
    before.is_some_and(|before| total(pool) > total(before))
}

fn name_of(pool: &PoolRow) -> (&str, &str) {
    (&pool.database, &pool.user)
}

#[cfg(test)]
mod tests;
