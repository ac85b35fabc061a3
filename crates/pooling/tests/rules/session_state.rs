//! What a client may have left in a session is asked for before anybody else gets the server.

use super::bench::{Bench, READY, config, done, message, query};
use pooling::connection::{ClientId, ServerId};

const LOCK: &str = "SELECT pg_advisory_lock(1)";

/// A row of the answer to the pooler's question.
fn row(kind: &str) -> Vec<u8> {
    let mut body = vec![0, 3];
    body.extend(u32::try_from(kind.len()).expect("short").to_be_bytes());
    body.extend(kind.as_bytes());
    body.extend([0xff; 8]);
    message(b'D', &body)
}

/// The answer to it: what is held.
fn held(kinds: &[&str]) -> Vec<u8> {
    let rows: Vec<u8> = kinds.iter().flat_map(|kind| row(kind)).collect();
    [message(b'T', &[0, 0]), rows, done()].concat()
}

fn cancelled() -> Vec<u8> {
    [message(b'E', b"SERROR\0C57014\0Mno\0\0"), READY.to_vec()].concat()
}

/// A pool of so many servers, and a client whose lock has been answered: its server is being asked.
fn asked(size: usize, extra: &str) -> (Bench, ClientId, ServerId) {
    let mut bench =
        Bench::new(config(&format!("default_pool_size = {size}\nquery_wait_notify = 0\n{extra}")));
    let client = bench.login();
    bench.say(client, &query(LOCK));
    let server = bench.only_server();
    assert_eq!(bench.heard(server), query(LOCK));
    bench.answer(server, &done());
    assert_eq!(bench.heard(client), done(), "the client has its answer at once");
    let question = bench.heard(server);
    assert!(question.starts_with(b"Q") && question.windows(8).any(|part| part == b"pg_locks"));
    (bench, client, server)
}

#[test]
fn nobody_gets_the_server_before_it_has_been_asked() {
    let (mut bench, client, server) = asked(1, "");
    let other = bench.login();
    bench.say(other, &query("SELECT 2"));
    bench.say(client, &query("SELECT 3"));
    assert_eq!(bench.heard(server), b"");
    let answer = held(&[]);
    // In pieces, as it may come.
    for piece in answer.chunks(7) {
        bench.answer(server, piece);
    }
    assert_eq!(bench.heard(server), query("SELECT 2"), "who waited comes first");
    bench.answer(server, &done());
    assert_eq!(bench.heard(other), done());
    assert_eq!(bench.heard(server), query("SELECT 3"));
    bench.answer(server, &done());
    assert_eq!(bench.heard(client), done(), "and nothing of what the pooler asked");
    let counters = bench.pool("db").counters;
    assert_eq!((counters.session_probes, counters.pins, counters.query_count), (1, 0, 3));
}

#[test]
fn a_server_that_holds_something_stays_with_its_client() {
    let (mut bench, client, server) = asked(1, "");
    bench.say(client, &query("SELECT 3"));
    for piece in held(&["lock"]).chunks(7) {
        bench.answer(server, piece);
    }
    assert_eq!(bench.heard(server), query("SELECT 3"), "what came meanwhile goes on");
    let other = bench.login();
    bench.say(other, &query("SELECT 2"));
    bench.answer(server, &done());
    assert_eq!(bench.heard(client), done());
    assert_eq!(bench.heard(server), b"");
    assert_eq!(bench.pool("db").sv_pinned, 1);
    assert_eq!(bench.engine.holder_rows()[0].reason, "advisory lock of the session");
    bench.say(client, &query("SELECT pg_advisory_unlock(1)"));
    bench.heard(server);
    bench.answer(server, &done());
    assert!(bench.heard(server).windows(8).any(|part| part == b"pg_locks"), "it is asked again");
    bench.answer(server, &held(&[]));
    assert_eq!(bench.heard(server), query("SELECT 2"));
    assert_eq!(bench.pool("db").sv_pinned, 0);
}

#[test]
fn a_client_that_leaves_takes_what_it_holds_with_it() {
    for is_asked in [true, false] {
        let (mut bench, client, server) = asked(1, "");
        if !is_asked {
            bench.answer(server, &held(&["lock"]));
        }
        let other = bench.login();
        bench.say(other, &query("SELECT 2"));
        bench.end(client);
        if is_asked {
            assert_eq!(bench.heard(server), b"", "the answer is due still");
            bench.engine.on_cancel_ended(&mut bench.wire, server);
            bench.answer(server, &held(&["lock"]));
        }
        assert_eq!(bench.heard(server), query("DISCARD ALL"));
        bench.answer(server, &done());
        assert_eq!(bench.heard(server), query("SELECT 2"));
        assert_eq!(bench.pool("db").sv_pinned, 0);
    }
}

#[test]
fn a_late_cancel_that_hits_the_question_costs_nobody_anything() {
    let (mut bench, client, server) = asked(1, "");
    for _ in 0..3 {
        bench.answer(server, &cancelled());
        assert!(bench.heard(server).starts_with(b"Q"), "it is asked again");
    }
    bench.answer(server, &held(&[]));
    bench.say(client, &query("SELECT 3"));
    assert_eq!(bench.heard(server), query("SELECT 3"));
    // But not without end.
    let (mut bench, client, server) = asked(1, "");
    for _ in 0..4 {
        bench.answer(server, &cancelled());
    }
    assert!(bench.heard(client).starts_with(b"E"));
    assert!(bench.is_closed(client));
    assert!(bench.heard(server).ends_with(&query("DISCARD ALL")));
}

#[test]
fn a_cancel_request_while_the_server_is_asked_cancels_nothing() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let client = bench.login();
    bench.say(client, &query(LOCK));
    let server = bench.only_server();
    bench.answer(server, &done());
    bench.cancel(client);
    assert!(bench.wire.cancels.is_empty());
}

#[test]
fn a_notification_during_the_question_is_the_clients() {
    let (mut bench, client, server) = asked(1, "");
    let notification = message(b'A', b"\0\0\0\x01news\0\0");
    bench.answer(server, &notification);
    assert_eq!(bench.heard(client), notification);
    bench.answer(server, &[&notification[..], &held(&["listen"]), &notification].concat());
    assert_eq!(bench.heard(client), notification.repeat(2));
}

#[test]
fn at_most_all_servers_but_one_stay_with_clients() {
    let (mut bench, client, server) = asked(2, "");
    bench.answer(server, &held(&["lock"]));
    let second = bench.login();
    bench.say(second, &query(LOCK));
    let other_server = bench.open();
    assert_eq!(bench.heard(other_server), query(LOCK));
    bench.answer(other_server, &done());
    bench.heard(second);
    bench.heard(other_server);
    bench.answer(other_server, &held(&["lock"]));
    let told = bench.heard(second);
    assert!(told.starts_with(b"E") && told.windows(6).any(|part| part == b"C53H02"));
    assert!(bench.is_closed(second) && !bench.is_closed(client));
    assert_eq!(bench.heard(other_server), query("DISCARD ALL"), "the lock of the one too many goes");
    let pool = bench.pool("db");
    assert_eq!((pool.sv_pinned, pool.counters.pins, pool.counters.pin_refusals), (1, 1, 1));
}

#[test]
fn a_stop_that_waits_for_transactions_does_not_wait_for_who_would_keep_its_server() {
    let (mut bench, client, server) = asked(1, "");
    bench.engine.shut_down(&mut bench.wire, pooling::Shutdown::WaitForServers);
    bench.answer(server, &held(&["lock"]));
    assert!(bench.is_closed(client));
    // Nor for who keeps one already.
    let (mut bench, client, server) = asked(1, "");
    bench.answer(server, &held(&["lock"]));
    bench.engine.shut_down(&mut bench.wire, pooling::Shutdown::WaitForServers);
    assert!(bench.is_closed(client));
    let (mut bench, client, server) = asked(1, "");
    bench.answer(server, &held(&["lock"]));
    bench.say(client, &query("SELECT 1"));
    bench.engine.shut_down(&mut bench.wire, pooling::Shutdown::WaitForServers);
    assert!(!bench.is_closed(client), "it is at work");
    bench.answer(server, &done());
    assert!(bench.is_closed(client));
}

/// After a major upgrade behind the pooler, clients went on with the old server_version, or were refused.
/// supavisor #663
#[test]
fn clients_are_told_when_their_next_server_is_of_another_version() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let client = bench.login();
    let server = bench.only_server();
    bench.version = "18.0";
    bench.end(server);
    bench.say(client, &query("SELECT 1"));
    let server = bench.open();
    bench.answer(server, &done());
    let told = message(b'S', b"server_version\x0018.0\0");
    assert_eq!(bench.heard(client), [told.clone(), done()].concat());
    bench.say(client, &query("SELECT 1"));
    bench.answer(server, &done());
    assert_eq!(bench.heard(client), done(), "once");
    // The greeting is the new server's.
    let next = bench.accept();
    bench.say(next, &super::bench::startup("db"));
    let greeting = bench.heard(next);
    assert!(greeting.windows(told.len()).any(|part| part == told));
}
