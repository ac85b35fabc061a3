//! Who waits, who need not, and who is refused.

use super::bench::{Bench, IN_TRANSACTION, config, config_of, done, message, query, startup};
use overload::cause::Cause;
use std::time::Duration;

/// Three servers at rest, so long that they have to be tested.
fn three_rested(
    extra: &str,
) -> (Bench, Vec<pooling::connection::ClientId>, Vec<pooling::connection::ServerId>) {
    let mut bench = Bench::new(config(&format!("default_pool_size = 3\n{extra}")));
    let first = bench.connect("db");
    let mut servers = vec![bench.open()];
    bench.heard(first);
    let clients = vec![first, bench.login(), bench.login()];
    for &client in &clients {
        bench.say(client, &query("SELECT 1"));
    }
    while !bench.wire.opens.is_empty() {
        servers.push(bench.open());
    }
    for &server in &servers {
        bench.answer(server, &done());
        bench.heard(server);
    }
    for &client in &clients {
        bench.heard(client);
    }
    assert_eq!(bench.pool("db").sv_idle, 3);
    bench.pass(Duration::from_secs(60));
    (bench, clients, servers)
}

/// One server that has rested for long, and a client that asks: the server is being tested.
fn one_tested() -> (Bench, pooling::connection::ServerId) {
    let mut bench = Bench::new(config(""));
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query("SELECT 1"));
    bench.answer(server, &done());
    bench.pass(Duration::from_secs(60));
    bench.say(client, &query("SELECT 2"));
    assert_eq!(bench.pool("db").sv_tested, 1);
    assert!(bench.wire.opens.is_empty());
    (bench, server)
}

#[test]
fn each_of_several_clients_gets_a_rested_server_of_its_own() {
    let (mut bench, clients, servers) = three_rested("");
    for &client in &clients {
        bench.say(client, &query("BEGIN"));
    }
    assert_eq!(bench.pool("db").sv_tested, 3, "one test for each that waits");
    for &server in &servers {
        bench.heard(server);
        bench.answer(server, &done());
        assert_eq!(bench.heard(server), query("BEGIN"));
    }
    assert_eq!(bench.pool("db").cl_waiting, 0);
}

#[test]
fn a_pool_does_not_grow_because_a_rested_server_is_tested() {
    let mut bench = Bench::new(config("server_check_delay = 0\n"));
    let client = bench.connect("db");
    let server = bench.open();
    for _ in 0..5 {
        bench.say(client, &query("SELECT 1"));
        if bench.pool("db").sv_tested > 0 {
            bench.answer(server, &done());
        }
        bench.answer(server, &done());
        bench.due();
    }
    assert!(bench.wire.opens.is_empty(), "one server does for one client");
}

#[test]
fn a_test_without_an_answer_does_not_hold_up_the_client() {
    let (mut bench, _) = one_tested();
    bench.pass(Duration::from_millis(500));
    let other = bench.open();
    assert_eq!(bench.heard(other), query("SELECT 2"));
}

#[test]
fn a_long_pipeline_of_refused_requests_is_refused_without_an_end_of_the_stack() {
    let mut bench = Bench::new(config("server_login_retry = 1\n"));
    let client = bench.connect("db");
    let server = bench.open();
    bench.heard(client);
    bench.end(server);
    bench.say(client, &query("SELECT 1"));
    for _ in 0..20 {
        while !bench.wire.opens.is_empty() {
            bench.fail(Cause::Refused);
        }
        bench.pass(Duration::from_millis(300));
    }
    while !bench.wire.opens.is_empty() {
        bench.fail(Cause::Refused);
    }
    bench.heard(client);
    let count = 10_000;
    bench.say(client, &query("").repeat(count));
    for _ in 0..count {
        while !bench.wire.opens.is_empty() {
            bench.fail(Cause::Refused);
        }
        bench.pass(Duration::from_millis(1));
    }
    let heard = bench.heard(client);
    assert_eq!(heard.windows(6).filter(|window| *window == b"Z\0\0\0\x05I").count(), count);
}

#[test]
fn the_first_client_of_a_pool_makes_room_under_a_full_cap() {
    let databases = "db = host=127.0.0.1 user=u\nother = host=127.0.0.1 user=u\n";
    let mut bench = Bench::new(config_of(databases, "max_user_connections = 1\n"));
    bench.connect("db");
    let server = bench.open();
    assert_eq!(bench.pool("db").sv_idle, 1);
    let second = bench.connect("other");
    assert_eq!(bench.pool("db").sv_closing, 1, "the idle server of the other pool goes");
    bench.end(server);
    bench.open();
    assert!(bench.heard(second).ends_with(b"Z\0\0\0\x05I"));
}

#[test]
fn a_request_that_came_with_the_login_does_not_open_a_server_too_many() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let client = bench.accept();
    bench.say(client, &[startup("db"), query("SELECT 1")].concat());
    let server = bench.open();
    assert!(bench.wire.opens.is_empty(), "the pool's size is one");
    assert_eq!(bench.heard(server), query("SELECT 1"));
}

#[test]
fn a_client_that_was_refused_is_idle_from_then_on() {
    let mut bench = Bench::new(config("default_pool_size = 1\nclient_idle_timeout = 10\n"));
    let holder = bench.connect("db");
    let server = bench.open();
    let waiter = bench.login();
    bench.say(holder, &query("BEGIN"));
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.say(waiter, &query("SELECT 1"));
    bench.pass(Duration::from_secs(11));
    bench.cancel(waiter);
    bench.pass(Duration::from_secs(9));
    assert!(!bench.is_closed(waiter));
    bench.pass(Duration::from_secs(2));
    assert!(bench.is_closed(waiter), "client_idle_timeout holds for it");
}

#[test]
fn a_minimum_of_servers_that_are_used_once_is_not_replaced_unused() {
    let mut bench = Bench::new(config("server_lifetime = 0\nmin_pool_size = 1\nserver_idle_timeout = 5\n"));
    bench.open();
    for _ in 0..10 {
        bench.pass(Duration::from_secs(3));
    }
    assert_eq!(bench.pool("db").sv_idle, 1);
    assert_eq!(bench.pool("db").counters.server_opens, 1);
}

#[test]
fn one_dead_server_among_rested_ones_does_not_hold_up_the_client() {
    let (mut bench, clients, servers) = three_rested("");
    bench.say(clients[0], &query("SELECT 2"));
    // The server tested first does not answer; the pool is full, and the others are as good.
    bench.pass(Duration::from_millis(200));
    for &server in &servers[..2] {
        if bench.heard(server) == query("") {
            bench.answer(server, &done());
            assert_eq!(bench.heard(server), query("SELECT 2"));
            return;
        }
    }
    panic!("no other server has been asked");
}

/// A start-up packet of a client with this application name.
fn startup_as(name: &str) -> Vec<u8> {
    startup(&format!("db\0application_name\0{name}"))
}

#[test]
fn values_that_no_server_has_taken_yet_are_set_before_the_request_runs() {
    let mut bench = Bench::new(config(""));
    let client = bench.accept();
    bench.say(client, &startup_as("mine"));
    let server = bench.open();
    bench.heard(client);
    bench.say(client, &query("SELECT 1"));
    let set = query("SET \"application_name\"='mine';");
    assert_eq!(bench.heard(server), set, "the request waits for the answer to that");
    bench.say(client, &query("SELECT 2"));
    assert_eq!(bench.heard(server), b"", "and so does what follows it");
    bench.answer(server, &[message(b'S', b"application_name\0mine\0"), done()].concat());
    assert_eq!(bench.heard(server), [query("SELECT 1"), query("SELECT 2")].concat());
    bench.answer(server, &[done(), done()].concat());
    assert_eq!(bench.heard(client), [done(), done()].concat(), "it gets its own answers alone");
    bench.say(client, &query("SELECT 3"));
    assert_eq!(bench.heard(server), query("SELECT 3"), "once is enough");
}

#[test]
fn values_that_a_server_has_taken_before_go_ahead_of_the_request_in_one_write() {
    let mut bench = Bench::new(config(""));
    let names = ["mine", "yours", "mine"];
    let clients = names.map(|name| {
        let client = bench.accept();
        bench.say(client, &startup_as(name));
        client
    });
    let server = bench.open();
    for (client, name) in clients.into_iter().zip(names).take(2) {
        bench.say(client, &query("SELECT 1"));
        let report = message(b'S', format!("application_name\0{name}\0").as_bytes());
        bench.answer(server, &[report, done()].concat());
        bench.answer(server, &done());
        bench.heard(client);
    }
    bench.heard(server);
    bench.say(clients[2], &query("SELECT 1"));
    let set = query("SET \"application_name\"='mine';");
    assert_eq!(bench.heard(server), [set, query("SELECT 1")].concat());
}

#[test]
fn a_request_does_not_run_when_its_parameters_cannot_be_set() {
    let mut bench = Bench::new(config(""));
    let client = bench.accept();
    bench.say(client, &startup_as("mine"));
    let server = bench.open();
    bench.heard(client);
    bench.say(client, &query("DELETE"));
    bench.heard(server);
    bench.answer(server, &[message(b'E', b"SERROR\0C22023\0Mno\0\0"), message(b'Z', b"I")].concat());
    assert_eq!(bench.heard(server), query("DISCARD ALL"), "the request is not sent");
    let farewell = bench.heard(client);
    assert!(farewell.starts_with(b"E") && farewell.windows(6).any(|part| part == b"C22023"));
}

#[test]
fn a_waiter_that_says_goodbye_is_out_of_the_line_at_once() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let holder = bench.connect("db");
    let server = bench.open();
    let waiter = bench.login();
    bench.say(holder, &query("BEGIN"));
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.say(waiter, &query("SELECT 1"));
    assert_eq!(bench.pool("db").cl_waiting, 1);
    bench.say(waiter, &message(b'X', b""));
    assert_eq!(bench.pool("db").cl_waiting, 0);
    assert_eq!(bench.pool("db").counters.dead_waiters, 1);
}

#[test]
fn a_server_that_fails_its_test_is_replaced_in_the_same_turn() {
    let (mut bench, server) = one_tested();
    bench.answer(server, &[message(b'E', b"SERROR\0C25006\0Mno\0\0"), b"Z\0\0\0\x05I".to_vec()].concat());
    bench.due();
    let next = bench.open();
    assert_eq!(bench.heard(next), query("SELECT 2"));
}

#[test]
fn a_pool_that_waits_for_the_login_of_another_is_next() {
    let databases = "db = host=127.0.0.1 user=u\nother = host=127.0.0.1 user=u\n";
    let mut bench = Bench::new(config_of(databases, "server_login_concurrency = 1\nserver_login_rate = 0\n"));
    bench.connect("db");
    bench.connect("other");
    assert_eq!(bench.wire.opens.len(), 1, "one login at a time");
    bench.open();
    assert_eq!(bench.wire.opens.len(), 1, "and then the other's");
}
