//! How large a pool is, how long it lives, and when its servers are replaced or reset.

use super::bench::{Bench, READY, config, config_of, done, message, query};
use overload::cause::Cause;
use pooling::MAX_POOLS;
use pooling::connection::{ClientId, ConnectionId, ServerId};
use std::time::Duration;

/// A full pool of one, held, with two clients in line.
fn full_with_two_waiters(extra: &str) -> (Bench, ServerId, [ClientId; 2]) {
    let mut bench = Bench::new(config(&format!("default_pool_size = 1\nquery_wait_notify = 0\n{extra}")));
    let holder = bench.login();
    let waiters = [bench.login(), bench.login()];
    bench.say(holder, &query("BEGIN"));
    let server = bench.only_server();
    bench.heard(server);
    for waiter in waiters {
        bench.say(waiter, &query("SELECT 1"));
    }
    (bench, server, waiters)
}

#[test]
fn the_reserve_is_opened_for_those_who_have_waited_for_its_timeout_and_no_further() {
    let (mut bench, _, waiters) = full_with_two_waiters("reserve_pool_size = 1\nreserve_pool_timeout = 3\n");
    bench.pass(Duration::from_millis(2_999));
    assert!(bench.wire.opens.is_empty(), "not before its time");
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.wire.opens.len(), 1, "two wait, and the reserve has one place");
    let extra = bench.open();
    assert_eq!(bench.heard(extra), query("SELECT 1"));
    bench.answer(extra, &done());
    assert!(bench.heard(waiters[0]).ends_with(READY));
    // It goes on to the next, who has waited no longer for it.
    assert_eq!(bench.heard(extra), query("SELECT 1"));
    bench.answer(extra, &done());
    bench.pass(Duration::from_secs(10));
    assert!(bench.wire.opens.is_empty() && !bench.is_closed(extra), "kept until it has rested for long");
    assert_eq!(bench.pool("db").sv_idle, 1);
}

#[test]
fn a_reserve_of_two_serves_each_who_is_overdue_and_not_those_who_are_not() {
    let (mut bench, _, _) = full_with_two_waiters("reserve_pool_size = 5\nreserve_pool_timeout = 3\n");
    bench.pass(Duration::from_secs(2));
    let late = bench.login();
    bench.say(late, &query("SELECT 2"));
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.wire.opens.len(), 2, "the third has waited for one second only");
    bench.pass(Duration::from_secs(2));
    assert_eq!(bench.wire.opens.len(), 3);
    bench.pass(Duration::from_secs(9));
    assert_eq!(bench.wire.opens.len(), 3, "a login is under way for each");
}

#[test]
fn without_a_timeout_there_is_no_reserve() {
    let (mut bench, _, _) = full_with_two_waiters("reserve_pool_size = 5\nreserve_pool_timeout = 0\n");
    bench.pass(Duration::from_secs(60));
    assert!(bench.wire.opens.is_empty());
}

#[test]
fn the_reserve_stays_under_the_databases_cap() {
    let (mut bench, _, _) =
        full_with_two_waiters("reserve_pool_size = 5\nreserve_pool_timeout = 1\nmax_db_connections = 2\n");
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.wire.opens.len(), 1);
    bench.open();
    bench.pass(Duration::from_secs(5));
    assert!(bench.wire.opens.is_empty(), "the cap is reached");
}

#[test]
fn the_reserve_is_the_users_before_the_databases_before_the_general_one() {
    for (line, users, expected) in [
        ("", "", 1),
        (" reserve_pool=2", "", 2),
        (" reserve_pool_size=2", "[users]\nu = reserve_pool_size=3\n", 3),
        (" reserve_pool_size=2", "[users]\nu = reserve_pool_size=0\n", 0),
    ] {
        let extra = "default_pool_size = 1\nreserve_pool_size = 1\nreserve_pool_timeout = 1\n";
        let mut bench = Bench::new(config_of(&format!("db = host=127.0.0.1 user=u{line}\n{users}"), extra));
        let clients: Vec<ClientId> = (0..6).map(|_| bench.login()).collect();
        for client in clients {
            bench.say(client, &query("BEGIN"));
        }
        bench.pass(Duration::from_secs(2));
        assert_eq!(bench.wire.opens.len(), expected, "{line} {users}");
    }
}

#[test]
fn servers_opened_at_once_are_not_replaced_at_once() {
    let mut bench = Bench::new(config(
        "default_pool_size = 10\nmin_pool_size = 10\nserver_lifetime = 100\nserver_check_delay = 1000\n",
    ));
    while !bench.wire.opens.is_empty() {
        bench.open();
    }
    assert_eq!(bench.pool("db").sv_idle, 10);
    bench.pass(Duration::from_secs(89));
    assert!(bench.wire.opens.is_empty(), "nine tenths of a lifetime are certain");
    let mut at_once = 0;
    for _ in 0..22 {
        bench.pass(Duration::from_millis(500));
        end_shut(&mut bench);
        at_once = at_once.max(bench.wire.opens.len());
        while !bench.wire.opens.is_empty() {
            bench.open();
        }
    }
    assert_eq!(bench.pool("db").counters.server_opens, 20, "each was replaced once");
    assert!(at_once <= 2, "{at_once} at once");
}

#[test]
fn a_lifetime_that_a_reload_shortens_counts_for_servers_that_are_there() {
    let mut bench = Bench::new(config(""));
    bench.login();
    let server = bench.only_server();
    bench.pass(Duration::from_secs(200));
    let shorter = config_of("db = host=127.0.0.1 user=u server_lifetime=100\n", "");
    bench.engine.reload(&mut bench.wire, shorter);
    bench.pass(Duration::from_secs(1));
    assert!(bench.wire.shut.contains(&server.into()));
}

#[test]
fn a_minimum_above_a_cap_neither_opens_nor_closes_anything_at_rest() {
    let users = "[users]\nu = max_user_connections=2\n";
    let databases = format!("db = host=h user=u min_pool_size=5\nother = host=h user=u\n{users}");
    let mut bench = Bench::new(config_of(&databases, "server_idle_timeout = 10\n"));
    let mut opens = 0;
    for _ in 0..200 {
        bench.pass(Duration::from_secs(1));
        while !bench.wire.opens.is_empty() {
            opens += 1;
            bench.open();
        }
    }
    assert_eq!(opens, 2, "as many as the user may have, and no more for 200 s");
    // It does not keep those out who wait in another pool under the same cap.
    let client = bench.connect("other");
    let victim = bench.wire.shut.iter().copied().find(|id| !bench.is_closed(*id)).expect("one makes room");
    bench.end(victim);
    bench.due();
    bench.open();
    assert!(bench.heard(client).ends_with(READY));
}

#[test]
fn a_minimum_is_kept_for_clients_and_for_users_that_are_known_and_not_for_others() {
    for (line, kept) in [("db = host=127.0.0.1 user=u\n", 2), ("* = host=127.0.0.1 user=u\n", 0)] {
        let mut bench = Bench::new(config_of(line, "min_pool_size = 2\nserver_idle_timeout = 10\n"));
        let client = bench.connect("db");
        for round in 0..30 {
            bench.pass(Duration::from_secs(1));
            while !bench.wire.opens.is_empty() {
                bench.open();
            }
            if round == 5 {
                assert_eq!(bench.pool("db").sv_idle, 2, "{line}");
                bench.end(client);
            }
        }
        assert_eq!(bench.pool("db").sv_idle, kept, "{line}");
    }
}

/// Ends a server that has been told to go.
fn end_shut(bench: &mut Bench) {
    for row in bench.engine.server_rows().into_iter().filter(|row| row.state == "closing") {
        bench.end(ConnectionId::from_token(row.id));
    }
}

/// Time passes, and whatever is due is done, in as many turns as that takes.
fn settle(bench: &mut Bench, span: Duration) {
    bench.pass(span);
    for _ in 0..1_000 {
        bench.due();
    }
}

#[test]
fn pools_that_nobody_uses_are_forgotten_and_cost_nothing_meanwhile() {
    let count = 10_000;
    let mut bench = Bench::new(config_of(
        "* = host=127.0.0.1 user=u\nkept = host=127.0.0.1 user=u\n",
        "max_client_conn = 50000\nserver_idle_timeout = 10\nautodb_idle_timeout = 300\nserver_login_rate = 0\n",
    ));
    for name in (0..count).map(|number| format!("made_up_{number}")).chain(["kept".to_owned()]) {
        let client = bench.connect(&name);
        bench.open();
        bench.end(client);
    }
    for _ in 0..20 {
        settle(&mut bench, Duration::from_secs(1));
        end_shut(&mut bench);
    }
    assert_eq!(bench.engine.pool_rows().len(), count + 1);
    assert!(bench.engine.server_rows().is_empty(), "the servers have gone by their own limit");
    // What clients and servers that are gone have left behind is looked at once more.
    settle(&mut bench, Duration::from_secs(120));
    // From then on nothing is looked at before its time.
    let next = bench.engine.next_deadline();
    for _ in 0..10 {
        bench.pass(Duration::from_secs(10));
        assert_eq!(bench.engine.next_deadline(), next);
    }
    settle(&mut bench, Duration::from_secs(80));
    let left: Vec<String> = bench.engine.pool_rows().iter().map(|row| row.database.to_string()).collect();
    assert_eq!(left, ["kept"], "a name with a line of its own stays");
    // A place that is free is taken again.
    let client = bench.connect("made_up_1");
    bench.open();
    assert!(bench.heard(client).ends_with(READY));
    assert_eq!(bench.pool("made_up_1").cl_active, 1);
}

#[test]
fn pool_idle_timeout_is_for_every_pool_and_not_for_one_with_a_client() {
    let mut bench = Bench::new(config("pool_idle_timeout = 60\nserver_idle_timeout = 10\n"));
    let client = bench.login();
    let server = bench.only_server();
    bench.end(server);
    bench.pass(Duration::from_secs(100));
    assert_eq!(bench.engine.pool_rows().len(), 1, "a client without a server is a client");
    bench.end(client);
    bench.pass(Duration::from_secs(59));
    assert_eq!(bench.engine.pool_rows().len(), 1);
    bench.pass(Duration::from_secs(1));
    assert!(bench.engine.pool_rows().is_empty());
    assert_eq!(bench.engine.next_deadline(), None, "nothing is left to look at");
}

#[test]
fn a_pool_that_a_reload_gives_a_minimum_is_not_forgotten_with_its_servers() {
    let mut bench = Bench::new(config("pool_idle_timeout = 60\n"));
    let client = bench.login();
    let server = bench.only_server();
    bench.end(server);
    bench.end(client);
    bench.pass(Duration::from_secs(30));
    bench.engine.reload(&mut bench.wire, config("pool_idle_timeout = 60\nmin_pool_size = 1\n"));
    bench.open();
    bench.pass(Duration::from_secs(300));
    assert_eq!(bench.pool("db").sv_idle, 1);
    // Without one again, and without its server, it goes.
    bench.engine.reload(&mut bench.wire, config("pool_idle_timeout = 60\n"));
    let server = bench.only_server();
    bench.end(server);
    bench.pass(Duration::from_secs(60));
    assert!(bench.engine.pool_rows().is_empty());
}

#[test]
fn addresses_and_caps_of_pools_that_are_forgotten_are_forgotten_too() {
    let mut bench = Bench::new(config_of("db = host=h0 user=u\n", "max_db_connections = 3\n"));
    for number in 1..50 {
        let client = bench.connect("db");
        if !bench.wire.opens.is_empty() {
            bench.open();
        }
        bench.end(client);
        let new = config_of(&format!("db = host=h{number} user=u\n"), "max_db_connections = 3\n");
        bench.engine.reload(&mut bench.wire, new);
        end_shut(&mut bench);
    }
    let debug = format!("{:?}", bench.engine);
    assert!(debug.contains("addresses: 1") && debug.contains("caps: 1"), "{debug}");
}

#[test]
fn a_reset_after_each_transaction_comes_before_the_next_client() {
    let extra = "default_pool_size = 1\nserver_reset_query_always = 1\nserver_reset_query = RESET ALL\n";
    let mut bench = Bench::new(config(extra));
    let (first, second) = (bench.login(), bench.login());
    let server = bench.only_server();
    bench.say(first, &query("SET x = 1"));
    bench.say(second, &query("SELECT 2"));
    bench.heard(server);
    bench.answer(server, &done());
    assert!(bench.heard(first).ends_with(READY), "its answer does not wait for the reset");
    assert_eq!(bench.heard(server), query("RESET ALL"));
    assert!(bench.wire.opens.is_empty());
    bench.answer(server, &done());
    assert_eq!(bench.heard(server), query("SELECT 2"));
    // One that dies leaves more than the operator's reset may clear.
    bench.end(second);
    bench.engine.on_cancel_ended(&mut bench.wire, server);
    bench.answer(server, &done());
    assert_eq!(bench.heard(server), query("DISCARD ALL"));
}

#[test]
fn a_replaced_server_of_a_session_goes_at_the_end_of_the_session_or_with_fast_close_of_the_transaction() {
    for fast in [false, true] {
        let extra = format!("pool_mode = session\nserver_fast_close = {}\n", u8::from(fast));
        let mut bench = Bench::new(config(&extra));
        let (resting, busy) = (bench.login(), bench.login());
        bench.say(resting, &query("SELECT 1"));
        let first = bench.only_server();
        bench.answer(first, &done());
        bench.say(busy, &query("BEGIN"));
        let second = bench.open();
        bench.answer(second, &[message(b'C', b"BEGIN\0"), b"Z\0\0\0\x05T".to_vec()].concat());
        let elsewhere = config_of("db = host=127.0.0.2 user=u\n", &extra);
        bench.engine.reload(&mut bench.wire, elsewhere);
        assert_eq!(bench.is_closed(resting), fast);
        assert!(!bench.is_closed(busy), "its transaction goes on");
        bench.heard(busy);
        bench.say(busy, &query("COMMIT"));
        bench.answer(second, &done());
        let heard = bench.heard(busy);
        assert!(heard.starts_with(&done()), "the answer comes first");
        assert_eq!(bench.is_closed(busy), fast);
        let told = heard.windows(29).any(|window| window == b"database configuration change");
        assert_eq!(told, fast, "{heard:?}");
    }
}

#[test]
fn at_the_most_pools_the_one_that_was_unused_for_longest_makes_room_and_one_in_use_does_not() {
    let mut bench = Bench::new(config_of(
        "* = host=127.0.0.1 user=u\n",
        "max_client_conn = 50000\nautodb_idle_timeout = 0\nlog_pooler_errors = 0\nlog_connections = 0\n\
         log_disconnections = 0\nserver_login_rate = 0\n",
    ));
    let used = bench.connect("d0");
    bench.open();
    for number in 1..MAX_POOLS {
        let client = bench.connect(&format!("d{number}"));
        bench.end(client);
        // Nobody waits any more for its server, which has no database.
        bench.fail(Cause::NoSuchDatabase);
    }
    assert_eq!(bench.engine.pool_rows().len(), MAX_POOLS);
    let late = bench.connect("late");
    bench.open();
    assert!(bench.heard(late).ends_with(READY) && !bench.is_closed(used));
    let rows = bench.engine.pool_rows();
    assert_eq!(rows.len(), MAX_POOLS);
    let has = |name: &str| rows.iter().any(|row| &*row.database == name);
    assert!(has("d0") && !has("d1") && has("d2") && has("late"));
}
