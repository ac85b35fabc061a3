//! `overload_policy`: who is told to go, how, and that nobody else is.

use super::bench::{Bench, IN_TRANSACTION, READY, config, config_of, done, message, query, startup};
use overload::patience::PatienceSource;
use overload::patience::learnt::{LEAST_SAMPLES, SAMPLE_SPACING};
use overload::shedding::ShedCause;
use pooling::connection::{ClientId, ServerId};
use std::time::Duration;

const ON: &str = "default_pool_size = 1\nquery_wait_notify = 0\noverload_policy = on\n";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A start-up packet with further parameters, each name and value ended by a zero byte.
fn startup_with(parameters: &str) -> Vec<u8> {
    startup(format!("db\0{parameters}").trim_end_matches('\0'))
}

impl Bench {
    fn login_with(&mut self, parameters: &str) -> ClientId {
        let id = self.accept();
        self.say(id, &startup_with(parameters));
        if !self.wire.opens.is_empty() {
            self.open();
        }
        assert!(self.heard(id).ends_with(READY), "the client is not let in");
        id
    }

    fn shed(&self, cause: ShedCause) -> u64 {
        self.pool("db").counters.shed[cause as usize]
    }
}

/// The only server of a pool, held by a transaction.
fn held(extra: &str) -> (Bench, ClientId, ServerId) {
    let mut bench = Bench::new(config(extra));
    let holder = bench.connect("db");
    let server = bench.open();
    bench.heard(holder);
    bench.say(holder, &query("BEGIN"));
    bench.answer(server, &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    bench.heard(server);
    (bench, holder, server)
}

fn let_go(bench: &mut Bench, holder: ClientId, server: ServerId) {
    bench.say(holder, &query("COMMIT"));
    bench.heard(server);
    bench.answer(server, &done());
}

fn count(haystack: &[u8], needle: &[u8]) -> usize {
    haystack.windows(needle.len()).filter(|window| *window == needle).count()
}

/// One ERROR that says to come again, and one ReadyForQuery behind it.
fn assert_told_to_go(heard: &[u8]) {
    assert!(heard.starts_with(b"E"), "{}", String::from_utf8_lossy(heard));
    assert_eq!(count(heard, b"C53H03\0"), 1, "{}", String::from_utf8_lossy(heard));
    assert_eq!(count(heard, b"SERROR\0"), 1, "its session stays");
    assert!(heard.ends_with(READY));
    assert_eq!(count(heard, READY), 1);
    let text = String::from_utf8_lossy(heard);
    let hint = text.split("retry after ").nth(1).and_then(|rest| rest.split(" ms").next());
    assert!(hint.is_some_and(|ms| ms.parse::<u64>().is_ok()), "a time to come again: {text}");
}

#[test]
fn a_declared_patience_is_the_deadline_and_the_session_goes_on() {
    for declared in ["holdfast.patience\x001s\0", "options\0-c holdfast.patience=1000\0"] {
        let (mut bench, holder, server) = held(ON);
        let waiter = bench.login_with(declared);
        bench.say(waiter, &query("SELECT 1"));
        bench.pass(ms(999));
        assert_eq!(bench.heard(waiter), b"");
        bench.pass(ms(1));
        assert_told_to_go(&bench.heard(waiter));
        assert_eq!(bench.shed(ShedCause::Deadline), 1);
        assert_eq!(bench.pool("db").cl_waiting, 0);
        bench.say(waiter, &query("SELECT 2"));
        let_go(&mut bench, holder, server);
        assert_eq!(bench.heard(server), query("SELECT 2"), "no server hears of its patience");
        bench.answer(server, &done());
        assert_eq!(bench.heard(waiter), done());
    }
}

#[test]
fn a_batch_is_skipped_to_its_sync_wherever_it_is_told_to_go() {
    let batch = [message(b'P', b"\0SELECT 1\0\0\0"), message(b'E', b"\0\0\0\0\0")].concat();
    let sync = message(b'S', b"");
    let (mut bench, holder, server) = held(ON);
    let waiter = bench.login_with("holdfast.patience\x001s\0");
    bench.say(waiter, &batch);
    bench.pass(ms(1_000));
    let heard = bench.heard(waiter);
    assert_eq!((count(&heard, b"C53H03\0"), count(&heard, READY)), (1, 0), "the Sync is still to come");
    bench.say(waiter, &[batch.clone(), sync.clone(), query("SELECT 2")].concat());
    assert_eq!(bench.heard(waiter), READY);
    assert_eq!(bench.pool("db").cl_waiting, 1, "what follows the Sync is another request");
    let_go(&mut bench, holder, server);
    assert_eq!(bench.heard(server), query("SELECT 2"));
}

#[test]
fn a_pipeline_has_one_refusal_and_one_ready_for_each_request() {
    let (mut bench, _, _) = held(ON);
    let waiter = bench.login_with("holdfast.patience\x0010ms\0");
    let requests = 500;
    bench.say(waiter, &query("SELECT 1").repeat(requests));
    for _ in 0..requests {
        bench.pass(ms(10));
    }
    let heard = bench.heard(waiter);
    assert_eq!((count(&heard, b"C53H03\0"), count(&heard, READY)), (requests, requests));
}

#[test]
fn a_patience_that_is_no_time_ends_the_login() {
    let mut bench = Bench::new(config(ON));
    let client = bench.accept();
    bench.say(client, &startup_with("holdfast.patience\0soon\0"));
    let heard = bench.heard(client);
    assert_eq!(count(&heard, b"C22023\0"), 1, "{}", String::from_utf8_lossy(&heard));
    assert!(bench.is_closed(client));
}

#[test]
fn a_statement_timeout_is_a_patience_and_goes_to_the_server_all_the_same() {
    let (mut bench, holder, server) = held(ON);
    let waiter = bench.login_with("statement_timeout\x001s\0");
    bench.say(waiter, &query("SELECT 1"));
    bench.pass(ms(1_000));
    assert_told_to_go(&bench.heard(waiter));
    assert_eq!(
        bench.pool("db").overload.patience[PatienceSource::StatementTimeout as usize],
        Some(ms(1_000))
    );
    bench.say(waiter, &query("SELECT 2"));
    let_go(&mut bench, holder, server);
    assert_eq!(bench.heard(server), query("SET \"statement_timeout\"='1s';"));
}

#[test]
fn whoever_says_nothing_or_zero_waits_until_query_wait_timeout() {
    for nothing in ["", "holdfast.patience\x000\0", "holdfast.patience\x000\0statement_timeout\x001s\0"] {
        let (mut bench, _, _) = held(&format!("{ON}query_wait_timeout = 60\n"));
        let waiter = bench.login_with(nothing);
        bench.say(waiter, &query("SELECT 1"));
        for _ in 0..59 {
            bench.pass(ms(1_000));
        }
        assert_eq!(bench.heard(waiter), b"");
        bench.pass(ms(1_000));
        let heard = bench.heard(waiter);
        assert_eq!((count(&heard, b"SFATAL\0"), count(&heard, b"query_wait_timeout")), (1, 1));
    }
}

#[test]
fn query_wait_timeout_stays_the_outer_bound() {
    let (mut bench, _, _) = held(&format!("{ON}query_wait_timeout = 2\n"));
    let waiter = bench.login_with("holdfast.patience\x0010s\0");
    bench.say(waiter, &query("SELECT 1"));
    bench.pass(ms(2_000));
    let heard = bench.heard(waiter);
    assert_eq!((count(&heard, b"SFATAL\0"), count(&heard, b"C53H01\0")), (1, 1));
}

#[test]
fn off_looks_at_nobody() {
    let (mut bench, holder, server) = held("default_pool_size = 1\nquery_wait_notify = 0\n");
    let waiter = bench.login_with("holdfast.patience\x0010ms\0");
    bench.say(waiter, &query("SELECT 1"));
    for _ in 0..50 {
        bench.pass(ms(1_000));
    }
    assert_eq!(bench.heard(waiter), b"");
    let_go(&mut bench, holder, server);
    assert_eq!(bench.heard(server), query("SELECT 1"));
    let pool = bench.pool("db");
    assert_eq!((pool.counters.shed, pool.counters.would_shed), ([0; 3], [0; 3]));
    assert_eq!(pool.overload.policy, "off");
    assert!(bench.engine.patience_rows().is_empty());
}

#[test]
fn observe_counts_whom_it_would_tell_to_go_once_and_serves_him() {
    let (mut bench, holder, server) =
        held("default_pool_size = 1\nquery_wait_notify = 0\noverload_policy = observe\n");
    let waiter = bench.login_with("holdfast.patience\x001s\0");
    bench.say(waiter, &query("SELECT 1"));
    for _ in 0..50 {
        bench.pass(ms(1_000));
    }
    assert_eq!(bench.heard(waiter), b"");
    let counters = bench.pool("db").counters;
    assert_eq!((counters.shed, counters.would_shed), ([0; 3], [0, 1, 0]));
    let_go(&mut bench, holder, server);
    assert_eq!(bench.heard(server), query("SELECT 1"));
}

/// Clients of one patience, two of which come each 100 ms while one is served: the line grows and stands.
fn overloaded(policy: &str) -> (Bench, ServerId) {
    let mut bench = Bench::new(config(&format!(
        "default_pool_size = 1\nquery_wait_notify = 0\noverload_policy = {policy}\n"
    )));
    let first = bench.login_with("holdfast.patience\x001s\0");
    let server = bench.only_server();
    bench.say(first, &query("SELECT 0"));
    for round in 0..30 {
        for which in 0..2 {
            let client = bench.login_with("holdfast.patience\x001s\0");
            bench.say(client, &query(&format!("SELECT {}", round * 2 + which + 1)));
        }
        bench.pass(ms(100));
        bench.heard(server);
        if round < 29 {
            bench.answer(server, &done());
        }
        if bench.pool("db").overload.overloaded.is_some() && round > 20 {
            break;
        }
    }
    assert!(bench.pool("db").overload.overloaded.is_some(), "the line stands");
    (bench, server)
}

#[test]
fn while_the_line_stands_the_newest_is_served_first_and_the_others_wait_for_their_target() {
    let (mut bench, server) = overloaded("on");
    let [older, newer] = ["SELECT 'older'", "SELECT 'newer'"].map(|sql| {
        let client = bench.login_with("holdfast.patience\x001s\0");
        bench.say(client, &query(sql));
        client
    });
    bench.pass(ms(50));
    bench.answer(server, &done());
    let heard = bench.heard(server);
    assert!(heard.ends_with(&query("SELECT 'newer'")), "{}", String::from_utf8_lossy(&heard));
    assert_eq!(bench.heard(older), b"");
    // Twice the time of service, which is more than a tenth of its patience.
    bench.pass(ms(149));
    assert_eq!(bench.heard(older), b"");
    bench.pass(ms(1));
    assert_told_to_go(&bench.heard(older));
    assert!(bench.shed(ShedCause::Standing) > 0);
    bench.answer(server, &done());
    assert_eq!(bench.heard(newer), done());
    // Nobody waits any more.
    bench.due();
    assert_eq!(bench.pool("db").overload.overloaded, None);
    let events: Vec<&str> = bench.engine.event_rows().iter().map(|row| row.event).collect();
    for event in ["overloaded", "shed", "overload_ended"] {
        assert!(events.contains(&event), "{event} is not among {events:?}");
    }
}

#[test]
fn in_observe_the_oldest_is_served_first_and_nobody_is_told_to_go() {
    let (mut bench, server) = overloaded("observe");
    let counters = bench.pool("db").counters;
    assert_eq!(counters.shed, [0; 3]);
    assert!(counters.would_shed.iter().sum::<u64>() > 0);
    let mut next = || {
        bench.heard(server);
        bench.answer(server, &done());
        let heard = String::from_utf8(bench.heard(server)).unwrap();
        heard.trim_end_matches('\0').rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    let first = next();
    assert_eq!([next(), next()], [first + 1, first + 2]);
}

#[test]
fn a_predicted_wait_beyond_the_patience_is_told_at_once_and_a_pipeline_of_them_is_no_deep_stack() {
    // Those in front do not mind, and so the line does not stand.
    let (mut bench, holder, server) = held(ON);
    for _ in 0..30 {
        let client = bench.login_with("");
        bench.say(client, &query("SELECT 1"));
    }
    let_go(&mut bench, holder, server);
    for _ in 0..15 {
        bench.pass(ms(100));
        bench.answer(server, &done());
    }
    assert!(bench.pool("db").overload.service.is_some(), "the pace is known");
    let hasty = bench.login_with("holdfast.patience\x00200ms\0");
    let requests = 2_000;
    bench.say(hasty, &query("").repeat(requests));
    for _ in 0..requests {
        bench.due();
    }
    let heard = bench.heard(hasty);
    assert_eq!((count(&heard, b"C53H03\0"), count(&heard, READY)), (requests, requests));
    assert_eq!(bench.shed(ShedCause::Predicted), requests as u64);
}

#[test]
fn patience_is_learnt_from_those_who_leave_the_line_and_is_no_deadline() {
    let (mut bench, holder, server) = held(ON);
    let leave = |bench: &mut Bench, client: ClientId, how: usize| match how % 3 {
        0 => bench.end(client),
        1 => bench.say(client, &message(b'X', b"")),
        _ => bench.cancel(client),
    };
    for round in 0..LEAST_SAMPLES {
        let client = bench.login_with("application_name\0shop\0");
        bench.say(client, &query("SELECT 1"));
        bench.pass(ms(800).max(SAMPLE_SPACING));
        leave(&mut bench, client, round);
    }
    let rows = bench.engine.patience_rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&*rows[0].database, &*rows[0].user, &*rows[0].application_name), ("db", "u", "shop"));
    assert_eq!((rows[0].patience, rows[0].samples), (ms(800), LEAST_SAMPLES));

    let stays = bench.login_with("application_name\0shop\0");
    bench.say(stays, &query("SELECT 1"));
    bench.pass(ms(5_000));
    assert_eq!(bench.heard(stays), b"", "it may wait for longer than others did");
    let_go(&mut bench, holder, server);
    assert_eq!(bench.heard(server), query("SET \"application_name\"='shop';"), "it is served");
    assert!(bench.engine.patience_rows().is_empty(), "and has proved that wrong");
}

#[test]
fn one_who_has_declared_its_patience_teaches_nothing_of_others() {
    let (mut bench, _, _) = held(ON);
    for _ in 0..LEAST_SAMPLES {
        let client = bench.login_with("holdfast.patience\x0010s\0");
        bench.say(client, &query("SELECT 1"));
        bench.pass(ms(800));
        bench.end(client);
    }
    assert!(bench.engine.patience_rows().is_empty());
}

#[test]
fn a_reload_to_off_ends_it_for_those_who_wait_already() {
    let (mut bench, _, _) = held(ON);
    let waiter = bench.login_with("holdfast.patience\x001s\0");
    bench.say(waiter, &query("SELECT 1"));
    let off = config("default_pool_size = 1\nquery_wait_notify = 0\n");
    bench.engine.reload(&mut bench.wire, off);
    bench.pass(ms(10_000));
    assert_eq!(bench.heard(waiter), b"");
}

#[test]
fn a_backlog_in_one_lane_tells_nobody_of_another_to_go() {
    let databases = "db = host=127.0.0.1 user=u\n[lanes]\nweb = application_name=web\n";
    let mut bench = Bench::new(config_of(databases, ON));
    let first = bench.login_with("application_name\0batch\0");
    let server = bench.only_server();
    bench.say(first, &query("SELECT 1"));
    let ask = |bench: &mut Bench, name: &str| {
        let client = bench.login_with(&format!("application_name\0{name}\0holdfast.patience\x001s\0"));
        bench.say(client, &query("SELECT 1"));
        client
    };
    // Three come for each one that is served.
    for _ in 0..25 {
        for _ in 0..3 {
            ask(&mut bench, "batch");
        }
        bench.pass(ms(100));
        answer_all(&mut bench, server);
    }
    assert!(bench.pool("db").overload.overloaded.is_some(), "the lane of the others stands");
    let web = ask(&mut bench, "web");
    assert_eq!(bench.heard(web), b"", "its wait is one turn, and not that of the others");
    // What runs now, the name that is set for it, its own request.
    for _ in 0..3 {
        bench.pass(ms(100));
        answer_all(&mut bench, server);
    }
    assert_eq!(bench.heard(web), done(), "neither refused nor kept waiting");
}

/// The server answers what it has been sent, its new client's parameters first.
fn answer_all(bench: &mut Bench, server: ServerId) {
    let asked = bench.heard(server);
    let mut rest = &asked[..];
    while rest.len() >= 5 {
        let length = u32::from_be_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize + 1;
        bench.answer(server, &done());
        rest = &rest[length..];
    }
}
