//! What is kept of each pool and each client for the guard against overload; what is done with it is in
//! `engine/shedding.rs`.

use overload::Moment;
use overload::newest::Newest;
use overload::pace::Pace;
use overload::patience::{Patience, PatienceSource};
use overload::shedding::Shedding;
use std::sync::Arc;
use std::time::Duration;

/// One pool's share of it. At rest, and without lanes, it owns no memory.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// Of all lanes together: how long a server needs for one who waits.
    pub(crate) pace: Pace,
    first: LaneGuard,
    /// Those of the other lanes in which somebody has waited.
    more: Vec<LaneGuard>,
    /// The last patience of somebody in the line, by how it is known.
    pub(crate) patience: [Option<Duration>; PatienceSource::COUNT],
}

/// The same of one lane: a backlog in another is none of its business.
#[derive(Debug, Default)]
pub(crate) struct LaneGuard {
    pub(crate) shedding: Shedding,
    /// Those in the lane whose patience is known, while the newest is served first.
    pub(crate) newest: Newest,
    /// The last server went to the oldest of those whose patience is not known; the next is for the newest of the others.
    pub(crate) took_oldest: bool,
}

impl Guard {
    /// A lane's; made if nobody has waited in it yet. There are as many as the configuration has.
    pub(crate) fn lane_mut(&mut self, lane: u8) -> &mut LaneGuard {
        let Some(beside) = usize::from(lane).checked_sub(1) else { return &mut self.first };
        if self.more.len() <= beside {
            self.more.resize_with(beside + 1, LaneGuard::default);
        }
        &mut self.more[beside]
    }

    /// All lanes in which somebody has waited.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &LaneGuard> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// How many that may be.
    pub(crate) fn lane_count(&self) -> u8 {
        u8::try_from(1 + self.more.len()).unwrap_or(u8::MAX)
    }

    /// No line has given cause for concern.
    pub(crate) fn is_relaxed(&self) -> bool {
        self.first.shedding.is_relaxed() && self.more.iter().all(|lane| lane.shedding.is_relaxed())
    }

    /// Since when the line of some lane stands.
    pub(crate) fn overloaded_since(&self) -> Option<Moment> {
        self.lanes().filter_map(|lane| lane.shedding.overloaded_since()).min()
    }
}

/// What is known of how long one client waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitPatience {
    /// What it has declared at its start, in milliseconds; zero: for as long as it takes.
    pub(crate) declared_ms: Option<u32>,
    /// What holds for its present wait.
    pub(crate) known: Option<Patience>,
    /// The present wait has been predicted.
    pub(crate) is_judged: bool,
    /// The present wait is among those that would have been ended, had the policy been `on`.
    pub(crate) is_counted: bool,
}

/// Whose patience is learnt together: database, user, application.
pub(crate) type Caller = (Arc<str>, Arc<str>, Arc<str>);
