//! When the engine asks for a look at locks, and what a pool that piles up behind one does.

use super::bench::{Bench, config, config_of, done, query};
use ::locks::{LockMode, Party, PileUp, Policy};
use pooling::connection::ClientId;
use pooling::seam::{LocksSeen, LookAtLocks};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// One server at work, and a client that waits.
fn one_waits(extra: &str) -> (Bench, ClientId) {
    let mut bench = Bench::new(config(&format!("default_pool_size = 1\nquery_wait_notify = 0\n{extra}")));
    let (holder, waiter) = (bench.login(), bench.login());
    bench.say(holder, &query("SELECT 1"));
    bench.say(waiter, &query("SELECT 2"));
    (bench, waiter)
}

fn party(pid: i32, mode: LockMode) -> Party {
    let text = String::new;
    let (state, user, application, statement) = (text(), text(), text(), text());
    Party { pid, mode, is_relation: true, state, user, application, statement, is_ours: false }
}

/// The look ends, and its first pool stands behind an ALTER TABLE that waits.
fn piled(request: &LookAtLocks, took: Duration) -> LocksSeen {
    let ours = &request.pools[0];
    let pile = PileUp {
        pool: ours.pool,
        behind: ours.pids.len(),
        live: ours.live,
        longest: Some(100 * MS),
        relation: Some("public.t".to_owned()),
        waiter: Some(party(77, LockMode::AccessExclusive)),
        blockers: vec![party(55, LockMode::AccessShare)],
    };
    LocksSeen { look: request.look, piles: Some(vec![pile]), acted: Vec::new(), took }
}

fn calm(request: &LookAtLocks, took: Duration) -> LocksSeen {
    LocksSeen { piles: Some(Vec::new()), ..piled(request, took) }
}

#[test]
fn a_look_is_asked_for_once_a_client_has_waited_and_a_query_has_run_for_long() {
    let (mut bench, _) = one_waits("lock_pileup = cancel-waiting-ddl\nlock_pileup_grace = 0.7\n");
    bench.pass(99 * MS);
    assert!(bench.wire.looks.is_empty());
    bench.pass(MS);
    let [request] = bench.wire.looks.as_slice() else { panic!("one look") };
    assert_eq!((request.policy, request.grace), (Policy::CancelWaitingDdl, 700 * MS));
    assert_eq!(request.pools[0].pids, [101]);
    // One at once, however long it takes.
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.wire.looks.len(), 1);
}

#[test]
fn nobody_looks_while_queries_are_short_nor_with_the_policy_off() {
    let (mut bench, waiter) = one_waits("");
    let server = bench.only_server();
    for _ in 0..50 {
        bench.pass(50 * MS);
        bench.answer(server, &done());
        bench.say(waiter, &query("SELECT 2"));
        bench.due();
    }
    assert!(bench.wire.looks.is_empty());
    let (mut bench, _) = one_waits("lock_pileup = off\n");
    bench.pass(Duration::from_secs(10));
    assert!(bench.wire.looks.is_empty());
}

#[test]
fn looks_are_ten_times_as_far_apart_as_they_take_and_never_closer_than_a_quarter_of_a_second() {
    let (mut bench, _) = one_waits("");
    bench.pass(100 * MS);
    for (took, apart) in [(MS, 250), (60 * MS, 600)] {
        let request = bench.wire.looks.pop().expect("a look");
        assert_eq!(request.policy, Policy::Warn, "an ini starts so");
        bench.engine.on_locks_seen(&mut bench.wire, calm(&request, took));
        bench.pass((apart - 1) * MS);
        assert!(bench.wire.looks.is_empty(), "{took:?}");
        bench.pass(MS);
        assert_eq!(bench.wire.looks.len(), 1, "{took:?}");
    }
    // One that failed costs a login: later.
    let request = bench.wire.looks.pop().expect("a look");
    let failed = LocksSeen { piles: None, ..calm(&request, MS) };
    bench.engine.on_locks_seen(&mut bench.wire, failed);
    bench.pass(Duration::from_millis(4_999));
    assert!(bench.wire.looks.is_empty());
    bench.pass(MS);
    assert_eq!(bench.wire.looks.len(), 1);
}

/// Three servers of four at work behind the lock, and clients that wait for a fourth.
fn room_for_one_more() -> (Bench, LookAtLocks) {
    let mut bench = Bench::new(config_of(
        "db = host=h user=u pool_size=4\nother = host=h user=u\n",
        "query_wait_notify = 0\nserver_login_concurrency = 3\n",
    ));
    for _ in 0..3 {
        let client = bench.connect("db");
        bench.say(client, &query("SELECT 1"));
    }
    while !bench.wire.opens.is_empty() {
        bench.open();
    }
    let extra = bench.connect("db");
    bench.say(extra, &query("SELECT 1"));
    bench.pass(100 * MS);
    let request = bench.wire.looks.pop().expect("a look");
    (bench, request)
}

#[test]
fn a_pool_that_piles_up_opens_no_further_server_and_others_do() {
    let (mut bench, request) = room_for_one_more();
    // The login that was under way before comes to nothing.
    let before = bench.wire.opens.len();
    bench.engine.on_locks_seen(&mut bench.wire, piled(&request, MS));
    while !bench.wire.opens.is_empty() {
        bench.fail(overload::cause::Cause::Other);
    }
    assert!(before <= 1);
    bench.pass(900 * MS);
    let opens = |bench: &Bench| bench.wire.opens.len();
    assert_eq!(opens(&bench), 0, "piled up");
    assert_eq!(bench.pool("db").sv_behind_lock, 3);
    assert_eq!(bench.engine.lock_rows()[0].pile.waiter.as_ref().map(|waiter| waiter.pid), Some(77));
    let elsewhere = bench.connect("other");
    bench.say(elsewhere, &query("SELECT 1"));
    bench.pass(20 * MS);
    assert_eq!(opens(&bench), 1, "another pool of the same server");
    let _ = bench.open();
    // The next look sees nothing any more.
    let request = bench.wire.looks.pop().expect("a look");
    bench.engine.on_locks_seen(&mut bench.wire, calm(&request, MS));
    bench.pass(MS);
    assert_eq!(opens(&bench), 1, "and goes on opening");
    assert!(bench.engine.lock_rows().is_empty());
    assert_eq!(bench.pool("db").counters.lock_pileups, 1);
}

#[test]
fn what_was_seen_is_forgotten_when_no_look_ends_any_more() {
    let (mut bench, request) = room_for_one_more();
    bench.engine.on_locks_seen(&mut bench.wire, piled(&request, MS));
    while !bench.wire.opens.is_empty() {
        bench.fail(overload::cause::Cause::Other);
    }
    bench.pass(300 * MS);
    assert_eq!(bench.wire.looks.len(), 1, "this one never ends");
    for _ in 0..20 {
        bench.pass(100 * MS);
    }
    assert_eq!(bench.wire.opens.len(), 1);
    assert_eq!(bench.pool("db").sv_behind_lock, 0);
}

#[test]
fn an_answer_to_an_older_look_counts_for_nothing() {
    let (mut bench, request) = room_for_one_more();
    bench.engine.on_locks_seen(&mut bench.wire, calm(&request, MS));
    bench.engine.on_locks_seen(&mut bench.wire, piled(&request, MS));
    assert!(bench.engine.lock_rows().is_empty());
}

#[test]
fn a_pool_that_stands_still_behind_a_lock_says_so() {
    let (mut bench, _) = one_waits("stall_after = 2\nlock_pileup = warn\n");
    for _ in 0..24 {
        bench.pass(100 * MS);
        if let Some(request) = bench.wire.looks.pop() {
            bench.engine.on_locks_seen(&mut bench.wire, piled(&request, MS));
        }
    }
    let stalls = bench.engine.stall_rows();
    assert_eq!((stalls.len(), stalls[0].cause, stalls[0].end), (1, "all_locked", None));
    assert!(stalls[0].detail.contains("SHOW LOCKS"), "{}", stalls[0].detail);
}
