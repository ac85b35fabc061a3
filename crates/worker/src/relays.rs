//! Watches the network's relays, and says which are gone. The rules are `membership::reaper`'s; here is what they go by.
//!
//! Each worker looks for itself, so that each knows for how long whom has been silent; one at a time says its judgement.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Reach, reach};
use clock::{Clock, unix_ms};
use membership::reaper::{
    DeathCause, HoldCause, Judged, Judgement, Probe, Reaper, Sighting, Standing, Timing, Verdict, Word,
};
use store::{RelaySeen, RelayVerdict, RelaysSeen, Store, StoreError, WorkerBeat};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use trust::RelayId;
use uuid::Uuid;

use crate::runner::Left;

/// A relay has so long to answer a probe.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
/// A word of a peer counts if it is younger than so many beats: it speaks with each of its own.
const WORD_BEATS: u64 = 2;
/// The verdict of death, as it stands in the records.
const DEAD: &str = "dead";

/// What one worker knows of the relays.
#[derive(Debug)]
pub(crate) struct Watch {
    store: Store,
    worker: Uuid,
    beat_ms: u64,
    timing: Timing,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    reaper: Reaper<RelayId>,
    relays: Vec<RelaySeen>,
    /// What is told of the network with the next look.
    hold: Option<(HoldCause, u64)>,
    relays_counted: u32,
    late: u32,
}

impl Watch {
    /// Of relays that beat this often.
    pub(crate) fn new(store: Store, worker: Uuid, beat_ms: u64) -> Self {
        let timing = Timing::of_beat_ms(beat_ms);
        let reaper = Reaper::new(timing);
        let state = State { reaper, relays: Vec::new(), hold: None, relays_counted: 0, late: 0 };
        Self { store, worker, beat_ms, timing, clock: Clock::start(), state: Mutex::new(state) }
    }

    /// How often it looks.
    pub(crate) const fn look_every_ms(&self) -> u64 {
        self.timing.look_ms()
    }

    /// Many relays are late at once: what they say of their clients is not to be believed.
    pub(crate) fn holds_for_many(&self) -> bool {
        self.state().hold.is_some_and(|(cause, _)| cause == HoldCause::ManyLate)
    }

    /// Looks and probes, again and again; never ends.
    pub(crate) async fn run(&self) {
        let mut failing = false;
        loop {
            let next = Instant::now() + Duration::from_millis(self.timing.look_ms());
            match self.look().await {
                Ok(()) => {
                    failing = false;
                    self.probe().await;
                }
                // Once for each time that it begins to fail.
                Err(error) if !std::mem::replace(&mut failing, true) => {
                    tracing::warn!(kind = error.kind().label(), %error, "relays cannot be watched");
                }
                Err(_) => {}
            }
            self.report();
            sleep_until(next).await;
        }
    }

    /// Says what has changed. Whoever calls this is the only one at this moment.
    pub(crate) async fn judge(&self) -> Result<Left, StoreError> {
        // What another worker has said since the last look counts.
        self.look().await?;
        let judgement = self.judgement();
        let changed = self.changed(&judgement.judged);
        if changed.is_empty() {
            return Ok(Left::Nothing);
        }
        for judged in &changed {
            let (relay, silent_ms) = (judged.relay, judged.silent_ms);
            let (state, cause) = (judged.verdict.label(), judged.verdict.cause());
            if matches!(judged.verdict, Verdict::Dead(_)) {
                tracing::warn!(%relay, cause, silent_ms, "a relay is gone; its clients count as disconnected");
            } else {
                tracing::info!(%relay, state, cause, silent_ms, "a relay's verdict has changed");
            }
        }
        let rows = changed.into_iter().map(|judged| RelayVerdict {
            relay: judged.relay,
            epoch: judged.epoch,
            stamp: judged.stamp,
            state: judged.verdict.label().to_owned(),
            cause: judged.verdict.cause().to_owned(),
        });
        self.store.write_verdicts(rows.collect()).await?;
        Ok(Left::Nothing)
    }

    /// A write of this worker's own, by the way that relays write; and what is known of them.
    async fn look(&self) -> Result<(), StoreError> {
        let beat = {
            let state = self.state();
            let hold = state.hold.map(|(cause, since_ms)| (cause.label(), since_ms));
            WorkerBeat { worker: self.worker, hold, relays: state.relays_counted, late: state.late }
        };
        let seen = self.store.look_at_relays(beat, WORD_BEATS * self.beat_ms).await;
        let now_ms = self.now_ms();
        let mut state = self.state();
        match seen {
            Ok(RelaysSeen { relays, words }) => {
                let sightings: Vec<_> = relays.iter().map(sighting).collect();
                state.reaper.look(now_ms, &sightings);
                for word in words {
                    let said = if word.reaches { Word::Reaches } else { Word::Fails };
                    state.reaper.told(now_ms, word.by, word.about, said);
                }
                state.relays = relays;
                Ok(())
            }
            Err(error) => {
                state.reaper.look_failed(now_ms);
                Err(error)
            }
        }
    }

    async fn probe(&self) {
        let wanted: Vec<(RelayId, String)> = {
            let state = self.state();
            let relays = state.reaper.to_probe(self.now_ms());
            let address = |relay: RelayId| state.relays.iter().find(|seen| seen.relay == relay);
            relays
                .into_iter()
                .filter_map(|relay| address(relay).map(|seen| (relay, seen.address.clone())))
                .collect()
        };
        let network = self.store.network();
        let mut probes: JoinSet<_> = wanted
            .into_iter()
            .map(|(relay, address)| async move { (relay, reach(&address, network, PROBE_LIMIT).await) })
            .collect();
        while let Some(probed) = probes.join_next().await {
            // One that panicked has found nothing out.
            let Ok((relay, reached)) = probed else { continue };
            let probe = match reached {
                Reach::Answers => Probe::Reached,
                Reach::Refused => Probe::Refused,
                Reach::Silent => Probe::NoAnswer,
            };
            self.state().reaper.probed(self.now_ms(), relay, probe);
        }
    }

    fn judgement(&self) -> Judgement<RelayId> {
        self.state().reaper.judge(self.now_ms())
    }

    /// Notes, and logs once, when the network goes on hold and when that ends.
    fn report(&self) {
        let judgement = self.judgement();
        let mut state = self.state();
        (state.relays_counted, state.late) = (judgement.relays, judgement.late);
        let (relays, late, most) = (judgement.relays, judgement.late, judgement.limits.late_at_once);
        let before = state.hold;
        let now_ms = self.now_ms();
        state.hold = judgement.hold.map(|hold| {
            let since_ms = unix_ms().saturating_sub(now_ms.saturating_sub(hold.since_ms));
            let since_ms =
                before.filter(|(cause, _)| *cause == hold.cause).map_or(since_ms, |(_, since)| since);
            (hold.cause, since_ms)
        });
        match (before, state.hold) {
            (Some((was, _)), None) => {
                tracing::info!(was = was.label(), relays, late, "the hold is over; relays are judged again");
            }
            (was, Some((cause, _))) if was.map(|(cause, _)| cause) != Some(cause) => {
                let cause = cause.label();
                tracing::warn!(cause, relays, late, most, "hold: no relay is removed");
            }
            _ => {}
        }
    }

    /// The verdicts that are not what the records say.
    fn changed(&self, judged: &[Judged<RelayId>]) -> Vec<Judged<RelayId>> {
        let state = self.state();
        let stands = |judged: &Judged<RelayId>| {
            let Some(seen) = state.relays.iter().find(|seen| seen.relay == judged.relay) else { return true };
            let Some(verdict) = &seen.verdict else { return judged.verdict == Verdict::Alive };
            let (state, cause) = (judged.verdict.label(), judged.verdict.cause());
            // A verdict falls with the next beat: one that is given again over a later beat is another.
            let is_same = judged.verdict == Verdict::Alive
                || (verdict.epoch, verdict.stamp) == (judged.epoch, judged.stamp);
            is_same && (verdict.state.as_str(), verdict.cause.as_str()) == (state, cause)
        };
        judged.iter().filter(|judged| !stands(judged)).copied().collect()
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().as_micros() / 1_000
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sighting(seen: &RelaySeen) -> Sighting<RelayId> {
    let dead = seen.verdict.as_ref().filter(|verdict| verdict.state == DEAD);
    Sighting {
        relay: seen.relay,
        epoch: seen.epoch,
        stamp: seen.stamp,
        draining: seen.draining,
        standing: dead.map(|verdict| Standing {
            epoch: verdict.epoch,
            stamp: verdict.stamp,
            cause: DeathCause::from_label(&verdict.cause).unwrap_or(DeathCause::NoAnswer),
        }),
        removed_ms_ago: seen.removed_ms_ago,
    }
}
