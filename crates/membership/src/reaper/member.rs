//! What a judge knows of one relay.

use super::{DeathCause, Probe, Sighting, Timing, Word};

/// Peers whose words are kept; one is enough to doubt, and one to confirm.
const MOST_WORDS: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Member<K> {
    pub(super) epoch: u64,
    pub(super) stamp: u64,
    pub(super) is_draining: bool,
    pub(super) is_dead: bool,
    /// When the judge saw that it had beaten, and what was forgiven on top.
    pub(super) heard_ms: u64,
    death: DeathCause,
    reached_ms: Option<u64>,
    failures: Option<Failures>,
    words: Vec<(K, u64, Word)>,
}

/// Probes in a row that failed.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last_ms: u64,
    /// The last of them in a row that were refused.
    refused: u32,
}

/// What peers say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Words {
    pub(super) reach: usize,
    pub(super) fail: usize,
}

impl<K: Copy + Ord> Member<K> {
    pub(super) fn new(now_ms: u64, record: &Sighting<K>) -> Self {
        Self {
            epoch: record.epoch,
            stamp: record.stamp,
            is_draining: record.draining,
            is_dead: false,
            heard_ms: now_ms,
            death: DeathCause::NoAnswer,
            reached_ms: None,
            failures: None,
            words: Vec::new(),
        }
    }

    pub(super) fn seen(&mut self, now_ms: u64, record: &Sighting<K>) {
        if (record.epoch, record.stamp) != (self.epoch, self.stamp) {
            (self.epoch, self.stamp, self.heard_ms) = (record.epoch, record.stamp, now_ms);
            // What was found out about its silence is of no use any more.
            self.failures = None;
            self.words.clear();
        }
        self.is_draining = record.draining;
        // The records say who is dead, so that all judges agree; a beat behind the verdict ends it.
        let standing =
            record.standing.filter(|standing| standing.epoch == self.epoch && standing.stamp >= self.stamp);
        self.is_dead = standing.is_some();
        if let Some(standing) = standing {
            self.death = standing.cause;
        }
    }

    pub(super) fn probed(&mut self, now_ms: u64, probe: Probe) {
        if probe == Probe::Reached {
            self.reached_ms = Some(now_ms);
            self.failures = None;
            return;
        }
        let before = self.failures.unwrap_or(Failures { count: 0, last_ms: now_ms, refused: 0 });
        self.failures = Some(Failures {
            count: before.count.saturating_add(1),
            last_ms: now_ms,
            refused: if probe == Probe::Refused { before.refused.saturating_add(1) } else { 0 },
        });
    }

    pub(super) fn told(&mut self, now_ms: u64, by: K, word: Word) {
        self.words.retain(|(peer, ..)| *peer != by);
        if self.words.len() >= MOST_WORDS {
            self.words.remove(0);
        }
        self.words.push((by, now_ms, word));
    }

    pub(super) const fn silent_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.heard_ms)
    }

    /// So much of its silence does not count.
    pub(super) fn forgive(&mut self, ms: u64, now_ms: u64) {
        self.heard_ms = self.heard_ms.saturating_add(ms).min(now_ms);
    }

    pub(super) const fn death_cause(&self) -> DeathCause {
        self.death
    }

    /// What enough probes in a row have met, the last of them lately.
    pub(super) fn failure(&self, now_ms: u64, timing: &Timing) -> Option<Probe> {
        let failures = self.failures?;
        let counts = failures.count >= timing.failed_probes()
            && now_ms.saturating_sub(failures.last_ms) <= timing.fresh_ms();
        counts.then_some(if failures.refused >= timing.failed_probes() {
            Probe::Refused
        } else {
            Probe::NoAnswer
        })
    }

    pub(super) fn is_reached(&self, now_ms: u64, timing: &Timing) -> bool {
        self.failures.is_none()
            && self.reached_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) <= timing.fresh_ms())
    }

    pub(super) fn words(&self, now_ms: u64, timing: &Timing) -> Words {
        let mut words = Words::default();
        for (_, at_ms, word) in &self.words {
            let age_ms = now_ms.saturating_sub(*at_ms);
            match word {
                Word::Reaches if age_ms <= timing.veto_ms() => words.reach += 1,
                Word::Fails if age_ms <= timing.fresh_ms() => words.fail += 1,
                Word::Reaches | Word::Fails => {}
            }
        }
        words
    }
}
