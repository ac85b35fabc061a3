//! Counters per database for SHOW STATS, and their averages.
//!
//! PgBouncer keeps the counters by a timer and averages from the last but one keeping up to now. Here they are kept when
//! somebody looks (a SHOW, a scrape), at least `stats_period` after the last keeping; an idle process has no timer. So
//! where somebody looks once a period the window is PgBouncer's, one to two periods; where nobody has looked for an hour
//! the window reaches back to that last look.

use super::sessions::ConsoleTotals;
use overload::Moment;
use pooling::CONSOLE_DATABASE;
use pooling::snapshot::PoolRow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How many counters there are.
pub(super) const COUNTERS: usize = 12;

/// Their places, in the order in which SHOW STATS has them.
const ASSIGNMENTS: usize = 0;
const TRANSACTIONS: usize = 1;
const QUERIES: usize = 2;
const TRANSACTION_TIME: usize = 5;
const QUERY_TIME: usize = 6;
const WAIT_TIME: usize = 7;
const LOGINS: usize = 11;

/// The counters of one database; times in microseconds.
pub(super) type Counters = [u64; COUNTERS];

/// The counters of all databases, the console's own among them. As large as the table of pools at most.
pub(super) type PerDatabase = BTreeMap<Arc<str>, Counters>;

/// Sums the pools of each database.
pub(super) fn per_database(pools: &[PoolRow], console: ConsoleTotals) -> PerDatabase {
    let mut all = PerDatabase::new();
    let own = all.entry(CONSOLE_DATABASE.into()).or_default();
    own[TRANSACTIONS] = console.queries;
    own[QUERIES] = console.queries;
    own[LOGINS] = console.logins;
    for pool in pools {
        let sums = all.entry(Arc::clone(&pool.database)).or_default();
        for (sum, counter) in sums.iter_mut().zip(counters(pool)) {
            *sum = sum.saturating_add(counter);
        }
    }
    all
}

fn counters(pool: &PoolRow) -> Counters {
    let counters = &pool.counters;
    [
        counters.server_assignment_count,
        counters.xact_count,
        counters.query_count,
        counters.received,
        counters.sent,
        counters.xact_time_us,
        counters.query_time_us,
        counters.wait_time_us,
        counters.client_parse_count,
        counters.server_parse_count,
        counters.bind_count,
        counters.client_login_count,
    ]
}

/// The counters of two earlier moments.
#[derive(Debug)]
pub(super) struct StatsHistory {
    older: Kept,
    newer: Kept,
}

#[derive(Debug)]
struct Kept {
    at: Moment,
    totals: PerDatabase,
}

impl StatsHistory {
    /// All counters are zero at `start`.
    pub(super) const fn new(start: Moment) -> Self {
        Self {
            older: Kept { at: start, totals: PerDatabase::new() },
            newer: Kept { at: start, totals: PerDatabase::new() },
        }
    }

    /// Keeps `totals` if the last that were kept are at least a period old.
    pub(super) fn observe(&mut self, now: Moment, period: Duration, totals: &PerDatabase) {
        if now.since(self.newer.at) < period.max(Duration::from_secs(1)) {
            return;
        }
        let kept = Kept { at: now, totals: totals.clone() };
        self.older = std::mem::replace(&mut self.newer, kept);
    }

    /// Per second since the older keeping; times per transaction, per query and per assignment.
    pub(super) fn averages(&self, now: Moment, database: &str, current: &Counters) -> Counters {
        let window_us = now.since(self.older.at).as_micros();
        let before = self.older.totals.get(database).copied().unwrap_or_default();
        let mut gained = [0; COUNTERS];
        for (gain, (now, before)) in gained.iter_mut().zip(current.iter().zip(before)) {
            // A pool that was dropped takes its counters along.
            *gain = now.saturating_sub(before);
        }
        let mut averages = gained.map(|gain| per_second(gain, window_us));
        averages[TRANSACTION_TIME] = per_unit(gained[TRANSACTION_TIME], gained[TRANSACTIONS]);
        averages[QUERY_TIME] = per_unit(gained[QUERY_TIME], gained[QUERIES]);
        averages[WAIT_TIME] = per_unit(gained[WAIT_TIME], gained[ASSIGNMENTS]);
        averages
    }
}

fn per_second(gain: u64, window_us: u128) -> u64 {
    let rate = (u128::from(gain) * 1_000_000).checked_div(window_us).unwrap_or_default();
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn per_unit(time_us: u64, count: u64) -> u64 {
    time_us.checked_div(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::fixtures::pool_row;

    const PERIOD: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Moment {
        Moment::from_micros(seconds * 1_000_000)
    }

    fn totals(queries: u64, query_time: u64) -> PerDatabase {
        let mut counters = Counters::default();
        counters[QUERIES] = queries;
        counters[QUERY_TIME] = query_time;
        PerDatabase::from([("app".into(), counters)])
    }

    #[test]
    fn averages_reach_from_the_last_but_one_keeping_to_now() {
        let mut history = StatsHistory::new(at(0));
        history.observe(at(60), PERIOD, &totals(600, 6_000));
        history.observe(at(90), PERIOD, &totals(9_999, 9_999));
        history.observe(at(120), PERIOD, &totals(1_200, 12_000));
        // Now 150: the window began at 60 with 600 queries.
        let current = totals(1_500, 96_000)["app"];
        let averages = history.averages(at(150), "app", &current);
        assert_eq!(averages[QUERIES], 10);
        assert_eq!(averages[QUERY_TIME], 100);
    }

    #[test]
    fn the_first_look_averages_since_the_start() {
        let history = StatsHistory::new(at(0));
        assert_eq!(history.averages(at(10), "app", &totals(50, 0)["app"])[QUERIES], 5);
        assert_eq!(history.averages(at(0), "app", &totals(50, 0)["app"])[QUERIES], 0, "no time has passed");
    }

    #[test]
    fn counters_that_went_back_average_to_zero() {
        let mut history = StatsHistory::new(at(0));
        history.observe(at(60), PERIOD, &totals(600, 0));
        history.observe(at(120), PERIOD, &totals(600, 0));
        assert_eq!(history.averages(at(130), "app", &totals(1, 0)["app"])[QUERIES], 0);
    }

    #[test]
    fn pools_of_one_database_are_summed_and_the_console_has_its_row() {
        let mut first = pool_row("app", "a");
        first.counters.query_count = 3;
        let mut second = pool_row("app", "b");
        second.counters.query_count = 4;
        let all = per_database(&[first, second], ConsoleTotals { queries: 9, logins: 2 });
        assert_eq!(all["app"][QUERIES], 7);
        assert_eq!((all["pgbouncer"][QUERIES], all["pgbouncer"][LOGINS]), (9, 2));
    }
}
