//! What the flight recorder keeps of what happens to pools, clients and servers.

use super::bench::{Bench, config, done, query};
use overload::cause::Cause;
use pooling::snapshot::EventRow;
use std::time::Duration;

fn events(bench: &Bench) -> Vec<(&'static str, &'static str, u64)> {
    bench.engine.event_rows().iter().map(|row| (row.event, row.cause, row.count)).collect()
}

fn last(bench: &Bench) -> EventRow {
    bench.engine.event_rows().pop().expect("an event")
}

#[test]
fn a_healthy_pool_leaves_no_events() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let (first, second) = (bench.login(), bench.login());
    let server = bench.only_server();
    for _ in 0..50 {
        // The second one waits each time.
        bench.say(first, &query("SELECT 1"));
        bench.say(second, &query("SELECT 2"));
        bench.answer(server, &done());
        bench.answer(server, &done());
    }
    assert_eq!(events(&bench), []);
}

#[test]
fn an_outage_is_remembered_from_its_beginning_to_its_end() {
    let mut bench = Bench::new(config("server_login_retry = 2\n"));
    let client = bench.login();
    let server = bench.only_server();
    bench.end(server);
    bench.say(client, &query("SELECT 1"));
    let mut attempts = 0;
    while !bench.wire.opens.is_empty() {
        bench.fail(Cause::Refused);
        attempts += 1;
        bench.pass(Duration::from_secs(1));
    }
    assert!(attempts > 1);
    bench.heard(client);
    bench.say(client, &query("SELECT 2"));
    bench.pass(Duration::from_secs(1));
    bench.open();
    assert_eq!(
        events(&bench),
        [
            ("server_closed", "server_closed", 1),
            ("login_failed", "refused", attempts),
            ("request_refused", "", 1),
            ("server_back", "", 1),
        ]
    );
    let back = last(&bench);
    assert_eq!((&*back.database, &*back.user), ("db", "u"));
    assert!(back.detail.starts_with("after ") && back.detail.ends_with(" s without"), "{}", back.detail);
}

#[test]
fn who_gives_up_waiting_and_what_an_operator_does_is_remembered() {
    let mut bench = Bench::new(config("default_pool_size = 1\nquery_wait_timeout = 3\n"));
    let (holder, waiter) = (bench.login(), bench.login());
    bench.say(holder, &query("SELECT pg_sleep(60)"));
    bench.say(waiter, &query("SELECT 1"));
    bench.pass(Duration::from_secs(3));
    assert!(bench.is_closed(waiter));
    bench.engine.reload(&mut bench.wire, config("default_pool_size = 2\n"));
    bench.engine.shut_down(&mut bench.wire, pooling::Shutdown::WaitForClients);
    assert_eq!(
        events(&bench),
        [("wait_timed_out", "", 1), ("reloaded", "", 1), ("stopping", "wait_for_clients", 1)]
    );
    assert_eq!(&*last(&bench).database, "", "it concerns no pool");
}

#[test]
fn connections_that_grow_old_are_no_events() {
    let mut bench = Bench::new(config("server_idle_timeout = 5\n"));
    bench.login();
    let server = bench.only_server();
    bench.pass(Duration::from_secs(6));
    bench.end(server);
    assert_eq!(events(&bench), []);
}

#[test]
fn clients_turned_away_by_a_limit_are_one_event() {
    let mut bench = Bench::new(config("max_client_conn = 1\n"));
    bench.login();
    for _ in 0..20 {
        let refused = bench.connect("db");
        assert!(bench.is_closed(refused));
    }
    assert_eq!(events(&bench), [("client_refused", "", 20)]);
}
