//! Several poolers and one server, with seeds: whatever happens in whatever order, the budget is never exceeded.

use budget::{Chunk, Demand, Lease, Look, Order, Other, ServerLimits, Size, Step, Terms};
use overload::{Cause, Moment};
use std::collections::BTreeSet;
use std::time::Duration;

const BUDGET: usize = 30;
const RESERVED: usize = 6;
const PLACES: usize = BUDGET - RESERVED;
const TICK: u64 = 5;
const MOST_POOLERS: usize = 3;
/// Below settle less the age of a proof: what a login may take at most.
const SLOWEST_LOGIN: u64 = 300;

fn terms() -> Terms {
    Terms {
        size: Size::Connections(BUDGET),
        reserved: RESERVED,
        chunk: 4,
        settle: Duration::from_millis(500),
    }
}

/// A process of the server that serves a connection.
struct Backend {
    pid: i32,
    seen_from: u64,
    until: u64,
}

/// A session that holds locks.
#[derive(Default)]
struct Control {
    id: u64,
    chunks: BTreeSet<Chunk>,
    registered: BTreeSet<i32>,
    is_starving: bool,
    /// Its pooler has left it; the server notices then.
    zombie_until: Option<u64>,
}

struct Pooler {
    lease: Lease,
    control: Option<u64>,
    /// When it is done, whose backend, and whether the pooler gives up on it then.
    attempts: Vec<(u64, i32, bool)>,
    open: Vec<i32>,
    /// Said goodbye to.
    closing: Vec<i32>,
    goal: usize,
    minimum: usize,
    order: Option<Sent>,
}

struct Sent {
    order: Order,
    done_at: u64,
    answered_at: u64,
    look: Option<Look>,
}

struct World {
    random: fastrand::Rng,
    now: u64,
    next: i32,
    backends: Vec<Backend>,
    controls: Vec<Control>,
    poolers: Vec<Pooler>,
    /// Of other programs; they were there first.
    strangers: Vec<i32>,
    most_seen: usize,
}

const fn at(millis: u64) -> Moment {
    Moment::from_micros(millis * 1000)
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            random: fastrand::Rng::with_seed(seed),
            now: 1_000,
            next: 1,
            backends: Vec::new(),
            controls: Vec::new(),
            poolers: Vec::new(),
            strangers: Vec::new(),
            most_seen: 0,
        };
        for _ in 0..world.random.usize(0..3) {
            let pid = world.fork(0, u64::MAX);
            world.strangers.push(pid);
        }
        world
    }

    fn fork(&mut self, seen_from: u64, until: u64) -> i32 {
        self.next += 1;
        self.backends.push(Backend { pid: self.next, seen_from, until });
        self.next
    }

    fn end(&mut self, pid: i32, until: u64) {
        if let Some(backend) = self.backends.iter_mut().find(|backend| backend.pid == pid) {
            backend.until = backend.until.min(until.max(backend.seen_from));
        }
    }

    fn is_there(&self, pid: i32) -> bool {
        self.backends.iter().any(|backend| backend.pid == pid && backend.until > self.now)
    }

    fn seen(&self) -> impl Iterator<Item = i32> + '_ {
        let now = self.now;
        self.backends
            .iter()
            .filter(move |backend| backend.seen_from <= now && backend.until > now)
            .map(|backend| backend.pid)
    }

    fn start(&mut self) {
        let minimum = self.random.usize(0..3).saturating_sub(1) * 2;
        self.poolers.push(Pooler {
            lease: Lease::new(terms(), at(self.now)),
            control: None,
            attempts: Vec::new(),
            open: Vec::new(),
            closing: Vec::new(),
            goal: self.random.usize(0..2 * PLACES),
            minimum,
            order: None,
        });
    }

    /// kill -9: its sockets end, its backends notice when they next look.
    fn kill(&mut self, index: usize) {
        let pooler = self.poolers.remove(index);
        self.controls.retain(|control| Some(control.id) != pooler.control);
        let pids = pooler.attempts.iter().map(|attempt| attempt.1).chain(pooler.open).chain(pooler.closing);
        for pid in pids.collect::<Vec<_>>() {
            let until = self.now + self.random.u64(0..3_000);
            self.end(pid, until);
        }
    }

    fn disturb(&mut self) {
        let count = self.poolers.len();
        match self.random.usize(0..400) {
            0 if count < MOST_POOLERS => self.start(),
            1 if count > 0 => {
                let index = self.random.usize(0..count);
                self.kill(index);
            }
            // The server ends the control session, and the pooler does not hear of it.
            2 if count > 0 => {
                let index = self.random.usize(0..count);
                let lost = self.poolers[index].control;
                self.controls.retain(|control| Some(control.id) != lost);
            }
            // The pooler loses it, and the server does not hear of that for long.
            3 if count > 0 && self.controls.len() < RESERVED => {
                let index = self.random.usize(0..count);
                let until = self.now + self.random.u64(0..4_000);
                if let Some(lost) = self.poolers[index].control.take() {
                    self.controls.iter_mut().filter(|control| control.id == lost).for_each(|control| {
                        control.zombie_until = Some(until);
                    });
                }
            }
            4..=8 if count > 0 => {
                let index = self.random.usize(0..count);
                // Some have little to do for long, and then much at once.
                let most = if self.random.bool() { 2 * PLACES } else { 3 };
                self.poolers[index].goal = self.random.usize(0..most);
            }
            9..=12 if count > 0 => {
                // A connection is cut; its process works on.
                let index = self.random.usize(0..count);
                let now = self.now;
                if let Some(pid) = self.poolers[index].open.pop() {
                    let until = now + self.random.u64(0..2_000);
                    self.end(pid, until);
                    self.poolers[index].lease.ended(at(now), pid, false);
                }
            }
            _ => {}
        }
    }

    fn turn(&mut self, index: usize) {
        let now = self.now;
        let is_there: BTreeSet<i32> =
            self.backends.iter().filter(|backend| backend.until > now).map(|backend| backend.pid).collect();
        let pooler = &mut self.poolers[index];
        let due: Vec<(u64, i32, bool)> = pooler.attempts.extract_if(.., |attempt| attempt.0 <= now).collect();
        for (_, pid, gives_up) in due {
            let pooler = &mut self.poolers[index];
            if gives_up {
                pooler.lease.failed(at(now), true);
                let until = now + self.random.u64(0..1_000);
                self.end(pid, until);
            } else {
                pooler.lease.opened(at(now), pid);
                pooler.open.push(pid);
            }
        }
        let pooler = &mut self.poolers[index];
        let gone: Vec<i32> = pooler.closing.extract_if(.., |pid| !is_there.contains(pid)).collect();
        for pid in gone {
            pooler.lease.ended(at(now), pid, true);
        }
        let total = pooler.open.len() + pooler.attempts.len();
        let close = (total.saturating_sub(pooler.goal.max(pooler.minimum))).max(pooler.lease.excess());
        let close = close.saturating_sub(pooler.closing.len()).min(pooler.open.len());
        for _ in 0..close {
            if let Some(pid) = self.poolers[index].open.pop() {
                let until = now + self.random.u64(0..200);
                self.end(pid, until);
                self.poolers[index].closing.push(pid);
            }
        }
        let pooler = &self.poolers[index];
        let total = pooler.open.len() + pooler.attempts.len();
        let wanted = pooler.goal.max(pooler.minimum).saturating_sub(total);
        let count = wanted.min(pooler.lease.may_open(at(now)));
        for _ in 0..count {
            let took = self.random.u64(1..SLOWEST_LOGIN);
            let seen_from = now + self.random.u64(0..=took);
            let pid = self.fork(seen_from, u64::MAX);
            let gives_up = self.random.u8(0..10) == 0;
            let pooler = &mut self.poolers[index];
            pooler.lease.began();
            pooler.attempts.push((now + took, pid, gives_up));
        }
        self.serve_order(index, Demand { wanted: wanted - count, minimum: self.poolers[index].minimum });
    }

    fn serve_order(&mut self, index: usize, demand: Demand) {
        let now = self.now;
        if self.poolers[index].order.is_none() {
            let Step::Ask(order) = self.poolers[index].lease.next_step(at(now), demand) else { return };
            let is_slow = self.random.u8(0..20) == 0;
            let way = if is_slow { 300 } else { 20 };
            let done_at = now + self.random.u64(0..way);
            let answered_at = done_at + self.random.u64(0..way);
            if order.begins_session {
                self.next += 1;
                let id = u64::try_from(self.next).unwrap_or_default();
                self.controls.push(Control { id, ..Control::default() });
                self.poolers[index].control = Some(id);
            }
            self.poolers[index].order = Some(Sent { order, done_at, answered_at, look: None });
            return;
        }
        let Some(mut sent) = self.poolers[index].order.take() else { return };
        if sent.look.is_none() && sent.done_at <= now {
            sent.look = self.carry_out(index, &sent.order);
        }
        if sent.answered_at > now {
            self.poolers[index].order = Some(sent);
            return;
        }
        let pooler = &mut self.poolers[index];
        let lives = self.controls.iter().any(|control| Some(control.id) == pooler.control);
        match sent.look {
            Some(look) if lives => pooler.lease.looked(at(now), sent.order.id, &look),
            _ => {
                pooler.control = None;
                pooler.lease.lost(at(now), sent.order.id, Cause::Crashed, 7);
            }
        }
    }

    fn carry_out(&mut self, index: usize, order: &Order) -> Option<Look> {
        let mine = self.poolers[index].control?;
        let taken: BTreeSet<Chunk> =
            self.controls.iter().flat_map(|control| control.chunks.iter().copied()).collect();
        let seen: BTreeSet<i32> = self.seen().collect();
        let present = order.doubtful.iter().copied().filter(|&pid| self.is_there(pid)).collect();
        let control = self.controls.iter_mut().find(|control| control.id == mine)?;
        control.registered.extend(&order.register);
        order.forget.iter().for_each(|pid| {
            control.registered.remove(pid);
        });
        for chunk in &order.release {
            assert!(control.chunks.remove(chunk), "it gives back only what it has");
        }
        let free = order.candidates.iter().filter(|chunk| !taken.contains(chunk)).take(order.take);
        control.chunks.extend(free);
        control.is_starving = order.is_starving;
        let mine_now = control.chunks.iter().copied().collect();
        let others = self.controls.iter().filter(|control| control.id != mine).map(|control| Other {
            places: control.chunks.iter().map(|chunk| chunk.places()).sum(),
            servers: control.registered.intersection(&seen).count(),
            is_starving: control.is_starving,
        });
        let registered: BTreeSet<i32> =
            self.controls.iter().flat_map(|control| control.registered.iter().copied()).collect();
        Some(Look {
            mine: mine_now,
            others: others.collect(),
            unowned: seen.difference(&registered).copied().collect(),
            controls: self.controls.len(),
            present,
            limits: ServerLimits { connections: 100, reserved: 3 },
        })
    }

    fn tick(&mut self, seed: u64) {
        self.now += TICK;
        let now = self.now;
        self.backends.retain(|backend| backend.until > now);
        self.controls.retain(|control| control.zombie_until.is_none_or(|until| until > now));
        for index in 0..self.poolers.len() {
            self.turn(index);
        }
        let seen = self.seen().count();
        self.most_seen = self.most_seen.max(seen);
        assert!(
            seen + RESERVED.max(self.controls.len()) <= BUDGET,
            "seed {seed}, {now} ms: {seen} backends and {} control connections",
            self.controls.len()
        );
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..4_000 {
        world.disturb();
        world.tick(seed);
    }
    assert!(world.poolers.is_empty() || world.most_seen > 0 || world.strangers.is_empty());
    // Then all want more than there is, for long, and nothing happens any more.
    while world.poolers.len() < MOST_POOLERS {
        world.start();
    }
    for pooler in &mut world.poolers {
        pooler.goal = 2 * PLACES;
    }
    for _ in 0..6_000 {
        world.tick(seed);
    }
    let open: Vec<usize> = world.poolers.iter().map(|pooler| pooler.open.len()).collect();
    let minima: Vec<usize> = world.poolers.iter().map(|pooler| pooler.minimum).collect();
    let total: usize = open.iter().sum();
    let spare = PLACES - world.strangers.len() - total;
    assert!(
        open.iter().zip(&minima).all(|(open, minimum)| open >= minimum),
        "seed {seed}: {open:?} of {minima:?}"
    );
    // What strangers have, each pooler leaves free by itself: none knows what the others leave.
    assert!(spare <= 2 * world.strangers.len(), "seed {seed}: {open:?}, {spare} places are unused");
    let (least, most) = (open.iter().min().copied().unwrap_or(0), open.iter().max().copied().unwrap_or(0));
    assert!(most - least <= 8, "seed {seed}: {open:?} is not fair");
}

#[test]
fn no_order_of_openings_deaths_cuts_and_looks_exceeds_the_budget_and_all_get_their_share() {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let count = std::env::var("SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(25);
    for seed in first..first + count {
        run(seed);
    }
}
