//! Whoever is not read because somebody else is slow is read again.

use super::bench::{Bench, IN_TRANSACTION, READY, config, done, message, query};
use pgwire::replies::MAX_OWED;
use std::time::Duration;

/// A client in COPY whose server does not take what it is sent.
fn stuck_copy(extra: &str) -> (Bench, pooling::connection::ClientId, pooling::connection::ServerId) {
    let mut bench = Bench::new(config(extra));
    let client = bench.connect("db");
    let server = bench.open();
    bench.heard(client);
    bench.say(client, &query("COPY t FROM STDIN"));
    bench.heard(server);
    bench.answer(server, &message(b'G', &[0, 0, 0]));
    bench.stop(server);
    bench.say(client, &message(b'd', &[b'x'; 1000]));
    assert!(!bench.reads(client), "the server is slow, so the client is not read");
    (bench, client, server)
}

#[test]
fn a_client_whose_copy_has_failed_is_read_again_although_its_data_is_still_under_way() {
    let (mut bench, client, server) = stuck_copy("");
    bench.answer(server, &[message(b'E', b"SERROR\0C22P02\0Mno\0\0"), READY.to_vec()].concat());
    assert!(bench.reads(client), "the client has its ReadyForQuery and may ask again");
    bench.take(server);
    bench.heard(server);
    bench.say(client, &query("SELECT 1"));
    assert_eq!(bench.heard(server), query("SELECT 1"));
}

#[test]
fn a_half_sent_message_is_not_held_against_a_client_that_is_not_read() {
    let (mut bench, client, server) = stuck_copy("default_pool_size = 1\n");
    bench.take(server);
    bench.stop(server);
    // One whole message and the start of another: the server takes neither.
    let data = message(b'd', &[b'x'; 1000]);
    bench.say(client, &[&data[..], &data[..500]].concat());
    let waiter = bench.login();
    bench.say(waiter, &query("SELECT 2"));
    for _ in 0..200 {
        bench.pass(Duration::from_millis(100));
    }
    assert!(!bench.is_closed(client), "it cannot send the rest, since nobody reads it");
    bench.take(server);
    assert!(bench.reads(client));
    for _ in 0..200 {
        bench.pass(Duration::from_millis(100));
    }
    assert!(bench.is_closed(client), "now it is the client that is slow");
}

#[test]
fn a_client_that_has_taken_its_refusals_is_read_while_its_next_request_runs() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let holder = bench.connect("db");
    let server = bench.open();
    let client = bench.login();
    bench.say(holder, &query("BEGIN"));
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.say(client, &[query("SELECT 1"), query("SELECT 2")].concat());
    let rows = bench.engine.client_rows();
    assert_eq!(rows.iter().filter(|row| row.state == "waiting").count(), 1);
    bench.stop(client);
    // The first request is cancelled while it waits; its refusal is not taken.
    bench.cancel(client);
    bench.say(holder, &query("COMMIT"));
    bench.heard(server);
    bench.answer(server, &done());
    assert_eq!(bench.heard(server), query("SELECT 2"));
    bench.take(client);
    assert!(bench.reads(client), "a client with a server is read");
    assert!(bench.reads(server));
}

#[test]
fn a_server_is_read_after_its_client_goes_idle_without_having_taken_its_answer() {
    let mut bench = Bench::new(config("waiter_buffer = 4096\n"));
    let client = bench.connect("db");
    let server = bench.open();
    bench.heard(client);
    bench.say(client, &query("COPY t FROM STDIN"));
    bench.answer(server, &message(b'G', &[0, 0, 0]));
    let data = message(b'd', &[b'x'; 9000]);
    bench.say(client, &data[..5000]);
    bench.stop(client);
    bench.answer(server, &[message(b'E', b"SERROR\0C22P02\0Mno\0\0"), READY.to_vec()].concat());
    assert!(!bench.reads(server), "the client does not take its answer");
    bench.say(client, &data[5000..]);
    assert_eq!(bench.pool("db").sv_idle, 1);
    assert!(bench.reads(server), "a free server has to be read");
    bench.take(client);
    assert!(bench.reads(client));
}

#[test]
fn a_server_is_not_free_while_a_notice_for_its_client_is_half_there() {
    let mut bench = Bench::new(config("waiter_buffer = 4096\n"));
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query("COPY t FROM STDIN"));
    bench.answer(server, &message(b'G', &[0, 0, 0]));
    let data = message(b'd', &[b'x'; 9000]);
    bench.say(client, &data[..5000]);
    bench.answer(server, &[message(b'E', b"SERROR\0C22P02\0Mno\0\0"), READY.to_vec()].concat());
    bench.heard(client);
    let notice = message(b'N', b"SNOTICE\0C00000\0Mhello\0\0");
    bench.answer(server, &notice[..8]);
    bench.say(client, &data[5000..]);
    let other = bench.login();
    bench.say(other, &query("SELECT 1"));
    bench.answer(server, &notice[8..]);
    assert_eq!(bench.heard(client), notice, "the notice is whole");
    assert_eq!(bench.heard(other), b"", "nothing of it reaches another client");
}

#[test]
fn a_client_with_too_much_in_flight_goes_on_when_half_of_it_is_answered() {
    let mut bench = Bench::new(config("waiter_buffer = 1048576\n"));
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query("BEGIN"));
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.heard(server);
    let count = MAX_OWED + 10;
    bench.say(client, &query("").repeat(count));
    assert!(!bench.reads(client));
    assert_eq!(bench.heard(server).len(), query("").len() * MAX_OWED);
    let answer = [message(b'I', b""), IN_TRANSACTION.to_vec()].concat();
    bench.answer(server, &answer.repeat(MAX_OWED / 2));
    bench.answer(server, &answer);
    assert!(bench.reads(client));
    assert_eq!(bench.heard(server).len(), query("").len() * 10, "what was held follows");
}

#[test]
fn a_server_is_not_read_while_its_client_does_not_take_the_answer() {
    let mut bench = Bench::new(config(""));
    let client = bench.connect("db");
    let server = bench.open();
    bench.heard(client);
    bench.say(client, &query("SELECT 1"));
    bench.stop(client);
    let row = message(b'D', &[0; 100]);
    bench.answer(server, &row);
    assert!(!bench.reads(server));
    bench.take(client);
    assert!(bench.reads(server));
    assert_eq!(bench.heard(client), row);
}
