//! The pool modes beside transaction pooling.

use super::bench::{Bench, IN_TRANSACTION, READY, config, done, message, query};
use std::time::Duration;

#[test]
fn a_session_keeps_its_server_until_it_ends_and_the_next_one_gets_it_clean() {
    let mut bench = Bench::new(config("pool_mode = session\ndefault_pool_size = 1\nquery_wait_notify = 0\n"));
    let first = bench.login();
    let second = bench.login();
    bench.say(first, &query("SELECT 1"));
    let server = bench.only_server();
    bench.heard(server);
    bench.answer(server, &done());
    assert_eq!(bench.heard(first), done());
    bench.say(second, &query("SELECT 2"));
    assert_eq!(bench.heard(server), b"", "the server is the first session's");
    bench.pass(Duration::from_secs(60));
    bench.say(first, &query("SELECT 3"));
    assert_eq!(bench.heard(server), query("SELECT 3"));
    bench.answer(server, &done());
    bench.say(first, &message(b'X', b""));
    assert_eq!(bench.heard(server), query("DISCARD ALL"));
    bench.answer(server, &done());
    assert_eq!(bench.heard(server), query("SELECT 2"));
    bench.answer(server, &done());
    assert_eq!(bench.heard(second), done());
    assert_eq!(bench.pool("db").pool_mode, "session");
}

#[test]
fn a_session_ends_with_the_operators_own_reset_query() {
    let mut bench = Bench::new(config("pool_mode = session\nserver_reset_query = DEALLOCATE ALL\n"));
    let client = bench.login();
    bench.say(client, &query("BEGIN"));
    let server = bench.only_server();
    bench.heard(server);
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.end(client);
    assert_eq!(bench.heard(server), [query("ROLLBACK"), query("DEALLOCATE ALL")].concat());
    bench.answer(server, &[done(), done()].concat());
    assert_eq!(bench.pool("db").sv_idle, 1);
}

#[test]
fn an_idle_session_holds_its_server_by_right_and_only_client_idle_timeout_ends_it() {
    let limits = "idle_transaction_timeout = 1\ntransaction_timeout = 2\nclient_idle_timeout = 30\n";
    let mut bench = Bench::new(config(&format!("pool_mode = session\n{limits}")));
    let client = bench.login();
    bench.say(client, &query("SELECT 1"));
    let server = bench.only_server();
    bench.heard(server);
    bench.answer(server, &done());
    bench.heard(client);
    bench.pass(Duration::from_secs(20));
    assert!(bench.engine.holder_rows().is_empty());
    assert!(!bench.is_closed(client), "neither limit of a transaction is for a session at rest");
    bench.pass(Duration::from_secs(11));
    bench.due();
    assert!(bench.is_closed(client));
    assert!(bench.heard(client).windows(19).any(|part| part == b"client_idle_timeout"));
}

#[test]
fn each_transaction_of_a_session_has_its_own_time() {
    let mut bench = Bench::new(config("pool_mode = session\ntransaction_timeout = 10\n"));
    let client = bench.login();
    for _ in 0..3 {
        bench.say(client, &query("SELECT 1"));
        let server = bench.only_server();
        bench.heard(server);
        bench.pass(Duration::from_secs(6));
        bench.answer(server, &done());
        assert_eq!(bench.heard(client), done());
    }
    assert_eq!(bench.pool("db").counters.xact_count, 3);
    assert_eq!(bench.pool("db").counters.xact_time_us, 18_000_000);
    bench.say(client, &query("SELECT 1"));
    bench.pass(Duration::from_secs(11));
    assert!(bench.is_closed(client));
}

#[test]
fn statement_mode_takes_single_statements_and_refuses_a_transaction() {
    let mut bench = Bench::new(config("pool_mode = statement\n"));
    let client = bench.login();
    bench.say(client, &query("SELECT 1"));
    let server = bench.only_server();
    bench.heard(server);
    bench.answer(server, &done());
    assert_eq!(bench.heard(client), done());
    assert_eq!(bench.pool("db").sv_idle, 1, "it is free after the statement");
    bench.say(client, &query("BEGIN"));
    bench.heard(server);
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    let told = bench.heard(client);
    let text = b"transaction blocks not allowed in statement pooling mode";
    assert!(told.windows(text.len()).any(|part| part == text));
    assert!(!told.ends_with(IN_TRANSACTION) && !told.ends_with(READY));
    assert!(bench.is_closed(client));
    assert_eq!(bench.heard(server), [query("ROLLBACK"), query("DISCARD ALL")].concat());
    bench.answer(server, &[done(), done()].concat());
    assert_eq!(bench.pool("db").sv_idle, 1);
}
