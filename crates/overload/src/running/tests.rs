use super::*;

/// A database that carries `cores` queries at their speed; beyond, each takes longer in proportion.
struct Database {
    cores: u64,
    query_us: u64,
}

impl Database {
    fn latency_us(&self, running: u64) -> u64 {
        self.query_us * running.max(self.cores) / self.cores
    }
}

/// Runs `wanted` queries at once, as far as the limit allows, for so many windows; gives the limits at their ends.
fn run(
    limit: &mut RunningLimit,
    from: &mut (Moment, QueryTotals),
    database: &Database,
    wanted: u64,
    windows: usize,
) -> Vec<usize> {
    let greatest = limit.greatest;
    (0..windows)
        .map(|_| {
            let running = wanted.min(limit.limit() as u64);
            if wanted > limit.limit() as u64 {
                limit.reached();
            }
            let latency_us = database.latency_us(running);
            let count = (running * 500_000 / latency_us).max(LEAST_QUERIES);
            from.0 = from.0 + WINDOW;
            from.1.count += count;
            from.1.time_us += count * latency_us;
            limit.look(from.0, from.1, greatest);
            limit.limit()
        })
        .collect()
}

fn start(greatest: usize) -> (RunningLimit, (Moment, QueryTotals)) {
    let mut limit = RunningLimit::new(greatest);
    let from = (Moment::from_micros(1_000_000), QueryTotals::default());
    limit.look(from.0, from.1, greatest);
    (limit, from)
}

const EIGHT: Database = Database { cores: 8, query_us: 10_000 };

#[test]
fn it_finds_what_the_database_carries_and_stays_there() {
    let (mut limit, mut from) = start(100);
    run(&mut limit, &mut from, &EIGHT, 4, 4);
    assert_eq!(limit.limit(), 100, "nothing is slow");
    let limits = run(&mut limit, &mut from, &EIGHT, 200, 200);
    // Twice the speed of eight is at sixteen.
    assert!(limits[100..].iter().all(|&limit| (14..=18).contains(&limit)), "{limits:?}");
}

#[test]
fn it_opens_again_when_the_database_carries_more() {
    let (mut limit, mut from) = start(40);
    run(&mut limit, &mut from, &EIGHT, 4, 4);
    run(&mut limit, &mut from, &EIGHT, 100, 50);
    let more = Database { cores: 64, ..EIGHT };
    let limits = run(&mut limit, &mut from, &more, 100, 40);
    assert_eq!(limits.last(), Some(&40));
}

#[test]
fn it_never_falls_below_the_least_nor_rises_above_the_pool() {
    let (mut limit, mut from) = start(10);
    run(&mut limit, &mut from, &EIGHT, 1, 2);
    let stuck = Database { cores: 1, query_us: 10_000 };
    let limits = run(&mut limit, &mut from, &stuck, 100, 60);
    assert_eq!(limits.iter().min(), Some(&LEAST_RUNNING));
    let (mut small, mut from) = start(2);
    run(&mut small, &mut from, &EIGHT, 1, 2);
    assert!(run(&mut small, &mut from, &stuck, 100, 60).iter().all(|&limit| limit == 2));
}

#[test]
fn without_anybody_held_back_it_does_not_grow() {
    let (mut limit, mut from) = start(40);
    run(&mut limit, &mut from, &EIGHT, 4, 4);
    run(&mut limit, &mut from, &EIGHT, 100, 50);
    let found = limit.limit();
    let limits = run(&mut limit, &mut from, &EIGHT, 2, 20);
    assert!(limits.iter().all(|&limit| limit == found), "{found} {limits:?}");
}

#[test]
fn few_queries_are_not_judged_and_whoever_is_held_back_by_held_servers_gets_in() {
    let (mut limit, mut from) = start(40);
    run(&mut limit, &mut from, &EIGHT, 4, 4);
    run(&mut limit, &mut from, &EIGHT, 100, 50);
    let found = limit.limit();
    let totals =
        QueryTotals { count: from.1.count + LEAST_QUERIES - 1, time_us: from.1.time_us + 90_000_000 };
    limit.reached();
    assert!(!limit.look(from.0 + (LONGEST_WINDOW - WINDOW / 5), totals, 40));
    assert!(limit.look(from.0 + LONGEST_WINDOW, totals, 40));
    assert_eq!(limit.limit(), found + 1);
}

#[test]
fn another_size_of_the_pool_is_another_greatest() {
    let (mut limit, from) = start(10);
    assert!(limit.look(from.0, from.1, 20));
    assert_eq!(limit.limit(), 20);
    limit.look(from.0, from.1, 3);
    assert_eq!(limit.limit(), 3);
}

#[test]
fn a_load_that_is_slower_for_good_is_measured_by_its_own_speed_in_the_end() {
    let (mut limit, mut from) = start(40);
    run(&mut limit, &mut from, &EIGHT, 4, 4);
    let slower = Database { cores: 64, query_us: 100_000 };
    run(&mut limit, &mut from, &slower, 100, 10);
    assert!(limit.limit() < 40);
    // Ten minutes and more of windows of half a second.
    let limits = run(&mut limit, &mut from, &slower, 100, 1_300);
    assert_eq!(limits.last(), Some(&40));
}
