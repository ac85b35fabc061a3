//! A pool of 20 servers that need 50 ms a piece, 400 requests a second, in virtual time. Arrivals are open-loop: nobody waits for
//! an answer before the next one comes. Whoever gets no answer within his patience has left, and his answer is for nobody.

use super::*;
use crate::newest::Newest;
use crate::patience::PatienceSource;
use crate::{Line, Ticket};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SERVERS: usize = 20;
/// Of 20 servers that need 50 ms.
const CAPACITY: f64 = 400.0;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A server has finished the request of this caller.
    Finished(usize),
    /// This caller's time is up.
    Left(usize),
    /// The rules want to look at this caller again.
    Look(usize),
    Arrival,
}

struct Caller {
    came_at: Moment,
    patience: Duration,
    known: Option<Patience>,
    ticket: Option<Ticket>,
}

struct Simulation {
    guarded: bool,
    load: Box<dyn Fn(f64) -> f64>,
    /// Of every so many callers the patience of one is unknown; zero: of none.
    unknown_every: usize,
    patience: Duration,
    service: Duration,
    /// The servers do nothing from the one moment to the other.
    stall: (f64, f64),
    now: Moment,
    events: BinaryHeap<Reverse<(Moment, Event)>>,
    callers: Vec<Caller>,
    line: Line<usize>,
    newest: Newest,
    shedding: Shedding,
    busy: usize,
    random: u64,
    /// When the caller came, and how long his answer took; whether he still waited for it.
    served: Vec<(f64, Duration, bool)>,
    shed: usize,
}

impl Simulation {
    fn new(guarded: bool, patience_ms: u64, load: impl Fn(f64) -> f64 + 'static) -> Self {
        Self {
            guarded,
            load: Box::new(load),
            unknown_every: 0,
            patience: Duration::from_millis(patience_ms),
            service: Duration::from_millis(50),
            stall: (f64::INFINITY, f64::INFINITY),
            now: Moment::ORIGIN,
            events: BinaryHeap::new(),
            callers: Vec::new(),
            line: Line::new(usize::MAX),
            newest: Newest::new(),
            shedding: Shedding::default(),
            busy: 0,
            random: 42,
            served: Vec::new(),
            shed: 0,
        }
    }

    fn run(mut self, seconds: f64) -> Self {
        self.events.push(Reverse((Moment::ORIGIN, Event::Arrival)));
        while let Some(Reverse((at, event))) = self.events.pop() {
            self.now = at;
            if seconds_of(at) >= seconds {
                break;
            }
            match event {
                Event::Arrival => self.arrive(),
                Event::Finished(id) => self.finish(id),
                Event::Left(id) => self.leave(id),
                Event::Look(id) => self.look(id),
            }
        }
        self
    }

    fn at(&mut self, at: Moment, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn arrive(&mut self) {
        let rate = (self.load)(seconds_of(self.now)) * CAPACITY;
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((self.random >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        let next = self.now + Duration::from_secs_f64(-uniform.ln() / rate);
        self.at(next, Event::Arrival);
        let id = self.callers.len();
        let is_known = self.unknown_every == 0 || !id.is_multiple_of(self.unknown_every);
        let known = is_known.then(|| Patience::new(self.patience, PatienceSource::Declared));
        self.callers.push(Caller { came_at: self.now, patience: self.patience, known, ticket: None });
        if self.busy < SERVERS {
            return self.serve(id);
        }
        let ahead = self.line.len();
        let ticket = self.line.push_back(id, self.now).unwrap();
        self.callers[id].ticket = Some(ticket);
        if ahead == 0 {
            self.shedding.began(self.now);
        }
        if is_known {
            self.at(self.now + self.patience, Event::Left(id));
        }
        if !self.guarded {
            return;
        }
        self.observe_front();
        if known.is_some() {
            let line = &self.line;
            self.newest.push(ticket, line.len(), |ticket| line.entry(*ticket).is_some());
        }
        let verdict = self.shedding.judge(known, ahead, SERVERS, self.now);
        self.obey(id, verdict);
    }

    fn obey(&mut self, id: usize, verdict: Verdict) {
        match verdict {
            Verdict::Wait(Some(at)) => self.at(at, Event::Look(id)),
            Verdict::Wait(None) => {}
            Verdict::Shed(_) => {
                self.shed += 1;
                self.leave(id);
            }
        }
    }

    fn look(&mut self, id: usize) {
        let caller = &self.callers[id];
        if caller.ticket.is_some() {
            let verdict = self.shedding.look(caller.known, caller.came_at, self.now);
            self.obey(id, verdict);
        }
    }

    fn leave(&mut self, id: usize) {
        if let Some(ticket) = self.callers[id].ticket.take() {
            self.line.remove(ticket);
        }
    }

    /// The line may have come to stand: then everyone in it is looked at again.
    fn observe_front(&mut self) {
        let Some((&front, queued_at)) = self.line.front() else { return };
        if self.shedding.observe(queued_at, self.callers[front].known, self.now) {
            let waiting: Vec<usize> = self.line.iter().map(|(&id, _)| id).collect();
            for id in waiting {
                self.at(self.now, Event::Look(id));
            }
        }
    }

    fn serve(&mut self, id: usize) {
        self.busy += 1;
        let (from, to) = self.stall;
        let mut finished = self.now + self.service;
        if seconds_of(self.now) >= from && seconds_of(self.now) < to {
            finished = Moment::ORIGIN + Duration::from_secs_f64(to) + self.service;
        } else if seconds_of(self.now) < from && seconds_of(finished) >= from {
            finished = finished + Duration::from_secs_f64(to - from);
        }
        self.at(finished, Event::Finished(id));
    }

    fn finish(&mut self, id: usize) {
        self.busy -= 1;
        let caller = &self.callers[id];
        let latency = self.now.since(caller.came_at);
        self.served.push((seconds_of(caller.came_at), latency, latency <= caller.patience));
        if self.line.is_empty() {
            self.shedding.relaxed();
            return;
        }
        self.shedding.freed(SERVERS, self.shedding.pace().service(), self.now);
        if self.guarded {
            self.observe_front();
        }
        let front_is_unknown =
            self.line.front().is_some_and(|(&front, _)| self.callers[front].known.is_none());
        let newest_first = self.shedding.overloaded_since().is_some() && self.guarded;
        let takes_front = front_is_unknown && self.served.len().is_multiple_of(2);
        let line = &self.line;
        let newest = (newest_first && !takes_front)
            .then(|| self.newest.pop(|ticket| line.entry(*ticket).is_some()))
            .flatten();
        let next = match newest {
            Some(ticket) => self.line.remove(ticket),
            None => self.line.pop_front().map(|(id, _)| id),
        };
        if let Some(next) = next {
            self.callers[next].ticket = None;
            self.serve(next);
        }
    }

    /// Of those who came within this time, the share that got an answer in time.
    fn share_served(&self, from: f64, to: f64) -> f64 {
        let within = |at: f64| at >= from && at < to;
        let came = self.callers.iter().filter(|caller| within(seconds_of(caller.came_at))).count();
        self.good(from, to) as f64 / came as f64
    }

    fn good(&self, from: f64, to: f64) -> usize {
        self.served.iter().filter(|(came, _, in_time)| *in_time && *came >= from && *came < to).count()
    }

    /// Of all that were served, the latency that 99 of a hundred stay below.
    fn p99(&self) -> Duration {
        let mut latencies: Vec<Duration> = self.served.iter().map(|(_, latency, _)| *latency).collect();
        latencies.sort_unstable();
        latencies[latencies.len() * 99 / 100]
    }
}

fn seconds_of(at: Moment) -> f64 {
    at.as_micros() as f64 / 1e6
}

#[test]
fn twice_the_load_leaves_the_capacity_useful_and_who_is_served_in_time() {
    for patience_ms in [200, 1_000, 5_000] {
        let run = Simulation::new(true, patience_ms, |_| 2.0).run(40.0);
        let goodput = run.good(0.0, 38.0) as f64 / (38.0 * CAPACITY);
        assert!(goodput >= 0.95, "{patience_ms} ms: {goodput}");
        assert!(run.p99() < run.patience, "{patience_ms} ms: {:?}", run.p99());
    }
}

#[test]
fn first_come_first_served_answers_nobody_in_time_at_twice_the_load() {
    let run = Simulation::new(false, 1_000, |_| 2.0).run(40.0);
    let goodput = run.good(5.0, 38.0) as f64 / (33.0 * CAPACITY);
    assert!(goodput < 0.5, "the simulation overloads nobody: {goodput}");
}

#[test]
fn after_a_stall_everybody_is_served_again_within_two_seconds() {
    for patience_ms in [500, 1_000, 5_000] {
        for length in [1.0, 5.0, 30.0] {
            let mut run = Simulation::new(true, patience_ms, |_| 0.9);
            run.stall = (10.0, 10.0 + length);
            let run = run.run(10.0 + length + 12.0);
            let share = run.share_served(10.0 + length + 2.0, 10.0 + length + 6.0);
            assert!(share >= 0.95, "{patience_ms} ms, {length} s: {share}");
        }
    }
}

#[test]
fn five_minutes_of_twice_the_load_are_over_within_ten_seconds() {
    let run = Simulation::new(true, 1_000, |at| if at < 300.0 { 2.0 } else { 1.0 }).run(330.0);
    let goodput = run.good(1.0, 299.0) as f64 / (298.0 * CAPACITY);
    assert!(goodput >= 0.95, "{goodput}");
    let share = run.share_served(310.0, 328.0);
    assert!(share >= 0.95, "{share}");
}

#[test]
fn below_the_capacity_nobody_is_refused() {
    let run = Simulation::new(true, 1_000, |_| 0.9).run(60.0);
    assert_eq!(run.shed, 0);
    assert!(run.share_served(0.0, 58.0) > 0.999);
}

#[test]
fn those_whose_patience_is_unknown_are_served_beside_the_others() {
    let mut run = Simulation::new(true, 1_000, |_| 2.0);
    // A quarter of twice the capacity is half of it.
    run.unknown_every = 4;
    let run = run.run(60.0);
    let unknown = |came: &&Caller| came.known.is_none() && seconds_of(came.came_at) < 50.0;
    let waiting = run.callers.iter().filter(unknown).filter(|caller| caller.ticket.is_some()).count();
    let all = run.callers.iter().filter(unknown).count();
    assert!(waiting * 100 < all, "{waiting} of {all} unknown callers still wait");
    assert!(run.shed > 0, "it is an overload");
}

#[test]
fn slow_requests_leave_no_server_idle_at_twice_the_load() {
    // Twenty a second, all servers in step.
    let mut run = Simulation::new(true, 5_000, |_| 2.0 / 20.0);
    run.service = Duration::from_secs(1);
    let run = run.run(120.0);
    let goodput = run.good(0.0, 112.0) as f64 / (112.0 * 20.0);
    assert!(goodput >= 0.95, "{goodput}");
    assert!(run.p99() < run.patience, "{:?}", run.p99());
}
