//! Whether a new generation may be published, or the last one is kept.
//!
//! A list that shrinks may tell of providers that left, or of an observer that sees too little: relays that cannot write their
//! beats, relays that have just started, a reaper that holds. In doubt about the inputs a great loss is not believed.

use thiserror::Error;

use super::{Counts, PoolName};

/// A relay that has been up for less has not heard of all its clients yet: they come back over some time, ms.
pub const SETTLING_MS: u64 = 60_000;

/// The greatest share of a pool that may be missing while the inputs are in doubt, in percent, by the size that it had. Of a
/// handful one or two may always go; of thousands, a few hundred at once are an event.
const MOST_LOST: [(u32, u32); 4] = [(10, 99), (100, 50), (1_000, 30), (u32::MAX, 15)];

/// What the generation was built from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Relays that have beaten lately, and take clients.
    pub relays_fresh: u32,
    /// Of them, those that started within [`SETTLING_MS`].
    pub relays_settling: u32,
    /// Relays that should beat: those that did within the last hour, and have not said that they leave or been found dead.
    pub relays_known: u32,
    /// The reaper suspects the observer, and removes nobody.
    pub reaper_holds: bool,
}

/// Why the inputs are not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Doubt {
    /// The reaper holds.
    #[error("so many relays are late at once that the observer is the suspect")]
    ReaperHolds,
    /// Less than half of the relays beat.
    #[error("{fresh} of {known} relays beat")]
    FewBeats {
        /// Those that do.
        fresh: u32,
        /// Those that should.
        known: u32,
    },
    /// Half of the relays or more have just started.
    #[error("{settling} of {known} relays have just started")]
    Settling {
        /// Those that have.
        settling: u32,
        /// Those that should beat.
        known: u32,
    },
}

impl Inputs {
    /// Why these are not to be trusted, if they are not.
    #[must_use]
    pub fn doubt(&self) -> Option<Doubt> {
        let Self { relays_fresh: fresh, relays_settling: settling, relays_known: known, reaper_holds } =
            *self;
        if reaper_holds {
            return Some(Doubt::ReaperHolds);
        }
        if fresh.saturating_mul(2) < known || fresh == 0 {
            return Some(Doubt::FewBeats { fresh, known });
        }
        if settling > 0 && settling.saturating_mul(2) >= known {
            return Some(Doubt::Settling { settling, known });
        }
        None
    }
}

/// A pool of the generation before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// Which.
    pub name: PoolName,
    /// How many were connected.
    pub connected: u32,
}

/// A generation that is not published: the last one is kept, and said to be stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("pool '{pool}' would go from {before} to {now} providers, and {doubt}")]
pub struct Held {
    /// The pool that loses most.
    pub pool: PoolName,
    /// How many it had.
    pub before: u32,
    /// How many it would have.
    pub now: u32,
    /// Why that is not believed.
    pub doubt: Doubt,
}

/// Judges a new generation by the one before.
///
/// # Errors
///
/// It is held.
pub fn judge(before: &[Before], now: &[(PoolName, Counts)], inputs: &Inputs) -> Result<(), Held> {
    let Some(doubt) = inputs.doubt() else { return Ok(()) };
    let connected = |name: PoolName| {
        now.iter().find(|(other, _)| *other == name).map_or(0, |(_, counts)| counts.connected)
    };
    let held = before.iter().filter_map(|pool| {
        let now = connected(pool.name);
        let lost = lost_percent(pool.connected, now);
        is_great(pool.connected, now)
            .then_some((lost, Held { pool: pool.name, before: pool.connected, now, doubt }))
    });
    match held.max_by_key(|(lost, held)| (*lost, held.before)) {
        Some((_, held)) => Err(held),
        None => Ok(()),
    }
}

/// Whether a loss is too great to be believed in doubt.
fn is_great(before: u32, now: u32) -> bool {
    if before == 0 {
        return false;
    }
    let most = MOST_LOST.iter().find(|(below, _)| before < *below).map_or(15, |(_, most)| *most);
    let lost = u64::from(before.saturating_sub(now));
    now == 0 || lost * 100 > u64::from(most) * u64::from(before)
}

fn lost_percent(before: u32, now: u32) -> u32 {
    let lost = u64::from(before.saturating_sub(now)) * 100;
    u32::try_from(lost.checked_div(u64::from(before)).unwrap_or(0)).unwrap_or(100)
}
