//! A bound on the number of time series: beyond so many pools, the rest are one.

use pooling::snapshot::PoolRow;
use std::time::Duration;

/// Most pools that have series of their own.
pub const MAX_LABELLED_POOLS: usize = 1_000;

/// Label of the pools beyond that, as database and as user.
pub const OTHER: &str = "other";

/// At most `most` pools, and one more for the sum of all others.
pub(super) fn fold(mut pools: Vec<PoolRow>, most: usize) -> Vec<PoolRow> {
    if pools.len() <= most {
        return pools;
    }
    let rest = pools.split_off(most);
    // A pool that really has that name would give every series twice.
    let namesake = pools.iter().position(|pool| &*pool.database == OTHER && &*pool.user == OTHER);
    let namesake = namesake.map(|at| pools.remove(at));
    let sum = namesake.into_iter().chain(rest).reduce(|mut sum, pool| {
        add(&mut sum, pool);
        sum
    });
    pools.extend(sum.map(|sum| PoolRow { database: OTHER.into(), user: OTHER.into(), ..sum }));
    pools
}

fn add(sum: &mut PoolRow, pool: PoolRow) {
    sum.cl_active += pool.cl_active;
    sum.cl_waiting += pool.cl_waiting;
    sum.cl_active_cancel_req += pool.cl_active_cancel_req;
    sum.sv_active += pool.sv_active;
    sum.sv_active_cancel += pool.sv_active_cancel;
    sum.sv_being_canceled += pool.sv_being_canceled;
    sum.sv_idle += pool.sv_idle;
    sum.sv_used += pool.sv_used;
    sum.sv_tested += pool.sv_tested;
    sum.sv_login += pool.sv_login;
    sum.sv_closing += pool.sv_closing;
    sum.sv_behind_lock += pool.sv_behind_lock;
    sum.pool_size += pool.pool_size;
    sum.running_limit = sum.running_limit.zip(pool.running_limit).map(|(sum, limit)| sum + limit);
    sum.maxwait = sum.maxwait.max(pool.maxwait);
    sum.since_last_answer = later(sum.since_last_answer, pool.since_last_answer);
    sum.overload.overloaded = sum.overload.overloaded.max(pool.overload.overloaded);
    sum.overload.predicted_wait = sum.overload.predicted_wait.max(pool.overload.predicted_wait);
    if pool.failure.as_ref().map(|failure| failure.2) > sum.failure.as_ref().map(|failure| failure.2) {
        sum.failure = pool.failure;
    }
    if pool.stall.map(|stall| stall.1) > sum.stall.map(|stall| stall.1) {
        sum.stall = pool.stall;
    }
    add_counters(sum, &pool.counters);
}

fn add_counters(sum: &mut PoolRow, counters: &pooling::snapshot::PoolCounters) {
    let sums = &mut sum.counters;
    for (sum, counter) in [
        (&mut sums.xact_count, counters.xact_count),
        (&mut sums.query_count, counters.query_count),
        (&mut sums.server_assignment_count, counters.server_assignment_count),
        (&mut sums.received, counters.received),
        (&mut sums.sent, counters.sent),
        (&mut sums.xact_time_us, counters.xact_time_us),
        (&mut sums.query_time_us, counters.query_time_us),
        (&mut sums.wait_time_us, counters.wait_time_us),
        (&mut sums.client_parse_count, counters.client_parse_count),
        (&mut sums.server_parse_count, counters.server_parse_count),
        (&mut sums.bind_count, counters.bind_count),
        (&mut sums.client_login_count, counters.client_login_count),
        (&mut sums.server_opens, counters.server_opens),
        (&mut sums.dead_waiters, counters.dead_waiters),
        (&mut sums.dead_handoffs, counters.dead_handoffs),
        (&mut sums.wait_timeouts, counters.wait_timeouts),
        (&mut sums.refusals, counters.refusals),
        (&mut sums.client_cancels, counters.client_cancels),
        (&mut sums.departure_cancels, counters.departure_cancels),
        (&mut sums.reserve_logins, counters.reserve_logins),
        (&mut sums.holders_closed, counters.holders_closed),
        (&mut sums.session_probes, counters.session_probes),
        (&mut sums.running_holds, counters.running_holds),
        (&mut sums.running_would_hold, counters.running_would_hold),
        (&mut sums.pins, counters.pins),
        (&mut sums.pin_refusals, counters.pin_refusals),
        (&mut sums.lock_pileups, counters.lock_pileups),
    ] {
        *sum = sum.saturating_add(counter);
    }
    for (sum, count) in sums.server_closes.iter_mut().zip(counters.server_closes) {
        *sum = sum.saturating_add(count);
    }
    add_by_label(&mut sums.server_open_failures, &counters.server_open_failures);
    add_by_label(&mut sums.lock_actions, &counters.lock_actions);
    let shed = sums.shed.iter_mut().zip(counters.shed);
    for (sum, count) in shed.chain(sums.would_shed.iter_mut().zip(counters.would_shed)) {
        *sum = sum.saturating_add(count);
    }
    add_by_cause(&mut sums.server_open_failures, &counters.server_open_failures);
    add_by_cause(&mut sums.stalls, &counters.stalls);
    sums.wait.add(&counters.wait);
    sums.query.add(&counters.query);
    sums.login.add(&counters.login);
}

fn add_by_label(sums: &mut Vec<(&'static str, u64)>, counts: &[(&'static str, u64)]) {
    for (label, count) in counts {
        match sums.iter_mut().find(|(known, _)| known == label) {
            Some((_, sum)) => *sum = sum.saturating_add(*count),
            None => sums.push((label, *count)),
        }
    }
}

fn add_by_cause(sums: &mut Vec<(&'static str, u64)>, counts: &[(&'static str, u64)]) {
    for (cause, count) in counts {
        match sums.iter_mut().find(|(known, _)| known == cause) {
            Some((_, sum)) => *sum = sum.saturating_add(*count),
            None => sums.push((cause, *count)),
        }
    }
}

/// The most recent answer of the two.
fn later(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
