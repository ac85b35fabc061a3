//! What becomes of servers that their clients have left, in the states that only a real server is in.

use super::bench::{Bench, IN_TRANSACTION, READY, config, config_of, done, message, query};
use overload::cause::Cause;
use pooling::Shutdown;
use std::time::Duration;

#[test]
fn a_copy_that_begins_after_its_client_has_left_is_ended() {
    for policy in ["finish", "cancel"] {
        let mut bench = Bench::new(config(&format!("client_disconnect = {policy}\n")));
        let client = bench.connect("db");
        let server = bench.open();
        bench.say(client, &query("COPY t FROM STDIN"));
        bench.end(client);
        bench.heard(server);
        bench.wire.cancels.clear();
        // A cancel request does nothing to a server that waits for data.
        bench.answer(server, &message(b'G', &[0, 0, 0]));
        assert!(bench.heard(server).starts_with(b"f"), "{policy}: the server waits for data for ever");
        bench.answer(server, &[message(b'E', b"SERROR\0C57014\0Mno\0\0"), READY.to_vec()].concat());
        if policy == "cancel" {
            bench.engine.on_cancel_ended(&mut bench.wire, server);
        }
        assert_eq!(bench.heard(server), query("DISCARD ALL"));
        bench.answer(server, &done());
        assert_eq!(bench.pool("db").sv_idle, 1, "{policy}");
    }
}

#[test]
fn an_extended_copy_that_begins_after_its_client_has_left_is_ended() {
    let mut bench = Bench::new(config("client_disconnect = finish\n"));
    let client = bench.connect("db");
    let server = bench.open();
    let batch = [
        message(b'P', b"\0COPY t FROM STDIN\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
    ]
    .concat();
    bench.say(client, &batch);
    bench.end(client);
    bench.heard(server);
    bench.answer(server, &[message(b'1', b""), message(b'2', b""), message(b'G', &[0, 0, 0])].concat());
    let heard = bench.heard(server);
    assert!(heard.starts_with(b"f") && heard.ends_with(&message(b'S', b"")));
    bench.answer(server, &[message(b'E', b"SERROR\0C57014\0Mno\0\0"), READY.to_vec()].concat());
    let row = bench.pool("db");
    assert_eq!(row.sv_used + row.sv_being_canceled, 0, "it is not stuck");
}

#[test]
fn a_query_that_may_finish_is_followed_by_a_round_trip_that_may_not_last_for_ever() {
    let mut bench = Bench::new(config("client_disconnect = finish\n"));
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query("SELECT slow"));
    bench.end(client);
    bench.pass(Duration::from_secs(3600));
    bench.heard(server);
    bench.answer(server, &done());
    assert_eq!(bench.heard(server), query("DISCARD ALL"));
    bench.pass(Duration::from_secs(11));
    assert_eq!(bench.pool("db").sv_closing, 1, "a server that does not answer is given up");
}

#[test]
fn the_connect_query_holds_for_the_next_client_too() {
    let config = config_of("db = host=127.0.0.1 user=u connect_query='SET ROLE guest'\n", "");
    let mut bench = Bench::new(config);
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query("BEGIN"));
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.heard(server);
    bench.end(client);
    let expected = [query("ROLLBACK"), query("DISCARD ALL"), query("SET ROLE guest")].concat();
    assert_eq!(bench.heard(server), expected);
    bench.answer(server, &[done(), done()].concat());
    assert_eq!(bench.pool("db").sv_idle, 0, "not before all three are answered");
    bench.answer(server, &done());
    assert_eq!(bench.pool("db").sv_idle, 1);
}

#[test]
fn a_server_that_has_said_goodbye_is_not_given_to_anyone() {
    let mut bench = Bench::new(config(""));
    let client = bench.connect("db");
    let server = bench.open();
    bench.answer(server, &message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mno\0\0"));
    assert_eq!(bench.pool("db").sv_idle, 0);
    bench.heard(server);
    bench.say(client, &query("SELECT 1"));
    assert_eq!(bench.heard(server), b"");
    bench.end(server);
    let next = bench.open();
    assert_eq!(bench.heard(next), query("SELECT 1"));
}

#[test]
fn a_server_on_its_way_out_counts_until_its_end_or_the_limit() {
    let mut bench = Bench::new(config("default_pool_size = 1\nserver_lifetime = 100\n"));
    let client = bench.connect("db");
    let server = bench.open();
    // The timer of its age is set; it is closed shortly before for another reason.
    bench.pass(Duration::from_secs(99));
    bench.answer(server, &message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mno\0\0"));
    bench.say(client, &query("SELECT 1"));
    bench.pass(Duration::from_secs(2));
    bench.pass(Duration::from_secs(50));
    assert_eq!(bench.pool("db").sv_closing, 1, "its backend may still live");
    assert!(bench.wire.opens.is_empty());
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.wire.opens.len(), 1, "after a minute it is given up");
}

#[test]
fn a_client_that_is_refused_during_a_stop_does_not_hold_it_up() {
    let mut bench = Bench::new(config(""));
    let client = bench.connect("db");
    let server = bench.open();
    bench.end(server);
    bench.say(client, &query("SELECT 1"));
    bench.engine.shut_down(&mut bench.wire, Shutdown::WaitForServers);
    assert!(!bench.is_closed(client), "a request in line is waited for");
    bench.fail(Cause::WrongPassword);
    assert!(bench.is_closed(client), "its request is refused, and nothing else is to come");
    assert!(bench.engine.is_finished());
}

#[test]
fn a_server_that_has_half_of_a_long_message_is_closed_without_a_word() {
    let mut bench = Bench::new(config("waiter_buffer = 4096\n"));
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query(&"x".repeat(9_000))[..5_000]);
    assert_eq!(bench.heard(server).len(), 5_000);
    bench.end(client);
    assert_eq!(bench.pool("db").sv_closing, 1);
    assert_eq!(bench.heard(server), b"", "it would be read as the rest of the message");
}

#[test]
fn a_message_that_may_be_held_is_never_sent_in_part() {
    let mut bench = Bench::new(config(""));
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query("BEGIN"));
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.heard(server);
    let insert = query("INSERT");
    bench.say(client, &[&insert[..], &insert[..7]].concat());
    assert_eq!(bench.heard(server), insert);
    bench.say(client, &insert[7..]);
    assert_eq!(bench.heard(server), insert);
}

#[test]
fn a_server_of_which_it_is_not_known_what_it_still_answers_is_closed() {
    let mut bench = Bench::new(config(""));
    let client = bench.connect("db");
    let server = bench.open();
    let batch = [
        message(b'P', b"\0COPY\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    bench.say(client, &batch.concat());
    bench.answer(server, &[message(b'1', b""), message(b'2', b""), message(b'G', &[0, 0, 0])].concat());
    bench.say(client, &[message(b'd', b"bad"), message(b'c', b""), message(b'S', b"")].concat());
    bench.answer(server, &[message(b'E', b"SERROR\0C22P02\0Mno\0\0"), READY.to_vec()].concat());
    assert_eq!(bench.pool("db").sv_closing, 1);
    assert!(!bench.is_closed(client));
}

#[test]
fn a_client_that_leaves_in_a_long_message_has_its_earlier_query_cancelled() {
    let mut bench = Bench::new(config("waiter_buffer = 4096\n"));
    let client = bench.login();
    bench.say(client, &query("SELECT slow"));
    let server = bench.only_server();
    let mut long = query(&"x".repeat(9_000));
    long.truncate(5_000);
    bench.say(client, &long);
    bench.end(client);
    assert_eq!(bench.wire.cancels.len(), 1, "the query is nobody's any more");
    assert_eq!(bench.pool("db").sv_closing, 1, "half a message has been sent: it cannot be used again");
    bench.engine.on_cancel_ended(&mut bench.wire, server);
}

#[test]
fn a_copy_without_data_is_named_as_a_holder() {
    let mut bench = Bench::new(config(""));
    let client = bench.login();
    bench.say(client, &query("COPY t FROM STDIN"));
    let server = bench.only_server();
    bench.answer(server, &message(b'G', &[0, 0, 0]));
    bench.pass(Duration::from_secs(5));
    let holders = bench.engine.holder_rows();
    assert_eq!((holders.len(), holders[0].reason), (1, "COPY waits for data"));
    assert_eq!(holders[0].held, Duration::from_secs(5));
}

#[test]
fn a_query_sent_into_a_copy_that_has_failed_is_not_answered_to_the_next_client() {
    let mut bench = Bench::new(config("default_pool_size = 1"));
    let (evil, other) = (bench.login(), bench.login());
    bench.say(evil, &query("COPY t FROM STDIN"));
    let server = bench.only_server();
    bench.answer(server, &message(b'G', &[0; 3]));
    bench.say(evil, &[message(b'd', b"bad\n"), query("SELECT pg_sleep(1), 'evil'")].concat());
    bench.say(other, &query("SELECT 1"));
    let error = message(b'E', b"SERROR\0C22P02\0Mbad data\0\0");
    bench.heard(server);
    bench.answer(server, &[&error, READY].concat());
    assert_eq!(bench.heard(server), b"X\0\0\0\x04", "nobody else gets the server");
    bench.answer(server, &[message(b'D', b"evil"), done()].concat());
    assert_eq!(bench.heard(other), b"");
}
