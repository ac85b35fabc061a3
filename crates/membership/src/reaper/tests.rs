use proptest::prelude::*;

use super::*;

const BEAT_MS: u64 = 5_000;
const TIMING: Timing = Timing::of_beat_ms(BEAT_MS);

/// A judge, and what it will read.
struct Bench {
    reaper: Reaper<u32>,
    now_ms: u64,
    records: Vec<Sighting<u32>>,
    beating: Vec<bool>,
    /// What the judge's probes meet.
    probes: Vec<Probe>,
    words: Vec<(u32, u32, Word)>,
    died: Vec<u32>,
}

impl Bench {
    fn of(relays: u32) -> Self {
        let record = |relay| Sighting {
            relay,
            epoch: 1,
            stamp: 0,
            draining: false,
            standing: None,
            removed_ms_ago: None,
        };
        Self {
            reaper: Reaper::new(TIMING),
            now_ms: 1_000_000,
            records: (0..relays).map(record).collect(),
            beating: vec![true; relays as usize],
            probes: vec![Probe::Reached; relays as usize],
            words: Vec::new(),
            died: Vec::new(),
        }
    }

    fn kill(&mut self, relay: usize, probe: Probe) {
        self.beating[relay] = false;
        self.probes[relay] = probe;
    }

    /// One look.
    fn look(&mut self) -> Judgement<u32> {
        self.now_ms += TIMING.look_ms();
        for (record, beating) in self.records.iter_mut().zip(&self.beating) {
            if *beating && self.now_ms.is_multiple_of(BEAT_MS) {
                record.stamp += 1;
            }
            if let Some(age_ms) = &mut record.removed_ms_ago {
                *age_ms += TIMING.look_ms();
            }
        }
        self.reaper.look(self.now_ms, &self.records);
        for relay in self.reaper.to_probe(self.now_ms) {
            self.reaper.probed(self.now_ms, relay, self.probes[relay as usize]);
        }
        for (by, about, word) in self.words.clone() {
            self.reaper.told(self.now_ms, by, about, word);
        }
        let judgement = self.reaper.judge(self.now_ms);
        for judged in &judgement.judged {
            let Some(record) = self.records.iter_mut().find(|record| record.relay == judged.relay) else {
                continue;
            };
            if let Verdict::Dead(cause) = judged.verdict
                && record.standing.is_none()
            {
                record.standing = Some(Standing { epoch: judged.epoch, stamp: judged.stamp, cause });
                record.removed_ms_ago = Some(0);
                self.died.push(judged.relay);
            }
        }
        judgement
    }

    /// Looks for so long; the last judgement.
    fn run(&mut self, for_ms: u64) -> Judgement<u32> {
        let until_ms = self.now_ms + for_ms;
        loop {
            let judgement = self.look();
            if self.now_ms >= until_ms {
                return judgement;
            }
        }
    }

    fn verdict(&self, relay: u32) -> Verdict {
        let judgement = self.reaper.judge(self.now_ms);
        judgement.judged.iter().find(|judged| judged.relay == relay).unwrap().verdict
    }
}

#[test]
fn one_dead_of_one_two_three_ten_and_32_is_removed_within_three_minutes() {
    for relays in [1, 2, 3, 10, 32] {
        let mut bench = Bench::of(relays);
        bench.run(60_000);
        bench.kill(0, Probe::Refused);
        bench.run(180_000);
        assert_eq!(bench.died, [0], "of {relays}");
        assert_eq!(bench.verdict(0), Verdict::Dead(DeathCause::Refused));
    }
}

#[test]
fn a_host_that_is_gone_is_removed_unless_it_is_the_only_one() {
    for relays in [2, 3, 10, 32] {
        let mut bench = Bench::of(relays);
        bench.kill(0, Probe::NoAnswer);
        bench.run(180_000);
        assert_eq!(bench.died, [0], "of {relays}");
        assert_eq!(bench.verdict(0), Verdict::Dead(DeathCause::NoAnswer));
    }
    let mut alone = Bench::of(1);
    alone.kill(0, Probe::NoAnswer);
    alone.run(3_600_000);
    assert!(alone.died.is_empty());
    assert_eq!(alone.verdict(0), Verdict::Suspect(Doubt::NoAnswerAlone));
}

#[test]
fn two_dead_of_ten_and_four_of_32_at_once_are_removed_within_three_minutes_at_the_rate_of_the_table() {
    for (relays, dead, first) in [(10, 2, 1), (32, 4, 2)] {
        let mut bench = Bench::of(relays);
        (0..dead).for_each(|relay| bench.kill(relay, Probe::NoAnswer));
        while bench.died.is_empty() {
            bench.look();
        }
        assert_eq!(bench.died.len(), first, "of {relays}");
        let begun_ms = bench.now_ms;
        while bench.died.len() < dead {
            bench.look();
        }
        assert!(bench.now_ms - begun_ms >= TIMING.window_ms());
        assert!(bench.now_ms - 1_000_000 <= 180_000, "{} s", (bench.now_ms - 1_000_000) / 1_000);
    }
}

#[test]
fn a_peer_that_confirms_makes_it_quicker_and_one_that_reaches_it_stops_it() {
    let mut bench = Bench::of(3);
    bench.kill(0, Probe::NoAnswer);
    bench.words = vec![(1, 0, Word::Fails)];
    bench.run(TIMING.confirmed_ms() + BEAT_MS);
    assert_eq!(bench.died, [0]);

    let mut bench = Bench::of(3);
    bench.kill(0, Probe::NoAnswer);
    bench.words = vec![(1, 0, Word::Fails), (2, 0, Word::Reaches)];
    bench.run(3_600_000);
    assert!(bench.died.is_empty());
    assert_eq!(bench.verdict(0), Verdict::Unknown(Doubt::PeerReaches));
    // A relay that is late itself is no witness.
    bench.kill(2, Probe::Refused);
    bench.run(60_000);
    assert_eq!(bench.reaper.judge(bench.now_ms).hold.unwrap().cause, HoldCause::ManyLate);
}

#[test]
fn late_on_one_path_only_is_unknown_however_long_it_lasts() {
    let mut bench = Bench::of(10);
    bench.beating[3] = false;
    bench.run(24 * 3_600_000);
    assert!(bench.died.is_empty());
    assert_eq!(bench.verdict(3), Verdict::Unknown(Doubt::Reached));
}

#[test]
fn everybody_late_holds_and_gives_a_fresh_grace_afterwards() {
    for relays in [2, 3, 10, 32] {
        let mut bench = Bench::of(relays);
        bench.run(60_000);
        bench.beating.fill(false);
        bench.probes.fill(Probe::Refused);
        let held = bench.run(600_000);
        assert!(bench.died.is_empty(), "of {relays}");
        let hold = held.hold.unwrap();
        assert_eq!((hold.cause, held.late, held.relays), (HoldCause::ManyLate, relays, relays));
        assert!(bench.now_ms - hold.since_ms >= 600_000 - TIMING.late_ms() - BEAT_MS, "since it began");
        // All but one come back: that one has as long as anyone, and then it is gone.
        bench.beating.fill(true);
        bench.probes.fill(Probe::Reached);
        bench.kill(0, Probe::Refused);
        let after = bench.run(TIMING.unconfirmed_ms() - BEAT_MS);
        assert_eq!((after.hold, bench.died.len()), (None, 0));
        bench.run(4 * BEAT_MS);
        assert_eq!(bench.died, [0]);
    }
}

#[test]
fn a_judge_that_sees_nobody_removes_nobody_and_says_so() {
    let mut bench = Bench::of(10);
    bench.probes.fill(Probe::NoAnswer);
    bench.beating[0] = false;
    let judgement = bench.run(600_000);
    assert!(bench.died.is_empty());
    assert_eq!(judgement.hold.unwrap().cause, HoldCause::Blind);
    assert_eq!(bench.verdict(0), Verdict::Suspect(Doubt::Blind));
}

#[test]
fn a_judge_whose_own_writes_fail_or_that_slept_gives_the_time_back() {
    let mut bench = Bench::of(10);
    bench.run(30_000);
    bench.kill(0, Probe::NoAnswer);
    bench.run(100_000);
    assert!(bench.died.is_empty());
    // It sleeps for an hour: that is not the relays' silence.
    bench.now_ms += 3_600_000;
    bench.run(30_000);
    assert!(bench.died.is_empty());
    bench.run(30_000);
    assert_eq!(bench.died, [0]);

    let mut bench = Bench::of(10);
    bench.kill(0, Probe::NoAnswer);
    bench.run(TIMING.unconfirmed_ms() - 2 * BEAT_MS);
    for _ in 0..100 {
        bench.now_ms += TIMING.look_ms();
        bench.reaper.look_failed(bench.now_ms);
        let judgement = bench.reaper.judge(bench.now_ms);
        assert_eq!(judgement.hold.unwrap().cause, HoldCause::OwnPath);
        assert!(!judgement.judged.iter().any(|judged| matches!(judged.verdict, Verdict::Dead(_))));
    }
    bench.run(TIMING.settle_ms() - BEAT_MS);
    assert!(bench.died.is_empty(), "its path has to hold for a while first");
    bench.run(3 * BEAT_MS);
    assert_eq!(bench.died, [0]);
}

#[test]
fn a_relay_that_beats_again_is_alive_and_one_whose_record_vanishes_is_no_less_so() {
    let mut bench = Bench::of(3);
    bench.kill(1, Probe::Refused);
    bench.run(180_000);
    assert_eq!(bench.died, [1]);
    bench.beating[1] = true;
    bench.run(BEAT_MS);
    assert_eq!(bench.verdict(1), Verdict::Alive);
    // A verdict over an earlier start, or over an earlier beat, says nothing.
    assert!(bench.records[1].standing.is_some());

    let mut bench = Bench::of(3);
    bench.run(60_000);
    let gone = bench.records.remove(2);
    bench.beating.pop();
    bench.look();
    assert_eq!(bench.verdict(2), Verdict::Alive);
    bench.records.push(Sighting { stamp: gone.stamp + 1, ..gone });
    bench.beating.push(true);
    bench.run(60_000);
    assert_eq!((bench.verdict(2), bench.died.len()), (Verdict::Alive, 0));
}

#[test]
fn a_new_judge_takes_over_the_deaths_that_stand_and_gives_everybody_else_their_time() {
    let mut bench = Bench::of(3);
    bench.kill(1, Probe::Refused);
    bench.run(180_000);
    bench.reaper = Reaper::new(TIMING);
    bench.look();
    assert_eq!(bench.verdict(1), Verdict::Dead(DeathCause::Refused));
    bench.kill(0, Probe::Refused);
    bench.run(TIMING.unconfirmed_ms() - BEAT_MS);
    assert_eq!(bench.died, [1]);
    bench.run(5 * BEAT_MS);
    assert_eq!(bench.died, [1, 0], "one of the two that are left");
}

#[test]
fn whoever_says_that_it_ends_does_not_stop_the_others_from_being_judged() {
    let mut bench = Bench::of(3);
    bench.run(60_000);
    for relay in [1, 2] {
        bench.records[relay].draining = true;
        bench.kill(relay, Probe::Refused);
    }
    let judgement = bench.run(60_000);
    assert_eq!((judgement.hold, judgement.relays, judgement.late), (None, 1, 0));
    bench.run(180_000);
    bench.died.sort_unstable();
    assert_eq!(bench.died, [1, 2]);
}

#[test]
fn a_judge_keeps_a_bounded_number_in_mind() {
    let mut reaper = Reaper::new(TIMING);
    let record =
        |relay| Sighting { relay, epoch: 1, stamp: 1, draining: false, standing: None, removed_ms_ago: None };
    let records: Vec<_> = (0..2 * MOST_RELAYS as u32).map(record).collect();
    reaper.look(0, &records);
    assert_eq!(reaper.judge(0).judged.len(), MOST_RELAYS);
    for step in 0..200 {
        reaper.look(step * TIMING.look_ms(), &records);
    }
    assert!(reaper.to_probe(200 * TIMING.look_ms()).len() <= MOST_PROBED + CONTROLS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever stops when, whatever the probes meet: within one window no more go than the table says, and never while more are
    /// late than it says.
    #[test]
    fn no_more_are_removed_than_the_table_says(
        relays in 1_u32..40,
        stops in proptest::collection::vec((0_usize..40, 0_u64..400, any::<bool>(), any::<bool>()), 0..60),
    ) {
        let mut bench = Bench::of(relays);
        let mut removals: Vec<u64> = Vec::new();
        for look in 0..400 {
            for (relay, at, beats, refused) in &stops {
                let relay = relay % relays as usize;
                if *at == look {
                    bench.beating[relay] = *beats;
                    bench.probes[relay] = match (beats, refused) {
                        (true, _) => Probe::Reached,
                        (false, true) => Probe::Refused,
                        (false, false) => Probe::NoAnswer,
                    };
                }
            }
            let before = bench.died.len();
            let standing: Vec<_> = bench.records.iter().filter(|record| record.standing.is_some()).map(|record| record.relay).collect();
            let judgement = bench.look();
            let new = bench.died.len() - before;
            removals.extend(std::iter::repeat_n(bench.now_ms, new));
            let within = removals.iter().filter(|at| bench.now_ms - **at < TIMING.window_ms()).count();
            if new > 0 {
                prop_assert!(judgement.late <= judgement.limits.late_at_once, "{judgement:?}");
                prop_assert!(judgement.hold.is_none());
                prop_assert!(within <= Limits::of(relays).removed_in_window as usize, "{within} {standing:?}");
                for relay in &bench.died[before..] {
                    prop_assert!(!bench.beating[*relay as usize]);
                }
            }
        }
    }

    /// All stop, in any order, within any time that is shorter than it takes to judge one.
    #[test]
    fn with_everybody_late_nobody_is_removed_whatever_the_order(
        relays in 2_u32..40,
        order in proptest::collection::vec(0_u64..20, 40),
        refused in any::<bool>(),
    ) {
        let mut bench = Bench::of(relays);
        for look in 0..300 {
            for (relay, at) in order.iter().enumerate().take(relays as usize) {
                if *at == look {
                    bench.kill(relay, if refused { Probe::Refused } else { Probe::NoAnswer });
                }
            }
            bench.look();
        }
        prop_assert!(bench.died.is_empty());
        prop_assert_eq!(bench.reaper.judge(bench.now_ms).hold.unwrap().cause, HoldCause::ManyLate);
    }
}
