//! How long each thing takes, all of it as multiples of the beat.

/// A relay that has not been heard for so many beats is late: one beat that takes its whole limit (two beats) and has to be
/// repeated, and as much again.
const LATE_BEATS: u64 = 6;
/// A relay that the judge and a peer cannot reach is dead after so many beats: three times as long as it takes to be late, so
/// that all who share its trouble are seen to be late by then.
const CONFIRMED_BEATS: u64 = 18;
/// Without a peer that could say so, after so many. Together with [`WINDOW_BEATS`] it is within three minutes.
const UNCONFIRMED_BEATS: u64 = 27;
/// The rate of removals is counted over so many beats.
const WINDOW_BEATS: u64 = 6;
/// So long the judge's own path has to have held: relays need this time to come back after it failed for all.
const SETTLE_BEATS: u64 = 5;
/// The judge looks twice a beat.
const LOOKS_A_BEAT: u64 = 2;
/// A probe, and a peer's word, is evidence for so many beats.
const FRESH_BEATS: u64 = 3;
/// So many probes in a row have to fail.
const FAILED_PROBES: u32 = 3;
/// A relay whose record is gone, and that was never judged, is out of mind after so many beats: an hour.
const FORGET_BEATS: u64 = 720;

/// Times of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    beat_ms: u64,
}

impl Timing {
    /// Of a network whose relays beat this often, ms; at least 10.
    #[must_use]
    pub const fn of_beat_ms(beat_ms: u64) -> Self {
        Self { beat_ms: if beat_ms < 10 { 10 } else { beat_ms } }
    }

    /// How often the judge looks, ms.
    #[must_use]
    pub const fn look_ms(&self) -> u64 {
        self.beat_ms / LOOKS_A_BEAT
    }

    /// How long a relay may be silent before it is late, ms.
    #[must_use]
    pub const fn late_ms(&self) -> u64 {
        self.beat_ms * LATE_BEATS
    }

    /// When a relay may be dead whose death a peer confirms, ms of silence.
    #[must_use]
    pub const fn confirmed_ms(&self) -> u64 {
        self.beat_ms * CONFIRMED_BEATS
    }

    /// When one may be dead whose death nobody confirms, ms of silence.
    #[must_use]
    pub const fn unconfirmed_ms(&self) -> u64 {
        self.beat_ms * UNCONFIRMED_BEATS
    }

    /// The window that removals are counted in, ms.
    #[must_use]
    pub const fn window_ms(&self) -> u64 {
        self.beat_ms * WINDOW_BEATS
    }

    pub(super) const fn settle_ms(&self) -> u64 {
        self.beat_ms * SETTLE_BEATS
    }

    pub(super) const fn fresh_ms(&self) -> u64 {
        self.beat_ms * FRESH_BEATS
    }

    /// A word for a relay holds for as long as the peer that gave it is not late itself, and a little more.
    pub(super) const fn veto_ms(&self) -> u64 {
        self.late_ms() + self.fresh_ms()
    }

    pub(super) const fn forget_ms(&self) -> u64 {
        self.beat_ms * FORGET_BEATS
    }

    #[expect(clippy::unused_self, reason = "beside the others")]
    pub(super) const fn failed_probes(&self) -> u32 {
        FAILED_PROBES
    }
}
