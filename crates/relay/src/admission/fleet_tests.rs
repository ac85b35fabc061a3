//! Whole fleets that come back to one relay, in virtual time: the rules of both ends against each other.

use super::*;
use link::Comeback;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a client does at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Dials(u32),
    /// The line may move.
    LineMoves,
}

/// A relay, and clients that were all dropped at once.
struct Fleet {
    admission: Admission,
    clients: Vec<Comeback>,
    line: VecDeque<u32>,
    events: BinaryHeap<Reverse<(Moment, Event)>>,
    random: fastrand::Rng,
    /// When each came in.
    admitted_at: Vec<Moment>,
    dials: u64,
}

impl Fleet {
    /// `base` is the greatest wait before the first attempt, as the relay sets it.
    fn dropped(count: u32, rate: u32, base: Duration, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut clients = vec![Comeback::new(); usize::try_from(count).unwrap()];
        let mut events = BinaryHeap::new();
        for (client, comeback) in clients.iter_mut().enumerate() {
            let pace = link::Pace { base, ..link::Pace::default() };
            comeback.set_pace(pace);
            let wait = comeback.ended(None, random.u64(..), Moment::ORIGIN);
            events.push(Reverse((Moment::ORIGIN + wait, Event::Dials(u32::try_from(client).unwrap()))));
        }
        let line = VecDeque::new();
        Self {
            admission: Admission::new(rate, 2_000),
            clients,
            line,
            events,
            random,
            admitted_at: Vec::new(),
            dials: 0,
        }
    }

    fn run(mut self) -> Self {
        while let Some(Reverse((now, event))) = self.events.pop() {
            match event {
                Event::Dials(client) => self.dials(client, now),
                Event::LineMoves => self.line_moves(now),
            }
        }
        self
    }

    fn dials(&mut self, client: u32, now: Moment) {
        self.dials += 1;
        match self.admission.arrive(now) {
            Verdict::Admit => self.admitted_at.push(now),
            Verdict::Wait => {
                self.line.push_back(client);
                if self.line.len() == 1 {
                    self.events.push(Reverse((now, Event::LineMoves)));
                }
            }
            Verdict::PutOff(wait) => {
                let jitter = self.random.u64(..);
                let wait = self.clients[usize::try_from(client).unwrap()].ended(Some(wait), jitter, now);
                self.events.push(Reverse((now + wait, Event::Dials(client))));
            }
        }
    }

    fn line_moves(&mut self, now: Moment) {
        loop {
            match self.admission.next(now) {
                None => return,
                Some(Ok(())) => {
                    self.line.pop_front();
                    self.admitted_at.push(now);
                }
                Some(Err(later)) => {
                    return self
                        .events
                        .push(Reverse((later.max(now + Duration::from_micros(1)), Event::LineMoves)));
                }
            }
        }
    }

    fn most_in_a_second(&self) -> usize {
        let mut seconds = std::collections::HashMap::new();
        for at in &self.admitted_at {
            *seconds.entry(at.as_micros() / 1_000_000).or_insert(0) += 1;
        }
        seconds.into_values().max().unwrap_or(0)
    }
}

#[test]
fn a_fleet_is_back_within_one_and_a_half_times_its_size_over_the_rate() {
    for (count, rate) in [(5_000, 500), (20_000, 1_000), (75_000, 1_000), (75_000, 2_000)] {
        for seed in 0..3 {
            let fleet = Fleet::dropped(count, rate, Duration::from_secs(1), seed).run();
            let back = fleet.admitted_at.iter().max().unwrap().since(Moment::ORIGIN);
            let limit = Duration::from_secs(u64::from(count)) * 3 / 2 / rate;
            assert_eq!(fleet.admitted_at.len(), usize::try_from(count).unwrap());
            assert!(back <= limit, "{count} at {rate}/s, seed {seed}: {back:?} of {limit:?}");
            let most = usize::try_from(rate + rate / BURST_DIVISOR + 1).unwrap();
            assert!(fleet.most_in_a_second() <= most, "{} in a second", fleet.most_in_a_second());
            // What a refusal costs is little, and it does not multiply: a few dials for each client.
            assert!(fleet.dials <= 4 * u64::from(count), "{} dials of {count} clients", fleet.dials);
        }
    }
}
