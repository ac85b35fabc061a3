//! What the rows of the pools say about the database behind them.
//!
//! A pool is `gone` only on evidence: someone waits and nothing comes back, or attempts to open a server fail. It is
//! `saturated` when clients wait while answers flow, or while clients themselves hold its servers.

use overload::LatencyHistogram;
use pooling::snapshot::{HolderRow, Overview, PoolRow};
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

/// Cause of a pool that waits for its first server and hears nothing, not even a refusal.
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

/// The state of the worst pool, and all pools that are not fine, the worst first.
///
/// `earlier` is an overview from some seconds ago; it tells failures that go on from one that nobody has tried since.
#[must_use]
pub fn judge(
    overview: &Overview,
    holders: &[HolderRow],
    earlier: Option<&Overview>,
) -> (State, Vec<Finding>) {
    let mut findings: Vec<Finding> = overview
        .pools
        .iter()
        .filter_map(|pool| {
            let before =
                earlier.and_then(|earlier| earlier.pools.iter().find(|before| is_same(before, pool)));
            let held =
                holders.iter().filter(|holder| holder.database == pool.database && holder.user == pool.user);
            judge_pool(pool, held.count(), before)
        })
        .collect();
    findings.sort_by_key(|finding| (finding.state, std::cmp::Reverse(finding.since)));
    (findings.first().map_or(State::Fine, |worst| worst.state), findings)
}

fn judge_pool(pool: &PoolRow, held: usize, before: Option<&PoolRow>) -> Option<Finding> {
    let finding = |state, cause, text: String, since| {
        let (database, user) = (Arc::clone(&pool.database), Arc::clone(&pool.user));
        Some(Finding { state, database, user, cause, text, since, waiting: pool.cl_waiting })
    };
    let waits = pool.cl_waiting > 0;
    if connected(pool) == 0 {
        if let Some((cause, text, since)) = &pool.failure
            && (waits || *since <= RECENT_FAILURE || fails_still(pool, before))
        {
            return finding(State::Gone, cause, text.clone(), *since);
        }
        if waits && pool.maxwait >= LEAST_SILENCE {
            let text = "no server connection could be opened, and no attempt has been refused".to_owned();
            return finding(State::Gone, NO_LOGIN, text, pool.maxwait);
        }
        if waits {
            return finding(
                State::Saturated,
                OPENING,
                "clients wait for the first server".to_owned(),
                pool.maxwait,
            );
        }
    }
    if !waits {
        return None;
    }
    let silence = silence(pool);
    if busy(pool) <= held && held > 0 {
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

/// Servers that have logged in and are not being closed.
const fn connected(pool: &PoolRow) -> usize {
    busy(pool) + pool.sv_idle
}

/// Of those, the ones that are not idle.
const fn busy(pool: &PoolRow) -> usize {
    pool.sv_active + pool.sv_active_cancel + pool.sv_being_canceled + pool.sv_used + pool.sv_tested
}

/// How long someone has waited without any answer to anyone. A pool that nobody used for an hour is not silent for it.
fn silence(pool: &PoolRow) -> Duration {
    pool.since_last_answer.map_or(pool.maxwait, |since| since.min(pool.maxwait))
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

fn is_same(one: &PoolRow, other: &PoolRow) -> bool {
    one.database == other.database && one.user == other.user
}

#[cfg(test)]
mod tests;
