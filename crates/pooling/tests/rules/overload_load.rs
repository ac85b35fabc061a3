//! The whole engine under open-loop load in virtual time: 20 servers that need 50 ms for each request, 400 a second.
//! Whoever gets no answer within a second does not wait for it any more.

use super::bench::{Bench, READY, config, done, query, startup};
use overload::Moment;
use pooling::connection::{ClientId, ConnectionId, ServerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

const SERVERS: usize = 20;
const SERVICE_US: u64 = 50_000;
const PATIENCE_US: u64 = 1_000_000;
/// More than ever ask at once.
const CLIENTS: usize = 950;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Answer(ServerId),
    Ask,
}

#[derive(Default)]
struct Outcome {
    counted_from_us: u64,
    asked: usize,
    in_time: usize,
    told_to_go: usize,
    latencies_us: Vec<u64>,
}

/// Asks at `load` times the capacity for `seconds`, and counts all that was asked after the first two seconds.
fn run(policy: &str, load: f64, seconds: u64) -> Outcome {
    let mut bench = Bench::new(config(&format!(
        "max_client_conn = 1000\ndefault_pool_size = {SERVERS}\nmin_pool_size = {SERVERS}\noverload_policy = {policy}\n"
    )));
    let mut now_us = 1_000_000;
    while bench.pool("db").sv_idle < SERVERS {
        while !bench.wire.opens.is_empty() {
            bench.open();
        }
        bench.pass(Duration::from_millis(1));
        now_us += 1_000;
    }
    let mut idle: Vec<ClientId> = Vec::new();
    for _ in 0..CLIENTS {
        let id = bench.accept();
        bench.say(id, &startup("db\0holdfast.patience\x001s"));
        bench.heard(id);
        idle.push(id);
    }
    let mut events = BinaryHeap::from([Reverse((now_us, Event::Ask))]);
    let mut asking: BTreeMap<ClientId, u64> = BTreeMap::new();
    let counted_from_us = now_us + 2_000_000;
    let mut outcome = Outcome { counted_from_us, ..Outcome::default() };
    let interval_us = (1e6 / (load * 400.0)) as u64;
    let end_us = now_us + seconds * 1_000_000;
    while let Some(Reverse((at_us, event))) = events.pop() {
        if at_us > end_us {
            break;
        }
        // Timers that are due on the way, one by one.
        while let Some(at) = bench.engine.next_deadline().map(Moment::as_micros)
            && at < at_us
        {
            bench.pass(Duration::from_micros(at.saturating_sub(now_us)));
            now_us = now_us.max(at);
            collect(&mut bench, now_us, &mut events, &mut asking, &mut idle, &mut outcome);
        }
        bench.pass(Duration::from_micros(at_us - now_us));
        now_us = at_us;
        match event {
            Event::Ask => {
                let client = idle.pop().expect("a client that asks for nothing");
                asking.insert(client, now_us);
                outcome.asked += usize::from(now_us >= counted_from_us);
                bench.say(client, &query("SELECT 1"));
                events.push(Reverse((now_us + interval_us, Event::Ask)));
            }
            Event::Answer(server) => bench.answer(server, &done()),
        }
        while !bench.wire.opens.is_empty() {
            bench.open();
        }
        collect(&mut bench, now_us, &mut events, &mut asking, &mut idle, &mut outcome);
    }
    outcome
}

/// Takes what has been sent to where it goes.
fn collect(
    bench: &mut Bench,
    now_us: u64,
    events: &mut BinaryHeap<Reverse<(u64, Event)>>,
    asking: &mut BTreeMap<ClientId, u64>,
    idle: &mut Vec<ClientId>,
    outcome: &mut Outcome,
) {
    let sent: BTreeMap<ConnectionId, Vec<u8>> = std::mem::take(&mut bench.wire.sent).into_iter().collect();
    for (id, bytes) in sent {
        match id {
            ConnectionId::Server(server) => {
                events.push(Reverse((now_us + SERVICE_US, Event::Answer(server))));
            }
            ConnectionId::Client(client) => {
                assert!(bytes.ends_with(READY), "an answer that is whole");
                let asked_at = asking.remove(&client).expect("a client that has asked");
                idle.insert(0, client);
                if asked_at < outcome.counted_from_us {
                    continue;
                }
                if bytes.starts_with(b"E") {
                    outcome.told_to_go += 1;
                } else {
                    outcome.latencies_us.push(now_us - asked_at);
                    outcome.in_time += usize::from(now_us - asked_at <= PATIENCE_US);
                }
            }
        }
    }
}

fn p99(latencies_us: &mut [u64]) -> u64 {
    latencies_us.sort_unstable();
    latencies_us[latencies_us.len() * 99 / 100]
}

#[test]
fn twice_the_load_keeps_the_capacity_useful_and_whoever_is_served_within_his_patience() {
    let mut outcome = run("on", 2.0, 12);
    let goodput = outcome.in_time as f64 / (400.0 * 10.0);
    assert!(goodput >= 0.95, "{goodput}");
    assert!(outcome.told_to_go > 3_000, "{} of {} were told to go", outcome.told_to_go, outcome.asked);
    let p99_us = p99(&mut outcome.latencies_us);
    assert!(p99_us < PATIENCE_US, "{p99_us} us");
}

#[test]
fn nine_tenths_of_the_load_are_served_and_nobody_is_told_to_go() {
    let outcome = run("on", 0.9, 6);
    assert_eq!(outcome.told_to_go, 0);
    assert!(
        outcome.in_time as f64 >= outcome.asked as f64 * 0.95,
        "{} of {}",
        outcome.in_time,
        outcome.asked
    );
}
