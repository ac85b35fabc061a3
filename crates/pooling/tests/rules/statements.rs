//! Prepared statements outside session mode: to a client it is as if the server were its own.

use super::bench::{Bench, IN_TRANSACTION, READY, config, done, message, query};
use pooling::connection::{ClientId, ServerId};

const SYNC: &[u8] = b"S\0\0\0\x04";
const PARSED: &[u8] = b"1\0\0\0\x04";
const BOUND: &[u8] = b"2\0\0\0\x04";
const CLOSED: &[u8] = b"3\0\0\0\x04";
const FAILED: &[u8] = b"Z\0\0\0\x05E";

fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

fn bind(name: &str) -> Vec<u8> {
    message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes())
}

fn execute() -> Vec<u8> {
    message(b'E', &[0; 5])
}

fn close(name: &str) -> Vec<u8> {
    message(b'C', format!("S{name}\0").as_bytes())
}

fn describe(name: &str) -> Vec<u8> {
    message(b'D', format!("S{name}\0").as_bytes())
}

fn error(code: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C{code}\0M{text}\0\0").as_bytes())
}

fn selected() -> Vec<u8> {
    message(b'C', b"SELECT 1\0")
}

fn bench(extra: &str) -> (Bench, ClientId, ClientId) {
    let mut bench = Bench::new(config(&format!("default_pool_size = 1\n{extra}")));
    let first = bench.login();
    let second = bench.login();
    (bench, first, second)
}

/// Says all, and gives what the server heard of it.
fn ask(bench: &mut Bench, client: ClientId, messages: &[&[u8]]) -> (ServerId, Vec<u8>) {
    bench.say(client, &messages.concat());
    let server = bench.only_server();
    let heard = bench.heard(server);
    (server, heard)
}

#[test]
fn two_clients_with_one_text_share_it_under_the_poolers_name() {
    let (mut bench, first, second) = bench("");
    let (server, heard) = ask(&mut bench, first, &[&parse("mine", "SELECT 1"), SYNC]);
    assert_eq!(heard, [&parse("holdfast_1", "SELECT 1")[..], SYNC].concat());
    bench.answer(server, &[PARSED, READY].concat());
    assert_eq!(bench.heard(first), [PARSED, READY].concat());
    let (_, heard) =
        ask(&mut bench, second, &[&parse("yours", "SELECT 1"), &bind("yours"), &execute(), SYNC]);
    assert_eq!(heard, [&bind("holdfast_1")[..], &execute(), SYNC].concat(), "it is prepared already");
    bench.answer(server, &[BOUND, &selected(), READY].concat());
    assert_eq!(bench.heard(second), [PARSED, BOUND, &selected(), READY].concat());
    let rows = bench.engine.client_rows();
    assert!(rows.iter().all(|row| row.prepared_statements == 1));
    assert_eq!(bench.engine.server_rows()[0].prepared_statements, 1);
    let counters = &bench.engine.pool_rows()[0].counters;
    assert_eq!((counters.client_parse_count, counters.server_parse_count, counters.bind_count), (2, 1, 1));
}

#[test]
fn a_server_that_lacks_a_statement_gets_it_ahead_of_the_bind() {
    let (mut bench, first, _) = bench("max_prepared_statements = 1\n");
    let (server, _) = ask(&mut bench, first, &[&parse("a", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    let (_, heard) = ask(&mut bench, first, &[&parse("b", "SELECT 2"), SYNC]);
    assert_eq!(heard, [&close("holdfast_1")[..], &parse("holdfast_2", "SELECT 2"), SYNC].concat());
    bench.answer(server, &[CLOSED, PARSED, READY].concat());
    bench.heard(first);
    let (_, heard) = ask(&mut bench, first, &[&bind("a"), &execute(), SYNC]);
    let brought = [close("holdfast_2"), parse("holdfast_1", "SELECT 1"), bind("holdfast_1"), execute()];
    assert_eq!(heard, [&brought.concat()[..], SYNC].concat());
    bench.answer(server, &[CLOSED, PARSED, BOUND, &selected(), READY].concat());
    assert_eq!(bench.heard(first), [BOUND, &selected(), READY].concat());
    assert_eq!(bench.engine.server_rows()[0].prepared_statements, 1);
}

#[test]
fn the_bytes_of_a_servers_statements_are_bounded() {
    let (mut bench, first, _) = bench("max_prepared_statement_bytes = 4096\n");
    let texts: Vec<String> =
        (0..3).map(|number| format!("SELECT {number} -- {}", "x".repeat(1_500))).collect();
    for (number, text) in texts.iter().enumerate() {
        let (server, heard) = ask(&mut bench, first, &[&parse(&format!("s{number}"), text), SYNC]);
        let closed = number == 2;
        assert_eq!(heard.starts_with(&close("holdfast_1")), closed, "statement {number}");
        let answer = if closed { [CLOSED, PARSED, READY].concat() } else { [PARSED, READY].concat() };
        bench.answer(server, &answer);
    }
    assert_eq!(bench.engine.server_rows()[0].prepared_statements, 2);
}

#[test]
fn what_the_server_never_got_to_is_undone() {
    let (mut bench, first, _) = bench("");
    let messages = [&parse("bad", "SELEC"), &parse("good", "SELECT 1")[..], SYNC];
    let (server, _) = ask(&mut bench, first, &messages);
    let failure = error("42601", "syntax error");
    bench.answer(server, &[&failure[..], READY].concat());
    assert_eq!(bench.heard(first), [&failure[..], READY].concat());
    assert_eq!(bench.engine.server_rows()[0].prepared_statements, 0);
    assert!(bench.engine.client_rows().iter().all(|row| row.prepared_statements == 0));
    // Both names are free again; the text is sent, since no server has it.
    let (_, heard) = ask(&mut bench, first, &[&parse("bad", "SELECT 1"), SYNC]);
    assert_eq!(heard, [&parse("holdfast_2", "SELECT 1")[..], SYNC].concat());
}

#[test]
fn a_name_in_use_is_refused_by_the_server_and_named_as_the_client_knows_it() {
    let (mut bench, first, _) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    bench.heard(first);
    let (_, heard) = ask(&mut bench, first, &[&parse("s", "SELECT 2"), SYNC]);
    let gone = "holdfast_gone";
    assert_eq!(heard, [&close(gone)[..], &parse(gone, ""), &parse(gone, "SELECT 2"), SYNC].concat());
    let text = |name: &str| error("42P05", &format!("prepared statement \"{name}\" already exists"));
    bench.answer(server, &[CLOSED, PARSED, &text(gone), READY].concat());
    assert_eq!(bench.heard(first), [&text("s")[..], READY].concat());
}

#[test]
fn a_closed_name_is_free_and_the_server_keeps_the_statement_for_others() {
    let (mut bench, first, _) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    bench.heard(first);
    let (_, heard) = ask(&mut bench, first, &[&close("s"), &parse("s", "SELECT 1"), SYNC]);
    assert_eq!(heard, SYNC, "nothing is left for the server to do");
    bench.answer(server, READY);
    assert_eq!(bench.heard(first), [CLOSED, PARSED, READY].concat());
}

#[test]
fn a_flush_brings_the_answers_that_the_server_knows_nothing_of() {
    let (mut bench, first, _) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    bench.heard(first);
    ask(&mut bench, first, &[&close("s"), &message(b'H', b"")]);
    assert_eq!(bench.heard(first), CLOSED);
    ask(&mut bench, first, &[SYNC]);
    bench.answer(server, READY);
    assert_eq!(bench.heard(first), READY);
}

#[test]
fn a_flush_that_the_server_answers_in_part_brings_the_rest_as_well() {
    let (mut bench, first, _) = bench("");
    let messages = [&parse("s", "SELECT 1"), &close("s"), &message(b'H', b"")[..]];
    let (server, _) = ask(&mut bench, first, &messages);
    assert_eq!(bench.heard(first), b"");
    bench.answer(server, PARSED);
    assert_eq!(bench.heard(first), [PARSED, CLOSED].concat());
}

#[test]
fn in_a_failed_transaction_the_server_itself_is_asked() {
    let (mut bench, first, second) = bench("");
    let (server, _) = ask(&mut bench, second, &[&parse("s", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    bench.heard(second);
    ask(&mut bench, first, &[&query("BEGIN")]);
    bench.answer(server, &[&message(b'C', b"BEGIN\0")[..], IN_TRANSACTION].concat());
    ask(&mut bench, first, &[&query("SELECT 1/0")]);
    bench.answer(server, &[&error("22012", "division by zero")[..], FAILED].concat());
    bench.heard(first);
    let (_, heard) = ask(&mut bench, first, &[&parse("s", "SELECT 1"), SYNC]);
    assert_eq!(heard, [&close("holdfast_1")[..], &parse("holdfast_1", "SELECT 1"), SYNC].concat());
    let aborted = error("25P02", "current transaction is aborted");
    bench.answer(server, &[CLOSED, &aborted, FAILED].concat());
    assert_eq!(bench.heard(first), [&aborted[..], FAILED].concat());
    assert_eq!(bench.engine.server_rows()[0].prepared_statements, 0, "it was closed");
}

#[test]
fn a_batch_that_builds_on_an_unanswered_one_waits_for_the_answer() {
    let (mut bench, first, _) = bench("");
    let messages = [&parse("s", "SELECT 1"), SYNC, &bind("s"), &execute(), SYNC];
    let (server, heard) = ask(&mut bench, first, &messages);
    assert_eq!(heard, [&parse("holdfast_1", "SELECT 1")[..], SYNC].concat());
    bench.answer(server, &[PARSED, READY].concat());
    assert_eq!(bench.heard(server), [&bind("holdfast_1")[..], &execute(), SYNC].concat());
    bench.answer(server, &[BOUND, &selected(), READY].concat());
    assert_eq!(bench.heard(first), [PARSED, READY, BOUND, &selected(), READY].concat());
}

#[test]
fn the_unnamed_statement_of_a_client_survives_other_clients() {
    let (mut bench, first, second) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    ask(&mut bench, second, &[&parse("", "SELECT 2"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    let (_, heard) = ask(&mut bench, first, &[&bind(""), &execute(), SYNC]);
    assert_eq!(heard, [&parse("", "SELECT 1")[..], &bind(""), &execute(), SYNC].concat());
    bench.heard(first);
    bench.answer(server, &[PARSED, BOUND, &selected(), READY].concat());
    assert_eq!(bench.heard(first), [BOUND, &selected(), READY].concat());
    // It is the server's now.
    let (_, heard) = ask(&mut bench, first, &[&bind(""), &execute(), SYNC]);
    assert_eq!(heard, [&bind("")[..], &execute(), SYNC].concat());
}

#[test]
fn an_unnamed_statement_that_a_server_has_of_long_ago_is_not_used_again() {
    let mut bench = Bench::new(config("default_pool_size = 2\n"));
    let (first, second) = (bench.login(), bench.login());
    let one = bench.only_server();
    bench.say(first, &[&parse("", "SELECT 1")[..], SYNC].concat());
    bench.answer(one, &[PARSED, READY].concat());
    bench.say(second, &query("BEGIN"));
    bench.answer(one, &[&message(b'C', b"BEGIN\0")[..], IN_TRANSACTION].concat());
    bench.say(first, &[&parse("", "SELECT 2")[..], SYNC].concat());
    let other = bench.open();
    bench.answer(other, &[PARSED, READY].concat());
    bench.say(second, &query("COMMIT"));
    bench.answer(one, &[&message(b'C', b"COMMIT\0")[..], READY].concat());
    bench.heard(one);
    // The server used last is the first one.
    bench.say(first, &[&bind("")[..], &execute(), SYNC].concat());
    assert_eq!(bench.heard(one), [&parse("", "SELECT 2")[..], &bind(""), &execute(), SYNC].concat());
}

#[test]
fn a_client_without_an_unnamed_statement_never_runs_anothers() {
    let (mut bench, first, second) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    let (_, heard) = ask(&mut bench, second, &[&bind(""), SYNC]);
    assert_eq!(heard, [&close("")[..], &bind(""), SYNC].concat());
    let missing = error("26000", "unnamed prepared statement does not exist");
    bench.answer(server, &[CLOSED, &missing, READY].concat());
    assert_eq!(bench.heard(second), [&missing[..], READY].concat());
}

#[test]
fn a_name_that_looks_like_the_poolers_reaches_nobodys_statement() {
    let (mut bench, first, second) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    let (_, heard) = ask(&mut bench, second, &[&bind("holdfast_1"), SYNC]);
    assert_eq!(heard, [&bind("holdfast_?")[..], SYNC].concat());
    let text = |name: &str| error("26000", &format!("prepared statement \"{name}\" does not exist"));
    bench.answer(server, &[&text("holdfast_?")[..], READY].concat());
    assert_eq!(bench.heard(second), [&text("holdfast_1")[..], READY].concat());
    let (_, heard) = ask(&mut bench, second, &[&close("holdfast_1"), &describe("holdfast_1"), SYNC]);
    assert_eq!(heard, [&close("holdfast_?")[..], &describe("holdfast_?"), SYNC].concat());
}

#[test]
fn deallocate_is_the_clients_own() {
    let (mut bench, first, second) = bench("");
    for client in [first, second] {
        let (server, _) = ask(&mut bench, client, &[&parse("s", "SELECT 1"), SYNC]);
        if client == first {
            bench.answer(server, &[PARSED, READY].concat());
        } else {
            bench.answer(server, READY);
        }
        bench.heard(client);
    }
    let (server, heard) = ask(&mut bench, first, &[&query("DEALLOCATE s")]);
    assert_eq!(heard, b"");
    assert_eq!(bench.heard(first), [&message(b'C', b"DEALLOCATE\0")[..], READY].concat());
    let (_, heard) = ask(&mut bench, first, &[&bind("s"), SYNC]);
    assert_eq!(heard, [&bind("s")[..], SYNC].concat(), "it does not exist any more");
    let missing = error("26000", "prepared statement \"s\" does not exist");
    bench.answer(server, &[&missing[..], READY].concat());
    let (_, heard) = ask(&mut bench, second, &[&bind("s"), SYNC]);
    assert_eq!(heard, [&bind("holdfast_1")[..], SYNC].concat());
}

#[test]
fn deallocate_in_a_batch_without_sync_is_the_clients_own_too() {
    let (mut bench, first, _) = bench("");
    let messages = [&parse("s", "SELECT 1")[..], &query("DEALLOCATE s")];
    let (server, heard) = ask(&mut bench, first, &messages);
    let gone = "holdfast_gone";
    let dropped = [close(gone), parse(gone, ""), query("DEALLOCATE holdfast_gone")].concat();
    assert_eq!(heard, [parse("holdfast_1", "SELECT 1"), dropped].concat());
    let deallocated = [&message(b'C', b"DEALLOCATE\0")[..], READY].concat();
    bench.answer(server, &[PARSED, CLOSED, PARSED, &deallocated].concat());
    assert_eq!(bench.heard(first), [PARSED, &deallocated].concat());
    assert!(bench.engine.client_rows().iter().all(|row| row.prepared_statements == 0));
}

#[test]
fn discard_all_forgets_the_clients_names_and_the_servers_statements() {
    let (mut bench, first, _) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    bench.heard(first);
    // In one write, as drivers do that reset a connection with the first request of its next user.
    let (_, heard) = ask(&mut bench, first, &[&query("DISCARD ALL"), &parse("s", "SELECT 1"), SYNC]);
    assert_eq!(heard, query("DISCARD ALL"));
    bench.answer(server, &[&message(b'C', b"DISCARD ALL\0")[..], READY].concat());
    assert_eq!(bench.heard(server), [&parse("holdfast_1", "SELECT 1")[..], SYNC].concat());
    bench.answer(server, &[PARSED, READY].concat());
    assert!(bench.heard(first).ends_with(&[READY, PARSED, READY].concat()));
}

#[test]
fn a_stale_plan_is_prepared_anew_by_whoever_uses_it_next() {
    let (mut bench, first, second) = bench("");
    for (client, answer) in [(first, [PARSED, READY].concat()), (second, READY.to_vec())] {
        let (server, _) = ask(&mut bench, client, &[&parse("s", "SELECT * FROM t"), SYNC]);
        bench.answer(server, &answer);
        bench.heard(client);
    }
    let (server, _) = ask(&mut bench, first, &[&bind("s"), &execute(), SYNC]);
    let stale = message(
        b'E',
        b"SERROR\0C0A000\0Mcached plan must not change result type\0RRevalidateCachedQuery\0\0",
    );
    bench.answer(server, &[&stale[..], READY].concat());
    assert_eq!(bench.heard(first), [&stale[..], READY].concat());
    let (_, heard) = ask(&mut bench, second, &[&bind("s"), &execute(), SYNC]);
    let fresh = [parse("holdfast_2", "SELECT * FROM t"), bind("holdfast_2"), execute()].concat();
    assert_eq!(heard, [&fresh[..], SYNC].concat());
    bench.answer(server, &[PARSED, BOUND, &selected(), READY].concat());
    // And so is a new name for the same text.
    let (_, heard) = ask(&mut bench, first, &[&parse("again", "SELECT * FROM t"), &bind("again"), SYNC]);
    assert_eq!(heard, [&bind("holdfast_2")[..], SYNC].concat());
}

#[test]
fn a_batch_that_asks_for_its_columns_is_repeated_with_a_fresh_plan() {
    let (mut bench, first, _) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT * FROM t"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    bench.heard(first);
    let portal = message(b'D', b"P\0");
    let request = |name: &str| [&bind(name)[..], &portal, &execute(), SYNC].concat();
    let (_, heard) = ask(&mut bench, first, &[&request("s")]);
    assert_eq!(heard, request("holdfast_1"));
    let stale = message(
        b'E',
        b"SERROR\0C0A000\0Mcached plan must not change result type\0RRevalidateCachedQuery\0\0",
    );
    bench.answer(server, &stale);
    bench.answer(server, READY);
    assert_eq!(bench.heard(first), b"", "the client hears nothing of it");
    assert_eq!(bench.heard(server), [parse("holdfast_2", "SELECT * FROM t"), request("holdfast_2")].concat());
    // Once: if that fails too, the client is told.
    bench.answer(server, &[PARSED, &stale, READY].concat());
    assert_eq!(bench.heard(first), [&stale[..], READY].concat());
    assert_eq!(bench.pool("db").sv_idle, 1);
}

#[test]
fn nothing_is_repeated_inside_a_transaction() {
    let (mut bench, first, _) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT * FROM t"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    ask(&mut bench, first, &[&query("BEGIN")]);
    bench.answer(server, &[&message(b'C', b"BEGIN\0")[..], IN_TRANSACTION].concat());
    bench.heard(first);
    ask(&mut bench, first, &[&bind("s"), &message(b'D', b"P\0"), &execute(), SYNC]);
    let stale = message(
        b'E',
        b"SERROR\0C0A000\0Mcached plan must not change result type\0RRevalidateCachedQuery\0\0",
    );
    bench.answer(server, &[&stale[..], FAILED].concat());
    assert_eq!(bench.heard(first), [&stale[..], FAILED].concat());
}

#[test]
fn a_client_that_dies_in_its_batch_leaves_no_statement_behind() {
    let (mut bench, first, second) = bench("");
    bench.say(first, &[parse("s", "SELECT 1"), message(b'H', b"")].concat());
    let server = bench.only_server();
    bench.heard(server);
    bench.end(first);
    bench.heard(server);
    bench.answer(server, &[PARSED, &error("34000", "no portal"), READY].concat());
    bench.wire.cancels.clear();
    bench.engine.on_cancel_ended(&mut bench.wire, server);
    assert_eq!(bench.heard(server), query("DISCARD ALL"));
    bench.answer(server, &[&message(b'C', b"DISCARD ALL\0")[..], READY].concat());
    assert_eq!(bench.engine.server_rows()[0].prepared_statements, 0);
    let (_, heard) = ask(&mut bench, second, &[&parse("s", "SELECT 1"), SYNC]);
    assert_eq!(heard, [&parse("holdfast_1", "SELECT 1")[..], SYNC].concat());
}

#[test]
fn a_long_bind_is_translated_however_little_of_it_has_come() {
    let (mut bench, first, _) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("s", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    let long = |name: &str| message(b'B', &[b"\0", name.as_bytes(), &[0; 200_000]].concat());
    let spoken = long("s");
    for at in [3, 5, 6, 7, 30_000] {
        bench.say(first, &spoken[..at]);
        if at < 8 {
            assert_eq!(bench.heard(server), b"", "the name is not there yet");
        }
        bench.say(first, &spoken[at..]);
        bench.say(first, SYNC);
        assert_eq!(bench.heard(server), [&long("holdfast_1")[..], SYNC].concat());
        bench.answer(server, &[BOUND, READY].concat());
    }
}

#[test]
fn what_a_client_may_prepare_is_bounded() {
    let (mut bench, first, second) = bench("");
    for number in 0..16_384 {
        bench.say(first, &[&parse(&format!("s{number}"), "SELECT 1")[..], SYNC].concat());
        let server = bench.only_server();
        bench.heard(server);
        let answer = if number == 0 { [PARSED, READY].concat() } else { READY.to_vec() };
        bench.answer(server, &answer);
        bench.heard(first);
    }
    bench.say(first, &[&parse("more", "SELECT 1")[..], SYNC].concat());
    assert!(bench.is_closed(first) && bench.heard(first).windows(5).any(|bytes| bytes == b"54000"));
    let server = bench.only_server();
    bench.answer(server, &done());
    let long = "x".repeat((1 << 20) + 1);
    bench.say(second, &parse("long", &long));
    assert!(bench.is_closed(second) && bench.heard(second).windows(5).any(|bytes| bytes == b"54000"));
}

#[test]
fn what_a_client_may_prepare_is_bounded_in_bytes() {
    const MOST: usize = 64 << 20;
    let (mut bench, first, _) = bench("");
    let text = "x".repeat(1_000_000);
    let mut bytes = 0;
    for number in 0.. {
        // One in three is closed again, which makes room.
        let kept = number % 3 != 0;
        bytes += if kept { text.len() } else { 0 };
        let name = format!("s{number}");
        let close = if kept { Vec::new() } else { close(&name) };
        bench.say(first, &[&parse(&name, &text)[..], &close, SYNC].concat());
        if bytes > MOST {
            break;
        }
        assert!(!bench.is_closed(first), "refused after {bytes} bytes");
        let server = bench.only_server();
        bench.heard(server);
        bench.answer(server, &if number == 0 { [PARSED, READY].concat() } else { READY.to_vec() });
        bench.heard(first);
    }
    assert!(bench.is_closed(first) && bench.heard(first).windows(5).any(|bytes| bytes == b"54000"));
}

#[test]
fn a_long_named_statement_is_held_until_it_is_whole_and_then_sent() {
    let (mut bench, first, second) = bench("");
    let long = parse("s", &"x".repeat(200_000));
    let server = bench.only_server();
    for at in [3, 70_000, 150_000] {
        bench.say(first, &long[..at]);
        assert_eq!(bench.heard(server), b"", "{at} bytes of it");
        bench.say(first, &long[at..]);
        bench.say(first, SYNC);
        assert_eq!(bench.heard(server).len(), long.len() + "holdfast_1".len() - 1 + SYNC.len());
        bench.answer(server, &[&error("42601", "syntax error")[..], READY].concat());
        bench.heard(first);
        // Others are served meanwhile and afterwards.
        let (_, heard) = ask(&mut bench, second, &[&query("SELECT 1")]);
        assert_eq!(heard, query("SELECT 1"));
        bench.answer(server, &done());
    }
}

#[test]
fn an_answer_of_the_poolers_own_does_not_stand_inside_a_message_of_the_servers() {
    let (mut bench, first, second) = bench("");
    let (server, _) = ask(&mut bench, second, &[&parse("known", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    let flush = message(b'H', b"");
    ask(
        &mut bench,
        first,
        &[&parse("new", "SELECT 2"), &describe("new"), &parse("known", "SELECT 1"), &flush],
    );
    let description = message(b'T', &[0; 100]);
    let answer = [PARSED, &message(b't', &[0; 2]), &description].concat();
    let (half, rest) = answer.split_at(answer.len() - 20);
    bench.answer(server, half);
    bench.say(first, &flush);
    assert_eq!(bench.heard(first), half, "the description first");
    bench.answer(server, rest);
    assert_eq!(bench.heard(first), [rest, PARSED].concat());
    // The same for what is deallocated while a notice is under way.
    bench.say(first, SYNC);
    bench.answer(server, READY);
    ask(&mut bench, first, &[&query("BEGIN")]);
    let notice = message(b'N', &[b'x'; 40]);
    let (half, rest) = notice.split_at(20);
    bench.answer(server, &[&message(b'C', b"BEGIN\0"), IN_TRANSACTION, half].concat());
    bench.heard(first);
    bench.say(first, &query("DEALLOCATE known"));
    assert_eq!(bench.heard(first), b"");
    bench.answer(server, rest);
    assert_eq!(
        bench.heard(first),
        [rest, &message(b'C', b"DEALLOCATE\0"), IN_TRANSACTION].concat(),
        "it goes on by itself"
    );
}

#[test]
fn a_server_whose_statements_somebody_has_dropped_by_sql_is_replaced() {
    let (mut bench, first, second) = bench("");
    let (server, _) = ask(&mut bench, first, &[&parse("a", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    ask(&mut bench, second, &[&query("DO $$ BEGIN EXECUTE 'DEALLOCATE holdfast_1'; END $$")]);
    bench.answer(server, &[&message(b'C', b"DO\0"), READY].concat());
    ask(&mut bench, first, &[&bind("a"), &execute(), SYNC]);
    let missing = |name: &str| error("26000", &format!("prepared statement \"{name}\" does not exist"));
    bench.heard(first);
    bench.answer(server, &[&missing("holdfast_1"), READY].concat());
    assert_eq!(bench.heard(first), [&missing("a"), READY].concat());
    assert_eq!(bench.heard(server), b"X\0\0\0\x04", "it is not used again");
    bench.end(server);
    bench.say(first, &[&bind("a"), &execute(), SYNC].concat());
    let server = bench.open();
    let heard = bench.heard(server);
    assert_eq!(heard, [&parse("holdfast_1", "SELECT 1")[..], &bind("holdfast_1"), &execute(), SYNC].concat());
}

#[test]
fn what_a_reset_has_dropped_does_not_come_back_when_its_eviction_is_skipped() {
    let (mut bench, first, second) = bench("max_prepared_statements = 1\nsession_state = ignore\n");
    let (server, _) = ask(&mut bench, second, &[&parse("a", "SELECT 1"), SYNC]);
    bench.answer(server, &[PARSED, READY].concat());
    let reset = [parse("", "DISCARD ALL"), bind(""), execute()].concat();
    ask(&mut bench, first, &[&reset, &bind("missing"), &parse("b", "SELECT 2"), SYNC]);
    bench.answer(server, &[PARSED, BOUND, &message(b'C', b"DISCARD ALL\0")].concat());
    bench.answer(server, &[&error("26000", "prepared statement \"missing\" does not exist"), READY].concat());
    let (_, heard) = ask(&mut bench, second, &[&bind("a"), &execute(), SYNC]);
    assert!(heard.starts_with(&parse("holdfast_1", "SELECT 1")), "{}", heard.escape_ascii());
}

#[test]
fn a_name_that_is_only_kept_to_be_told_is_kept_in_part() {
    let (mut bench, first, _) = bench("");
    let name = format!("holdfast_{}", "x".repeat(50_000));
    let (server, _) = ask(&mut bench, first, &[&bind(&name), SYNC]);
    let missing = error("26000", "prepared statement \"holdfast_?\" does not exist");
    bench.answer(server, &[missing, READY.to_vec()].concat());
    let heard = bench.heard(first);
    assert!(heard.windows(20).any(|text| text == &name.as_bytes()[..20]));
    assert!(heard.len() < 1_000);
}
