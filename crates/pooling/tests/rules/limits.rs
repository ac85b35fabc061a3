//! Limits on clients and on what they send, and the notices that they get.

use super::bench::{Bench, READY, config, config_of, done, message, query, startup};
use pooling::connection::ClientId;
use std::time::Duration;

const QUEUED: &str = "No server connection available in postgres backend, client being queued";

/// A client with its start-up packet sent as some user.
fn connect_as(bench: &mut Bench, user: &str, database: &str) -> ClientId {
    let mut body = 196_608u32.to_be_bytes().to_vec();
    body.extend(format!("user\0{user}\0database\0{database}\0\0").as_bytes());
    let mut packet = u32::try_from(body.len() + 4).expect("short").to_be_bytes().to_vec();
    packet.extend(body);
    let id = bench.accept();
    bench.say(id, &packet);
    id
}

fn says(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_database_has_no_more_clients_than_its_limit_and_others_are_not_counted() {
    let databases = "db = host=h user=u max_db_client_connections=2\nother = host=h user=u\n";
    let mut bench = Bench::new(config_of(databases, "max_db_client_connections = 1\n"));
    let first = connect_as(&mut bench, "ann", "db");
    let second = connect_as(&mut bench, "bob", "db");
    let third = connect_as(&mut bench, "cid", "db");
    let told = bench.heard(third);
    assert!(bench.is_closed(third) && says(&told, "C53300\0"), "{told:?}");
    assert!(says(&told, "client connections exceeded (max_db_client_connections)"));
    // The general limit, which is another database's.
    let elsewhere = connect_as(&mut bench, "ann", "other");
    assert!(!bench.is_closed(elsewhere));
    let too_many = connect_as(&mut bench, "ann", "other");
    assert!(bench.is_closed(too_many));
    assert_eq!(bench.engine.overview().clients_refused, 2);
    // A place that is free again may be taken.
    bench.end(first);
    let again = connect_as(&mut bench, "ann", "db");
    assert!(!bench.is_closed(again) && !bench.is_closed(second));
}

#[test]
fn a_user_has_no_more_clients_than_its_limit_over_all_databases() {
    let databases =
        "db = host=h user=u\nother = host=h user=u\n[users]\nbob = max_user_client_connections=1\n";
    let mut bench = Bench::new(config_of(databases, "max_user_client_connections = 2\n"));
    let first = connect_as(&mut bench, "ann", "db");
    let second = connect_as(&mut bench, "ann", "other");
    assert!(!bench.is_closed(first) && !bench.is_closed(second));
    let third = connect_as(&mut bench, "ann", "db");
    assert!(says(&bench.heard(third), "client connections exceeded (max_user_client_connections)"));
    // Both log in to the same pool, and are two users all the same.
    assert!(!{
        let bob = connect_as(&mut bench, "bob", "db");
        bench.is_closed(bob)
    });
    let second_bob = connect_as(&mut bench, "bob", "other");
    assert!(bench.is_closed(second_bob), "one is all that this user may have");
    bench.end(second);
    let again = connect_as(&mut bench, "ann", "db");
    assert!(!bench.is_closed(again));
}

#[test]
fn a_limit_that_a_reload_lowers_closes_nobody_and_lets_nobody_in() {
    let mut bench = Bench::new(config(""));
    let clients = [connect_as(&mut bench, "ann", "db"), connect_as(&mut bench, "ann", "db")];
    bench.engine.reload(&mut bench.wire, config("max_db_client_connections = 1\n"));
    assert!(clients.iter().all(|&client| !bench.is_closed(client)));
    bench.end(clients[0]);
    let refused = connect_as(&mut bench, "ann", "db");
    assert!(bench.is_closed(refused), "one is there still");
    bench.end(clients[1]);
    let admitted = connect_as(&mut bench, "ann", "db");
    assert!(!bench.is_closed(admitted));
}

#[test]
fn each_waiter_is_told_once_that_it_waits_and_nobody_else_is() {
    let mut bench = Bench::new(config("default_pool_size = 1\nquery_wait_notify = 5\n"));
    let holder = bench.login();
    let (first, second) = (bench.login(), bench.login());
    bench.say(holder, &query("BEGIN"));
    let server = bench.only_server();
    bench.say(first, &query("SELECT 1"));
    bench.pass(Duration::from_secs(3));
    bench.say(second, &query("SELECT 2"));
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.heard(first), b"", "not before its time");
    bench.pass(Duration::from_secs(1));
    let told = bench.heard(first);
    assert!(told.starts_with(b"N") && says(&told, QUEUED) && says(&told, "C00000\0"), "{told:?}");
    assert_eq!(bench.heard(second), b"");
    bench.pass(Duration::from_secs(3));
    assert!(says(&bench.heard(second), QUEUED));
    bench.pass(Duration::from_secs(30));
    assert_eq!([bench.heard(first), bench.heard(second), bench.heard(holder)], [b"", b"", b""]);
    // The next wait is another.
    bench.answer(server, &done());
    bench.answer(server, &done());
    bench.heard(first);
    bench.say(first, &query("SELECT 3"));
    bench.pass(Duration::from_secs(5));
    assert!(says(&bench.heard(first), QUEUED));
}

#[test]
fn a_client_that_waits_for_the_first_server_is_told_so_too() {
    let mut bench = Bench::new(config("query_wait_notify = 2\n"));
    let client = bench.connect("db");
    bench.heard(client);
    bench.pass(Duration::from_secs(2));
    let told = bench.heard(client);
    assert!(told.starts_with(b"N") && says(&told, QUEUED), "{told:?}");
    bench.open();
    assert!(bench.heard(client).ends_with(READY));
}

#[test]
fn the_operators_notice_comes_with_the_greeting() {
    let mut bench = Bench::new(config("login_notify_message = maintenance at noon\n"));
    let client = bench.connect("db");
    bench.open();
    let heard = bench.heard(client);
    assert!(says(&heard, "Mmaintenance at noon\0") && says(&heard, "SNOTICE\0"), "{heard:?}");
    assert!(heard.ends_with(READY), "before ReadyForQuery");
}

#[test]
fn simple_queries_are_refused_where_only_extended_ones_are_allowed() {
    let mut bench = Bench::new(config("disable_pqexec = 1\n"));
    let client = bench.login();
    let server = bench.only_server();
    bench.heard(server);
    bench.say(client, &query("SELECT 1"));
    assert!(says(&bench.heard(client), "PQexec disallowed") && bench.is_closed(client));
    assert_eq!(bench.heard(server), b"", "no server is spent on it");
    // In a transaction that began in the other way.
    let client = bench.login();
    let begin = [
        message(b'P', b"\0BEGIN\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ]
    .concat();
    bench.say(client, &begin);
    assert_eq!(bench.heard(server), begin);
    bench.say(client, &query("COMMIT"));
    assert!(says(&bench.heard(client), "PQexec disallowed") && bench.is_closed(client));
    assert!(!says(&bench.heard(server), "COMMIT"));
}

#[test]
fn a_message_longer_than_max_packet_size_ends_the_session_before_it_is_read() {
    let mut bench = Bench::new(config("max_packet_size = 1024\n"));
    let client = bench.login();
    let server = bench.only_server();
    // Its length counts itself.
    let longest = query(&"x".repeat(1024 - 4 - 1));
    bench.say(client, &longest);
    assert_eq!(bench.heard(server), longest);
    bench.answer(server, &done());
    bench.heard(client);
    bench.say(client, &query(&"x".repeat(1024 - 4))[..5]);
    assert!(bench.is_closed(client), "its header tells");
    assert!(says(&bench.heard(client), "C08P01\0"));
    assert_eq!(bench.heard(server), b"");
}

#[test]
fn a_client_with_half_a_start_up_packet_counts_under_no_limit() {
    let mut bench = Bench::new(config("max_db_client_connections = 1\nmax_user_client_connections = 1\n"));
    let half = bench.accept();
    bench.say(half, &startup("db")[..9]);
    let client = bench.login();
    assert!(!bench.is_closed(client) && !bench.is_closed(half));
}
