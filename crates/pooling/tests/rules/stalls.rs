//! Pools whose clients wait and that give no answer: what they say of themselves.

use super::bench::{Bench, IN_TRANSACTION, config, config_of, done, message, query, startup};
use overload::cause::Cause;
use pooling::connection::{ClientId, ConnectionId, ServerId};
use pooling::snapshot::StallRow;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Seconds pass one by one, as far as anything is due in them.
fn pass(bench: &mut Bench, seconds: u64) {
    for _ in 0..seconds {
        bench.pass(SECOND);
    }
}

fn stalls(bench: &Bench) -> Vec<(&'static str, Option<&'static str>)> {
    bench.engine.stall_rows().iter().map(|row| (row.cause, row.end)).collect()
}

fn first(bench: &Bench) -> StallRow {
    bench.engine.stall_rows().remove(0)
}

/// A pool of one server that one client has and another waits for.
fn one_waits(extra: &str, holder_says: &str) -> (Bench, ServerId, ClientId) {
    let mut bench = Bench::new(config(&format!("default_pool_size = 1\n{extra}")));
    let (holder, waiter) = (bench.login(), bench.login());
    let server = bench.only_server();
    bench.say(holder, &query(holder_says));
    bench.say(waiter, &query("SELECT 1"));
    (bench, server, waiter)
}

fn begun() -> Vec<u8> {
    [message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat()
}

#[test]
fn clients_that_hold_every_server_are_named_and_the_end_is_told() {
    let (mut bench, server, _) = one_waits("", "BEGIN");
    bench.answer(server, &begun());
    pass(&mut bench, 4);
    assert_eq!(stalls(&bench), [], "not before its time");
    pass(&mut bench, 1);
    let stall = first(&bench);
    assert_eq!((stall.cause, stall.end, stall.waiting), ("held_by_clients", None, 1));
    for part in ["all 1 servers", "idle in transaction for 5.0 s", "127.0.0.1:1", "server process 101"] {
        assert!(stall.detail.contains(part), "{part} in {}", stall.detail);
    }
    assert_eq!(bench.pool("db").stall, Some(("held_by_clients", 5 * SECOND)));
    pass(&mut bench, 3);
    // COMMIT, and the one who waits is served.
    let holder = ConnectionId::from_token(bench.engine.holder_rows()[0].id);
    let ConnectionId::Client(holder) = holder else { panic!("a client holds it") };
    bench.say(holder, &query("COMMIT"));
    bench.answer(server, &done());
    bench.answer(server, &done());
    pass(&mut bench, 1);
    let stall = first(&bench);
    assert_eq!((stall.end, stall.lasted), (Some("answered"), 8 * SECOND));
    assert_eq!(bench.pool("db").counters.stalls, [("held_by_clients", 1)]);
    assert_eq!(bench.pool("db").stall, None);
    let events: Vec<_> = bench.engine.event_rows().iter().map(|row| (row.event, row.cause)).collect();
    assert_eq!(events, [("stalled", "held_by_clients"), ("stall_over", "answered")]);
}

#[test]
fn idle_clients_of_session_mode_hold_their_servers_too() {
    let (mut bench, server, _) = one_waits("pool_mode = session\n", "SELECT 1");
    bench.answer(server, &done());
    pass(&mut bench, 5);
    assert_eq!(stalls(&bench), [("held_by_clients", None)]);
    assert_eq!(first(&bench).detail, "all 1 servers belong to clients of session mode that are idle");
}

#[test]
fn a_database_that_answers_nobody_is_told_from_one_that_answers_other_pools() {
    let mut bench =
        Bench::new(config_of("db = host=h user=u\nother = host=h user=u\n", "default_pool_size = 1\n"));
    let mut clients = Vec::new();
    for database in ["db", "db", "other"] {
        clients.push(bench.connect(database));
        if !bench.wire.opens.is_empty() {
            bench.open();
        }
    }
    for &client in &clients {
        bench.say(client, &query("SELECT pg_sleep(60)"));
    }
    pass(&mut bench, 5);
    assert_eq!(stalls(&bench), [("server_silent", None)]);
    let other = bench.engine.server_rows().into_iter().find(|row| &*row.database == "other").expect("one");
    let ConnectionId::Server(other) = ConnectionId::from_token(other.id) else { panic!("a server") };
    bench.answer(other, &done());
    pass(&mut bench, 1);
    assert_eq!(stalls(&bench), [("all_running", None)], "the cause is looked at again");
    assert!(first(&bench).detail.contains("1 servers work on queries, the longest for 6.0 s"));
    // It is one stall all the same.
    assert_eq!(bench.pool("db").counters.stalls, [("server_silent", 1)]);
}

#[test]
fn logins_that_fail_and_logins_that_hang_are_told_apart() {
    let mut bench = Bench::new(config("server_login_retry = 60\n"));
    let hanging = bench.connect("db");
    pass(&mut bench, 5);
    assert_eq!(stalls(&bench), [("logins_pending", None)]);
    bench.fail(Cause::Refused);
    pass(&mut bench, 1);
    let stall = first(&bench);
    assert_eq!(stall.cause, "logins_failing");
    assert!(stall.detail.contains("last by refused: connect failed"), "{}", stall.detail);
    bench.end(hanging);
    pass(&mut bench, 10);
    assert_eq!(stalls(&bench), [("logins_failing", Some("nobody_waits"))]);
}

#[test]
fn a_pool_that_other_pools_leave_no_server_says_so() {
    let mut bench =
        Bench::new(config_of("db = host=h user=u\nother = host=h user=u\n", "max_user_connections = 1\n"));
    let busy = bench.login();
    bench.say(busy, &query("SELECT pg_sleep(60)"));
    let waiter = bench.accept();
    bench.say(waiter, &startup("other"));
    pass(&mut bench, 5);
    assert_eq!(stalls(&bench), [("shared_limit", None)]);
    assert_eq!(&*first(&bench).database, "other");
}

#[test]
fn servers_that_finish_what_a_client_has_left_are_no_mystery() {
    let (mut bench, _, _) = one_waits("cancel_wait_timeout = 60\n", "SELECT pg_sleep(60)");
    let holder =
        bench.engine.client_rows().into_iter().find(|row| row.link.is_some()).expect("one is active");
    bench.end(ConnectionId::from_token(holder.id));
    pass(&mut bench, 5);
    assert_eq!(stalls(&bench), [("cleaning", None)]);
}

#[test]
fn clients_that_give_up_and_come_again_make_one_stall() {
    let (mut bench, server, mut waiter) = one_waits("", "SELECT pg_sleep(60)");
    for _ in 0..10 {
        pass(&mut bench, 2);
        bench.end(waiter);
        bench.pass(Duration::from_millis(100));
        waiter = bench.login();
        bench.say(waiter, &query("SELECT 1"));
    }
    assert_eq!(stalls(&bench), [("server_silent", None)]);
    bench.answer(server, &done());
    bench.answer(server, &done());
    pass(&mut bench, 1);
    assert_eq!(stalls(&bench), [("server_silent", Some("answered"))]);
    // After a rest, the next wait is another: silence is not counted from the last answer.
    pass(&mut bench, 600);
    let busy = bench.login();
    bench.say(busy, &query("SELECT pg_sleep(60)"));
    bench.say(waiter, &query("SELECT 1"));
    pass(&mut bench, 4);
    assert_eq!(stalls(&bench), [("server_silent", Some("answered"))]);
}

#[test]
fn a_pool_that_is_full_and_answers_does_not_stand_still() {
    let (mut bench, server, _) = one_waits("", "SELECT 1");
    let more: Vec<_> = (0..20).map(|_| bench.login()).collect();
    for &client in &more {
        bench.say(client, &query("SELECT 1"));
    }
    for _ in 0..20 {
        pass(&mut bench, 1);
        bench.answer(server, &done());
    }
    assert_eq!(stalls(&bench), []);
}

#[test]
fn stall_after_zero_is_never_and_a_reload_changes_it_for_who_waits_already() {
    let (mut bench, _, _) = one_waits("stall_after = 0\nquery_wait_timeout = 0\n", "SELECT pg_sleep(60)");
    pass(&mut bench, 60);
    assert_eq!(stalls(&bench), []);
    let changed = config("default_pool_size = 1\nstall_after = 2\nquery_wait_timeout = 0\n");
    bench.engine.reload(&mut bench.wire, changed);
    pass(&mut bench, 1);
    assert_eq!(stalls(&bench), [("server_silent", None)]);
    assert!(first(&bench).lasted >= 60 * SECOND);
}

#[test]
fn stalls_that_are_over_are_remembered_up_to_a_bound() {
    let (mut bench, _, _) = one_waits("stall_after = 1\n", "SELECT pg_sleep(600)");
    let holder =
        bench.engine.client_rows().into_iter().find(|row| row.link.is_some()).expect("one is active");
    for _ in 0..300 {
        pass(&mut bench, 2);
        let server = bench.only_server();
        bench.answer(server, &done());
        bench.answer(server, &done());
        let ConnectionId::Client(holder) = ConnectionId::from_token(holder.id) else { panic!("a client") };
        bench.say(holder, &query("SELECT pg_sleep(600)"));
        let waiter = bench.engine.client_rows().into_iter().find(|row| row.state == "idle").expect("one");
        let ConnectionId::Client(waiter) = ConnectionId::from_token(waiter.id) else { panic!("a client") };
        bench.say(waiter, &query("SELECT 1"));
    }
    let rows = bench.engine.stall_rows();
    assert_eq!(rows.iter().filter(|row| row.end.is_some()).count(), 256);
    assert!(rows[0].began_ago < rows[255].began_ago, "the latest first");
}
