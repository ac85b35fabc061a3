//! Who may say that a relay is dead, and when nobody may.
//!
//! Silence is not death. A relay is removed only if its beat is late, the judge itself cannot reach it (or its own host refuses the
//! port), no peer reaches it, few others are late, the judge's own writes have been arriving for a while, and the rate allows it.
//! If many are late at once, the one who looks is the suspect: nothing is removed, a hold is reported, and everybody has a
//! fresh grace after it. A verdict is a mark: a relay that beats again is alive.
//!
//! Times are ms of the judge's own clock. How old a beat is, is measured from when the judge saw that it had changed: two machines'
//! clocks are never compared.

mod evidence;
mod limits;
mod member;
mod timing;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub use evidence::{Probe, Sighting, Standing, Word};
pub use limits::Limits;
pub use timing::Timing;
pub use verdict::{DeathCause, Doubt, Hold, HoldCause, Judged, Judgement, Verdict};

use member::Member;

/// Relays that a judge keeps in mind; further ones are not judged, and so never removed.
pub const MOST_RELAYS: usize = 1_000;
/// Late relays that are probed in one look: enough for the largest number that may be late at once (an eighth of all).
const MOST_PROBED: usize = 128;
/// Relays that beat and are probed beside them, to see that the judge itself reaches anyone.
const CONTROLS: usize = 2;

/// The judge of one network's relays.
#[derive(Clone, Debug)]
pub struct Reaper<K> {
    timing: Timing,
    members: BTreeMap<K, Member<K>>,
    /// When the records were last read.
    looked_ms: Option<u64>,
    /// Since when the judge's own writes and reads have been answered without a gap.
    healthy_since_ms: Option<u64>,
    hold: Option<Hold>,
    /// Removals that the records show within the window of the rate.
    removed_lately: u32,
}

impl<K: Copy + Ord> Reaper<K> {
    /// A judge that has seen nothing: everybody it hears of has just been heard.
    #[must_use]
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            members: BTreeMap::new(),
            looked_ms: None,
            healthy_since_ms: None,
            hold: None,
            removed_lately: 0,
        }
    }

    /// The judge has read all records, and just before or after that a write of its own has arrived by the way that relays write.
    ///
    /// If this look comes late, so much is added to everybody's grace.
    pub fn look(&mut self, now_ms: u64, records: &[Sighting<K>]) {
        self.forgive_pause(now_ms);
        self.healthy_since_ms.get_or_insert(now_ms);
        self.removed_lately = 0;
        for record in records {
            self.see(now_ms, record);
        }
        // A record that is gone is no evidence: its relay is silent like any other, until it has been so for very long.
        let (forget_ms, recorded) =
            (self.timing.forget_ms(), records.iter().map(|record| record.relay).collect::<BTreeSet<K>>());
        self.members.retain(|key, member| {
            recorded.contains(key) || (!member.is_dead && member.silent_ms(now_ms) < forget_ms)
        });
        self.update_hold(now_ms);
    }

    /// The judge's own read or write was not answered: it is in no position to judge.
    pub fn look_failed(&mut self, now_ms: u64) {
        self.healthy_since_ms = None;
        self.begin_hold(now_ms, HoldCause::OwnPath);
    }

    /// What the judge's own attempt to reach a relay has met.
    pub fn probed(&mut self, now_ms: u64, relay: K, probe: Probe) {
        if let Some(member) = self.members.get_mut(&relay) {
            member.probed(now_ms, probe);
        }
    }

    /// What one relay says of another. The word of a relay that is late itself does not count.
    pub fn told(&mut self, now_ms: u64, by: K, about: K, word: Word) {
        let late_ms = self.timing.late_ms();
        let counts =
            self.members.get(&by).is_some_and(|peer| !peer.is_dead && peer.silent_ms(now_ms) < late_ms);
        if counts && let Some(member) = self.members.get_mut(&about) {
            member.told(now_ms, by, word);
        }
    }

    /// Whom to probe now: those that are late, longest first, and a few that are not.
    #[must_use]
    pub fn to_probe(&self, now_ms: u64) -> Vec<K> {
        let late_ms = self.timing.late_ms();
        let mut late: Vec<_> =
            self.alive().filter(|(_, member)| member.silent_ms(now_ms) >= late_ms).collect();
        if late.is_empty() {
            return Vec::new();
        }
        late.sort_by_key(|(_, member)| member.heard_ms);
        let mut controls: Vec<_> =
            self.alive().filter(|(_, member)| member.silent_ms(now_ms) < late_ms).collect();
        controls.sort_by_key(|(_, member)| std::cmp::Reverse(member.heard_ms));
        let late = late.into_iter().take(MOST_PROBED);
        late.chain(controls.into_iter().take(CONTROLS)).map(|(key, _)| key).collect()
    }

    /// The verdict over each relay, and whether the network is on hold. At most so many deaths as the limits allow.
    #[must_use]
    pub fn judge(&self, now_ms: u64) -> Judgement<K> {
        let (relays, late) = self.tally(now_ms);
        let limits = Limits::of(relays);
        let mut members: Vec<_> = self.members.iter().collect();
        // Those that have been silent longest come first, if not all may be removed at once.
        members.sort_by_key(|(key, member)| (member.heard_ms, **key));
        let mut judged: Vec<_> = members
            .into_iter()
            .map(|(key, member)| Judged {
                relay: *key,
                epoch: member.epoch,
                stamp: member.stamp,
                verdict: self.verdict(now_ms, *key, member, relays),
                silent_ms: member.silent_ms(now_ms),
            })
            .collect();
        let is_blind = judged.iter().any(|judged| judged.verdict == Verdict::Suspect(Doubt::Blind));
        let blind = is_blind.then_some(Hold { cause: HoldCause::Blind, since_ms: now_ms });
        let hold = self.hold.or(blind);
        let mut left = limits.removed_in_window.saturating_sub(self.removed_lately);
        for judged in &mut judged {
            let is_new = !self.members.get(&judged.relay).is_some_and(|member| member.is_dead);
            if is_new && matches!(judged.verdict, Verdict::Dead(_)) {
                if hold.is_some() {
                    judged.verdict = Verdict::Suspect(Doubt::Hold);
                } else if left == 0 {
                    judged.verdict = Verdict::Suspect(Doubt::Rate);
                } else {
                    left -= 1;
                }
            }
        }
        Judgement { judged, hold, relays, late, limits }
    }

    fn verdict(&self, now_ms: u64, key: K, member: &Member<K>, relays: u32) -> Verdict {
        let timing = &self.timing;
        let silent_ms = member.silent_ms(now_ms);
        if member.is_dead {
            return Verdict::Dead(member.death_cause());
        }
        if silent_ms < timing.late_ms() {
            return Verdict::Alive;
        }
        let Some(failure) = member.failure(now_ms, timing) else {
            return if member.is_reached(now_ms, timing) {
                Verdict::Unknown(Doubt::Reached)
            } else {
                Verdict::Late
            };
        };
        let words = member.words(now_ms, timing);
        if words.reach > 0 {
            return Verdict::Unknown(Doubt::PeerReaches);
        }
        // Only an answer of its own host is evidence where nobody else could show that the judge reaches anyone.
        if failure == Probe::NoAnswer && !self.reaches_another(now_ms, key) {
            let doubt = if relays <= 1 { Doubt::NoAnswerAlone } else { Doubt::Blind };
            return Verdict::Suspect(doubt);
        }
        let after_ms = if words.fail > 0 { timing.confirmed_ms() } else { timing.unconfirmed_ms() };
        if silent_ms < after_ms {
            return Verdict::Suspect(Doubt::Time);
        }
        let healthy =
            self.healthy_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= timing.settle_ms());
        if !healthy {
            return Verdict::Suspect(Doubt::OwnPath);
        }
        Verdict::Dead(match failure {
            Probe::Refused => DeathCause::Refused,
            Probe::NoAnswer | Probe::Reached => DeathCause::NoAnswer,
        })
    }

    fn see(&mut self, now_ms: u64, record: &Sighting<K>) {
        let known = self.members.len();
        let member = match self.members.get_mut(&record.relay) {
            Some(member) => member,
            None if known >= MOST_RELAYS => return,
            None => self.members.entry(record.relay).or_insert_with(|| Member::new(now_ms, record)),
        };
        member.seen(now_ms, record);
        if record.removed_ms_ago.is_some_and(|age_ms| age_ms < self.timing.window_ms()) {
            self.removed_lately += 1;
        }
    }

    /// The judge did not look for longer than it meant to: nobody is to blame for that time but itself.
    fn forgive_pause(&mut self, now_ms: u64) {
        let look_ms = self.timing.look_ms();
        if let Some(looked_ms) = self.looked_ms.replace(now_ms) {
            let late_ms = now_ms.saturating_sub(looked_ms).saturating_sub(look_ms);
            // A look that takes a while is none: two in the time of one are enough to see a beat.
            if late_ms > look_ms {
                self.members.values_mut().for_each(|member| member.forgive(late_ms, now_ms));
                self.healthy_since_ms = None;
            }
        }
    }

    fn update_hold(&mut self, now_ms: u64) {
        let (relays, late) = self.tally(now_ms);
        if late > Limits::of(relays).late_at_once {
            self.begin_hold(now_ms, HoldCause::ManyLate);
        } else if self.hold.take().is_some_and(|hold| hold.cause == HoldCause::ManyLate) {
            // Whoever did not come back with the others has as long as anyone.
            self.members.values_mut().for_each(|member| member.forgive(u64::MAX, now_ms));
        }
    }

    fn begin_hold(&mut self, now_ms: u64, cause: HoldCause) {
        let since_ms = self.hold.map_or(now_ms, |hold| hold.since_ms);
        // That many were late is not forgotten because the judge's own path fails as well.
        let many = self.hold.is_some_and(|hold| hold.cause == HoldCause::ManyLate);
        self.hold = Some(Hold { cause: if many { HoldCause::ManyLate } else { cause }, since_ms });
    }

    /// Relays that count, and those of them that are late. Whoever says that it is about to end does not count.
    fn tally(&self, now_ms: u64) -> (u32, u32) {
        let late_ms = self.timing.late_ms();
        self.alive().filter(|(_, member)| !member.is_draining).fold((0, 0), |(relays, late), (_, member)| {
            (relays + 1, late + u32::from(member.silent_ms(now_ms) >= late_ms))
        })
    }

    fn reaches_another(&self, now_ms: u64, but: K) -> bool {
        self.alive().any(|(key, member)| key != but && member.is_reached(now_ms, &self.timing))
    }

    fn alive(&self) -> impl Iterator<Item = (K, &Member<K>)> {
        self.members.iter().filter(|(_, member)| !member.is_dead).map(|(key, member)| (*key, member))
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
