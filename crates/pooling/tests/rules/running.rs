//! The limit on running requests: what it finds, whom it holds, and that nobody is forgotten behind it.

use super::bench::{Bench, READY, config, done, query};
use pooling::connection::{ClientId, ServerId};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(5);

/// A pool of twenty in front of a database that carries four queries of 10 ms at their speed; beyond, each takes longer in
/// proportion.
struct Scene {
    bench: Bench,
    servers: Vec<ServerId>,
    /// Steps until the answer of each.
    busy: Vec<Option<usize>>,
    clients: Vec<ClientId>,
    asked: u64,
    answered: u64,
}

impl Scene {
    fn new(extra: &str) -> Self {
        let extra = format!("default_pool_size = 20\nmin_pool_size = 20\nquery_wait_timeout = 0\n{extra}");
        let mut bench = Bench::new(config(&extra));
        let clients = (0..60).map(|_| bench.login()).collect();
        let mut servers = Vec::new();
        while !bench.wire.opens.is_empty() {
            bench.open();
        }
        for row in bench.engine.server_rows() {
            if let pooling::connection::ConnectionId::Server(id) =
                pooling::connection::ConnectionId::from_token(row.id)
            {
                servers.push(id);
            }
        }
        assert_eq!(servers.len(), 20);
        Self { bench, busy: vec![None; servers.len()], servers, clients, asked: 0, answered: 0 }
    }

    fn ask(&mut self, client: usize) {
        self.asked += 1;
        self.bench.say(self.clients[client], &query("SELECT 1"));
        self.note_asked();
    }

    fn note_asked(&mut self) {
        for at in 0..self.servers.len() {
            if self.busy[at].is_none() && self.bench.heard(self.servers[at]) == query("SELECT 1") {
                self.busy[at] = Some(0);
                let running = self.busy.iter().flatten().count();
                self.busy[at] = Some(2 * running.max(4) / 4);
            }
        }
    }

    /// One step; whoever of the first `asking` clients has an answer asks again.
    fn step(&mut self, asking: usize) {
        self.bench.pass(STEP);
        for at in 0..self.servers.len() {
            let Some(left) = &mut self.busy[at] else { continue };
            *left -= 1;
            if *left == 0 {
                self.busy[at] = None;
                self.bench.answer(self.servers[at], &done());
                self.note_asked();
            }
        }
        self.bench.due();
        self.note_asked();
        for client in 0..self.clients.len() {
            if self.bench.heard(self.clients[client]).ends_with(READY) {
                self.answered += 1;
                if client < asking {
                    self.ask(client);
                }
            }
        }
    }

    /// Twenty seconds of two clients, then sixty of forty.
    fn overload(&mut self) {
        for client in 0..2 {
            self.ask(client);
        }
        for _ in 0..2_000 {
            self.step(2);
        }
        for client in 2..40 {
            self.ask(client);
        }
        for _ in 0..6_000 {
            self.step(40);
        }
    }
}

#[test]
fn on_lets_no_more_run_than_the_database_carries_and_loses_nobody() {
    let mut scene = Scene::new("running_limit = on\n");
    scene.overload();
    let pool = scene.bench.pool("db");
    let limit = pool.running_limit.expect("a limit");
    // Twice the time that four take is that of eight.
    assert!((6..=11).contains(&limit), "{limit}");
    assert!(pool.sv_active <= limit + 1 && pool.sv_idle >= 20 - limit - 1, "{pool:?}");
    assert!(pool.cl_waiting >= 40 - limit - 1, "{pool:?}");
    assert!(pool.counters.wait.count() > 0 && pool.counters.running_would_hold == 0);
    // As many are served as without a limit: 400 a second.
    let before = scene.answered;
    for _ in 0..200 {
        scene.step(40);
    }
    assert!(scene.answered - before > 320, "{}", scene.answered - before);
    for _ in 0..2_000 {
        scene.step(0);
    }
    assert_eq!(scene.asked, scene.answered, "nobody is left behind");
    assert_eq!(scene.bench.pool("db").cl_waiting, 0);
}

#[test]
fn observe_finds_the_limit_and_holds_nobody_back() {
    let mut scene = Scene::new("running_limit = observe\n");
    scene.overload();
    let pool = scene.bench.pool("db");
    assert!(pool.running_limit.is_some_and(|limit| limit < 20), "{pool:?}");
    assert_eq!((pool.sv_active, pool.sv_idle, pool.counters.running_holds), (20, 0, 0));
    assert!(pool.counters.running_would_hold > 1_000);
}

#[test]
fn off_has_no_limit() {
    let mut scene = Scene::new("");
    scene.overload();
    let pool = scene.bench.pool("db");
    assert_eq!((pool.running_limit, pool.sv_active), (None, 20));
    assert_eq!((pool.counters.running_holds, pool.counters.running_would_hold), (0, 0));
}

#[test]
fn a_reload_that_switches_it_off_lets_everybody_in_who_waits_for_it_alone() {
    let mut scene = Scene::new("running_limit = on\n");
    scene.overload();
    assert!(scene.bench.pool("db").sv_idle > 0);
    let off = config("default_pool_size = 20\nmin_pool_size = 20\nquery_wait_timeout = 0\n");
    scene.bench.engine.reload(&mut scene.bench.wire, off);
    assert_eq!((scene.bench.pool("db").sv_active, scene.bench.pool("db").sv_idle), (20, 0));
}

#[test]
fn a_running_request_whose_server_dies_makes_room_for_the_next_at_once() {
    let mut scene = Scene::new("running_limit = on\n");
    scene.overload();
    let before = scene.bench.pool("db");
    let at = scene.busy.iter().position(Option::is_some).expect("one that runs");
    scene.busy[at] = None;
    scene.bench.end(scene.servers[at]);
    scene.bench.due();
    let after = scene.bench.pool("db");
    assert_eq!((after.sv_active, after.cl_waiting), (before.sv_active, before.cl_waiting - 1));
}

#[test]
fn no_more_servers_are_opened_than_may_run() {
    let mut scene = Scene::new("running_limit = on\n");
    scene.overload();
    let fewer = config("default_pool_size = 20\nquery_wait_timeout = 0\nrunning_limit = on\n");
    scene.bench.engine.reload(&mut scene.bench.wire, fewer);
    let at_rest: Vec<_> = (0..20).filter(|&at| scene.busy[at].is_none()).take(3).collect();
    for at in at_rest {
        scene.bench.end(scene.servers[at]);
    }
    scene.bench.due();
    let pool = scene.bench.pool("db");
    assert!(pool.cl_waiting > 0 && pool.sv_idle + pool.sv_active == 17, "{pool:?}");
    assert!(scene.bench.wire.opens.is_empty(), "it would help nobody");
}

#[test]
fn servers_that_are_held_idle_in_transactions_let_others_in_after_a_while() {
    let mut scene = Scene::new("running_limit = on\nserver_check_delay = 600\n");
    scene.overload();
    for at in 0..20 {
        if scene.busy[at].is_some() {
            let begun = [super::bench::message(b'C', b"BEGIN\0"), super::bench::IN_TRANSACTION.to_vec()];
            scene.bench.answer(scene.servers[at], &begun.concat());
        }
    }
    let before = scene.bench.pool("db").sv_active;
    // Nobody comes, and nothing ends.
    for _ in 0..30 {
        scene.bench.pass(Duration::from_secs(1));
    }
    let after = scene.bench.pool("db").sv_active;
    assert!(after >= before + 4, "{before} {after}");
}

#[test]
fn no_more_servers_at_rest_are_tested_than_may_be_used() {
    let mut scene = Scene::new("running_limit = on\nserver_check_delay = 1\n");
    scene.overload();
    let at = scene.busy.iter().position(Option::is_some).expect("one that runs");
    scene.bench.end(scene.servers[at]);
    scene.bench.due();
    assert_eq!(scene.bench.pool("db").sv_tested, 1, "for the one that may run in its place");
}
