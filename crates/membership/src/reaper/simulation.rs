//! Whole fleets in virtual time: relays, their database and a judge, with the ways between them cut at random.

use fastrand::Rng;

use super::*;

const TIMING: Timing = Timing::of_beat_ms(5_000);
const STEP_MS: u64 = 500;
/// A beat that is not answered is given up after so long.
const RECORD_LIMIT_MS: u64 = 10_000;
/// What is promised: a dead relay is removed so long after its death, or after the last trouble that stood in the way.
const PROMISE_MS: u64 = 180_000;

#[derive(Clone, Copy, PartialEq)]
enum Body {
    Runs,
    /// The process is gone, its host is not.
    Killed,
    /// The host is gone.
    Vanished,
}

struct Relay {
    body: Body,
    epoch: u64,
    died_ms: u64,
    next_beat_ms: u64,
    sighting: Sighting<usize>,
    died_at_ms: Option<u64>,
    cut_from_database: bool,
    cut_from_judge: bool,
    /// Words of this relay about others, as they stand in the records.
    words: Vec<(usize, Word, u64)>,
}

struct Fleet {
    seed: u64,
    rng: Rng,
    now_ms: u64,
    relays: Vec<Relay>,
    judge: Reaper<usize>,
    judge_cut: bool,
    judge_wakes_ms: u64,
    database_down: bool,
    /// Beats take so long.
    database_slow_ms: u64,
    peers: bool,
    /// When the last fault ended, or will.
    calm_since_ms: u64,
    /// Beside it: the faults that have an end.
    heals: Vec<(u64, Fault)>,
    removals: Vec<u64>,
    was_held: bool,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    RelaysFromDatabase { first: usize, count: usize },
    RelaysFromJudge { first: usize, count: usize },
    JudgeFromDatabase,
    Database,
    SlowDatabase(u64),
    JudgeSleeps,
}

impl Fleet {
    fn of(count: usize, peers: bool, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let relay = |id: usize, rng: &mut Rng| Relay {
            body: Body::Runs,
            epoch: 1,
            died_ms: 0,
            next_beat_ms: rng.u64(0..5_000),
            sighting: Sighting {
                relay: id,
                epoch: 1,
                stamp: 1,
                draining: false,
                standing: None,
                removed_ms_ago: None,
            },
            died_at_ms: None,
            cut_from_database: false,
            cut_from_judge: false,
            words: Vec::new(),
        };
        Self {
            seed,
            now_ms: 0,
            relays: (0..count).map(|id| relay(id, &mut rng)).collect(),
            judge: Reaper::new(TIMING),
            judge_cut: false,
            judge_wakes_ms: 0,
            database_down: false,
            database_slow_ms: 0,
            peers,
            calm_since_ms: 0,
            heals: Vec::new(),
            removals: Vec::new(),
            was_held: false,
            rng,
        }
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        self.heal();
        self.beats();
        if self.now_ms >= self.judge_wakes_ms {
            self.judge_wakes_ms = self.now_ms + TIMING.look_ms() + self.rng.u64(0..300);
            self.look();
        }
        self.check();
    }

    fn beats(&mut self) {
        for id in 0..self.relays.len() {
            if self.relays[id].body != Body::Runs || self.now_ms < self.relays[id].next_beat_ms {
                continue;
            }
            let takes_ms =
                if self.database_slow_ms > 0 { self.rng.u64(0..self.database_slow_ms) } else { 20 };
            let fails = self.database_down || self.relays[id].cut_from_database || takes_ms > RECORD_LIMIT_MS;
            let rest_ms = 5_000 + if fails { RECORD_LIMIT_MS } else { takes_ms };
            self.relays[id].next_beat_ms = self.now_ms + rest_ms;
            if fails {
                continue;
            }
            self.relays[id].sighting.stamp = self.now_ms;
            self.relays[id].sighting.epoch = self.relays[id].epoch;
            self.relays[id].sighting.standing = None;
            if self.peers {
                self.relays[id].words = self.words_of(id);
            }
        }
    }

    /// Whom a relay tells of: those that look late to the records. Relays reach each other.
    fn words_of(&self, id: usize) -> Vec<(usize, Word, u64)> {
        let late = |other: &&Relay| self.now_ms.saturating_sub(other.sighting.stamp) > TIMING.late_ms();
        self.relays
            .iter()
            .filter(|other| other.sighting.relay != id)
            .filter(late)
            .map(|other| {
                let word = if other.body == Body::Runs { Word::Reaches } else { Word::Fails };
                (other.sighting.relay, word, self.now_ms)
            })
            .collect()
    }

    fn look(&mut self) {
        if self.judge_cut || self.database_down {
            self.judge.look_failed(self.now_ms);
            return;
        }
        let records: Vec<_> = self.relays.iter().map(|relay| relay.sighting).collect();
        self.judge.look(self.now_ms, &records);
        for id in self.judge.to_probe(self.now_ms) {
            let relay = &self.relays[id];
            let probe = match relay.body {
                _ if relay.cut_from_judge => Probe::NoAnswer,
                Body::Runs => Probe::Reached,
                Body::Killed => Probe::Refused,
                Body::Vanished => Probe::NoAnswer,
            };
            self.judge.probed(self.now_ms, id, probe);
        }
        for relay in &self.relays {
            for (about, word, at_ms) in &relay.words {
                if self.now_ms - at_ms < 2 * 5_000 {
                    self.judge.told(self.now_ms, relay.sighting.relay, *about, *word);
                }
            }
        }
        let judgement = self.judge.judge(self.now_ms);
        if judgement.hold.is_some() {
            self.was_held = true;
            self.calm_since_ms = self.calm_since_ms.max(self.now_ms);
        }
        for judged in judgement.judged {
            let relay = &mut self.relays[judged.relay];
            let Verdict::Dead(cause) = judged.verdict else { continue };
            // The write is refused if it has beaten meanwhile.
            if relay.sighting.standing.is_none() && relay.sighting.stamp == judged.stamp {
                let (epoch, stamp) = (judged.epoch, judged.stamp);
                relay.sighting.standing = Some(Standing { epoch, stamp, cause });
                relay.died_at_ms = Some(self.now_ms);
                self.removals.push(self.now_ms);
                assert!(
                    relay.body != Body::Runs,
                    "seed {}: {} lives, and was removed",
                    self.seed,
                    judged.relay
                );
                assert!(judgement.hold.is_none(), "seed {}: removed while on hold", self.seed);
            }
        }
        let window = self.removals.iter().filter(|at| self.now_ms - **at < TIMING.window_ms()).count();
        let most = Limits::of(u32::try_from(self.relays.len()).unwrap()).removed_in_window as usize;
        assert!(window <= most, "seed {}: {window} within one window", self.seed);
        for relay in &mut self.relays {
            relay.sighting.removed_ms_ago = relay.died_at_ms.map(|at_ms| self.now_ms - at_ms);
        }
    }

    fn check(&self) {
        for relay in &self.relays {
            if relay.body == Body::Runs || relay.sighting.standing.is_some() || self.cannot_be_told(relay) {
                continue;
            }
            let waited_ms = self.now_ms.saturating_sub(relay.died_ms.max(self.calm_since_ms));
            assert!(
                waited_ms <= PROMISE_MS,
                "seed {}: {} is dead and was not removed; {:?}",
                self.seed,
                relay.sighting.relay,
                self.judge.judge(self.now_ms)
            );
        }
    }

    /// The only relay's host is gone: that cannot be told from a broken way to it.
    fn cannot_be_told(&self, relay: &Relay) -> bool {
        relay.body == Body::Vanished
            && self.relays.iter().filter(|relay| relay.sighting.standing.is_none()).count() == 1
    }

    fn kill(&mut self) {
        // As many as may be late at once, of those that are left.
        let left = self.relays.iter().filter(|relay| relay.sighting.standing.is_none()).count();
        let dying =
            self.relays.iter().filter(|relay| relay.body != Body::Runs && relay.sighting.standing.is_none());
        if dying.count() >= Limits::of(u32::try_from(left).unwrap()).late_at_once as usize {
            return;
        }
        let id = self.rng.usize(0..self.relays.len());
        let body = if self.rng.bool() { Body::Killed } else { Body::Vanished };
        let relay = &mut self.relays[id];
        if relay.body == Body::Runs {
            (relay.body, relay.died_ms) = (body, self.now_ms);
        }
    }

    fn revive(&mut self) {
        let now_ms = self.now_ms;
        let dead = self
            .relays
            .iter_mut()
            .find(|relay| relay.sighting.standing.is_some() && relay.body != Body::Runs);
        if let Some(relay) = dead {
            relay.body = Body::Runs;
            relay.epoch += 1;
            relay.next_beat_ms = now_ms;
            // Those that could not be judged without it can be from now on.
            self.calm_since_ms = now_ms;
        }
    }

    fn cut(&mut self) {
        let count = self.relays.len();
        let first = self.rng.usize(0..count);
        let some = if self.rng.bool() { count } else { self.rng.usize(1..=count) };
        let fault = match self.rng.u8(0..6) {
            0 => Fault::RelaysFromDatabase { first, count: some },
            1 => Fault::RelaysFromJudge { first, count: some },
            2 => Fault::JudgeFromDatabase,
            3 => Fault::Database,
            4 => Fault::SlowDatabase(self.rng.u64(2_000..12_000)),
            _ => Fault::JudgeSleeps,
        };
        // Without peers, a relay that neither the database nor the judge hears cannot be told from a dead one.
        let blind = |fault: &Fault| matches!(fault, Fault::RelaysFromJudge { .. });
        let deaf = |fault: &Fault| !blind(fault);
        let standing = |wanted: &dyn Fn(&Fault) -> bool| self.heals.iter().any(|(_, fault)| wanted(fault));
        if !self.peers && ((blind(&fault) && standing(&deaf)) || (deaf(&fault) && standing(&blind))) {
            return;
        }
        self.set(fault, true);
        let until_ms = self.now_ms + self.rng.u64(5_000..900_000);
        self.heals.push((until_ms, fault));
    }

    fn heal(&mut self) {
        let over: Vec<_> = self.heals.extract_if(.., |(until_ms, _)| *until_ms <= self.now_ms).collect();
        for (_, fault) in over {
            self.set(fault, false);
        }
        // What else stands is set again: two may have cut the same way.
        for (_, fault) in self.heals.clone() {
            self.set(fault, true);
        }
        let sleeps = self.judge_wakes_ms > self.now_ms + 2 * TIMING.look_ms();
        if !self.heals.is_empty() || sleeps {
            self.calm_since_ms = self.now_ms;
        }
    }

    fn set(&mut self, fault: Fault, on: bool) {
        let count = self.relays.len();
        let some = |first: usize, some: usize| (first..first + some).map(move |id| id % count);
        match fault {
            Fault::RelaysFromDatabase { first, count } => {
                some(first, count).for_each(|id| self.relays[id].cut_from_database = on);
            }
            Fault::RelaysFromJudge { first, count } => {
                some(first, count).for_each(|id| self.relays[id].cut_from_judge = on);
            }
            Fault::JudgeFromDatabase => self.judge_cut = on,
            Fault::Database => self.database_down = on,
            Fault::SlowDatabase(ms) => self.database_slow_ms = if on { ms } else { 0 },
            Fault::JudgeSleeps => {
                if on {
                    self.judge_wakes_ms = self.judge_wakes_ms.max(self.now_ms + 30_000);
                }
            }
        }
    }
}

/// Hours of one fleet's life.
fn live(count: usize, peers: bool, seed: u64) -> (usize, bool) {
    let mut fleet = Fleet::of(count, peers, seed);
    for _ in 0..2 * 3_600 * 1_000 / STEP_MS {
        match fleet.rng.u32(0..1_200) {
            0 => fleet.kill(),
            1 => fleet.cut(),
            2 => fleet.revive(),
            _ => {}
        }
        fleet.step();
    }
    (fleet.removals.len(), fleet.was_held)
}

#[test]
fn in_fleets_with_partitions_no_live_relay_is_removed_and_a_dead_one_within_three_minutes() {
    let first = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    println!("seeds from {first} (HOLDFAST_SEED)");
    let (mut removed, mut held) = (0, 0);
    for seed in first..first + 12 {
        for count in [1, 2, 3, 10, 32] {
            for peers in [false, true] {
                let (removals, was_held) = live(count, peers, seed);
                removed += removals;
                held += usize::from(was_held);
            }
        }
    }
    println!("{removed} removed, {held} fleets on hold at some time");
    assert!(removed > 100 && held > 20, "it has to be seen that something happens: {removed} {held}");
}
