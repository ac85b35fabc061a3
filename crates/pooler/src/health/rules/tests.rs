use super::*;
use crate::console::fixtures::{holder_row, overview, pool_row};

const SECOND: Duration = Duration::from_secs(1);

/// The verdict on one pool, and its cause.
fn verdict(pool: PoolRow, holders: &[HolderRow], earlier: Option<PoolRow>) -> (State, Option<&'static str>) {
    let (overview, earlier) = (overview(vec![pool]), earlier.map(|pool| overview(vec![pool])));
    let evidence = Evidence { holders, earlier: earlier.as_ref(), ..alone(&overview) };
    let (state, findings) = judge(evidence);
    (state, findings.first().map(|finding| finding.cause))
}

fn alone(overview: &Overview) -> Evidence<'_> {
    Evidence { overview, holders: &[], earlier: None, config: None }
}

fn failing(since: Duration) -> PoolRow {
    let mut pool = pool_row("app", "web");
    pool.failure = Some(("refused", "connection refused".to_owned(), since));
    pool.counters.server_open_failures = vec![("refused", 3)];
    pool
}

/// Servers work; so many clients wait.
fn working(waiting: usize) -> PoolRow {
    let mut pool = pool_row("app", "web");
    pool.sv_active = 20;
    pool.cl_active = 20;
    pool.cl_waiting = waiting;
    pool.maxwait = if waiting > 0 { 8 * SECOND } else { Duration::ZERO };
    pool.since_last_answer = Some(Duration::from_millis(3));
    pool
}

#[test]
fn pools_that_work_or_that_nobody_uses_are_fine() {
    assert_eq!(verdict(working(0), &[], None), (State::Fine, None));
    assert_eq!(verdict(pool_row("app", "web"), &[], None), (State::Fine, None));
    assert_eq!(judge(alone(&overview(Vec::new()))).0, State::Fine);
}

#[test]
fn a_full_pool_whose_servers_answer_is_saturated_and_not_gone() {
    assert_eq!(verdict(working(500), &[], None), (State::Saturated, Some(BUSY)));
}

#[test]
fn a_pool_without_servers_that_cannot_open_one_is_gone_while_someone_waits() {
    let mut pool = failing(600 * SECOND);
    pool.cl_waiting = 1;
    assert_eq!(verdict(pool, &[], None), (State::Gone, Some("refused")));
}

#[test]
fn a_wrong_password_of_one_pool_is_not_a_database_that_is_gone() {
    let mut pool = failing(SECOND);
    pool.failure = Some((Cause::WrongPassword.label(), "password authentication failed".to_owned(), SECOND));
    assert_eq!(verdict(pool, &[], None), (State::Refused, Some(Cause::WrongPassword.label())));
}

#[test]
fn a_failure_without_waiters_counts_while_it_is_recent_or_goes_on() {
    assert_eq!(verdict(failing(RECENT_FAILURE), &[], None), (State::Gone, Some("refused")));
    let old = failing(RECENT_FAILURE + SECOND);
    assert_eq!(verdict(old.clone(), &[], None), (State::Fine, None));
    assert_eq!(verdict(old.clone(), &[], Some(old.clone())), (State::Fine, None), "nobody has tried since");
    let mut before = old.clone();
    before.counters.server_open_failures = vec![("refused", 2)];
    assert_eq!(verdict(old, &[], Some(before)), (State::Gone, Some("refused")));
}

#[test]
fn a_failure_does_not_matter_while_other_servers_work() {
    let mut pool = working(3);
    pool.failure = failing(SECOND).failure;
    assert_eq!(verdict(pool, &[], None), (State::Saturated, Some(BUSY)));
}

#[test]
fn servers_that_stopped_answering_while_someone_waits_are_a_database_gone() {
    let mut pool = working(1);
    pool.since_last_answer = Some(LEAST_SILENCE);
    assert_eq!(verdict(pool.clone(), &[], None), (State::Gone, Some(FROZEN)));
    pool.since_last_answer = Some(LEAST_SILENCE - Duration::from_millis(1));
    assert_eq!(verdict(pool, &[], None), (State::Saturated, Some(BUSY)));
}

#[test]
fn silence_counts_from_the_first_waiter_when_nobody_asked_before() {
    let mut pool = working(1);
    pool.since_last_answer = Some(3_600 * SECOND);
    pool.maxwait = SECOND;
    assert_eq!(verdict(pool.clone(), &[], None).0, State::Saturated);
    pool.since_last_answer = None;
    assert_eq!(verdict(pool.clone(), &[], None).0, State::Saturated);
    pool.maxwait = LEAST_SILENCE;
    assert_eq!(verdict(pool, &[], None), (State::Gone, Some(FROZEN)));
}

#[test]
fn where_queries_take_long_silence_means_longer() {
    let mut pool = working(1);
    for _ in 0..100 {
        pool.counters.query.record(9 * SECOND);
    }
    pool.maxwait = 60 * SECOND;
    pool.since_last_answer = Some(19 * SECOND);
    assert_eq!(verdict(pool.clone(), &[], None).0, State::Saturated);
    pool.since_last_answer = Some(20 * SECOND);
    assert_eq!(verdict(pool, &[], None).0, State::Gone);
}

#[test]
fn one_slow_query_in_a_hundred_does_not_delay_the_verdict_and_none_does_for_ever() {
    let mut queries = LatencyHistogram::new();
    assert_eq!(allowed_silence(&queries), LEAST_SILENCE);
    for _ in 0..99 {
        queries.record(Duration::from_millis(1));
    }
    queries.record(150 * SECOND);
    assert_eq!(allowed_silence(&queries), LEAST_SILENCE);
    for _ in 0..1_000 {
        queries.record(1_000 * SECOND);
    }
    assert_eq!(allowed_silence(&queries), GREATEST_SILENCE);
}

#[test]
fn servers_held_by_clients_are_no_sign_of_a_dead_database() {
    let mut pool = working(4);
    pool.sv_active = 2;
    pool.since_last_answer = Some(60 * SECOND);
    pool.maxwait = 60 * SECOND;
    let holders = [holder_row("app", "web"), holder_row("app", "web")];
    assert_eq!(verdict(pool.clone(), &holders, None), (State::Saturated, Some(HELD)));
    assert_eq!(
        verdict(pool.clone(), &holders[..1], None),
        (State::Gone, Some(FROZEN)),
        "the other one does not answer"
    );
    let elsewhere = [holder_row("other", "web"), holder_row("app", "other")];
    assert_eq!(verdict(pool, &elsewhere, None), (State::Gone, Some(FROZEN)));
}

#[test]
fn logins_that_hang_are_a_database_gone() {
    let mut pool = pool_row("app", "web");
    pool.cl_waiting = 1;
    pool.sv_login = 1;
    pool.maxwait = LEAST_SILENCE - SECOND;
    assert_eq!(verdict(pool.clone(), &[], None), (State::Saturated, Some(OPENING)));
    pool.maxwait = LEAST_SILENCE;
    assert_eq!(verdict(pool, &[], None), (State::Gone, Some(NO_LOGIN)));
}

#[test]
fn a_pool_that_gets_no_share_of_a_limit_is_saturated_however_long_it_waits() {
    let mut pool = pool_row("app", "web");
    pool.cl_waiting = 1;
    pool.maxwait = 60 * SECOND;
    assert_eq!(verdict(pool, &[], None), (State::Saturated, Some(OPENING)));
}

#[test]
fn a_server_that_answers_another_pool_is_not_gone() {
    let text = "[databases]\napp = host=db1\nreport = host=db1\nelsewhere = host=db2\n\
                [pgbouncer]\nlisten_addr = 127.0.0.1\npool_mode = transaction\nauth_type = any\n";
    let config = settings::pooler::parse_ini(text).unwrap().config;
    let mut silent = working(1);
    silent.since_last_answer = Some(60 * SECOND);
    let mut other = pool_row("report", "web");
    other.since_last_answer = Some(SECOND);
    let verdict_beside = |other: PoolRow| {
        let overview = overview(vec![silent.clone(), other]);
        judge(Evidence { config: Some(&config), ..alone(&overview) }).0
    };
    assert_eq!(verdict_beside(other.clone()), State::Saturated);
    other.database = "elsewhere".into();
    assert_eq!(verdict_beside(other), State::Gone, "another server's answer says nothing");
}

#[test]
fn the_worst_pool_decides_and_stands_first() {
    let mut gone = failing(5 * SECOND);
    gone.database = "late".into();
    let mut longer = failing(9 * SECOND);
    longer.database = "longer".into();
    let pools = vec![working(1), gone, longer, working(0)];
    let (state, findings) = judge(alone(&overview(pools)));
    assert_eq!(state, State::Gone);
    let order: Vec<_> = findings.iter().map(|finding| &*finding.database).collect();
    assert_eq!(order, ["longer", "late", "app"]);
    assert_eq!(findings[0].since, 9 * SECOND);
}
