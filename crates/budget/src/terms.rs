//! What the operator has decided, and what follows from it.

use crate::chunk::Chunk;
use crate::order::ServerLimits;
use std::time::Duration;

/// Connections that `auto` leaves to others, beside those that the server keeps for superusers.
pub const AUTOMATIC_MARGIN: usize = 3;

/// How large the budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// What the server says it can carry, less [`AUTOMATIC_MARGIN`].
    Automatic,
    /// So many connections.
    Connections(usize),
}

/// The terms of a budget; all poolers of a server should have the same. Where they differ, each keeps the others' places in
/// sight, and the smaller budget opens less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The whole budget, the reserved slice included.
    pub size: Size,
    /// Connections that no pool gets: for control connections and for the guard's own looks.
    pub reserved: usize,
    /// Places of one lock.
    pub chunk: usize,
    /// How long a fresh place rests before use, so that what its former holder had under way is seen. Longer than a login
    /// takes; a quarter of it is how long an answer of the control connection counts as proof that it is alive.
    pub settle: Duration,
}

impl Terms {
    /// The whole budget. `None`: it is not known before the server has been asked.
    #[must_use]
    pub fn budget(&self, limits: Option<ServerLimits>) -> Option<usize> {
        match self.size {
            Size::Connections(count) => Some(count),
            Size::Automatic => limits.map(|limits| limits.usable().saturating_sub(AUTOMATIC_MARGIN)),
        }
    }

    /// Places for pools.
    #[must_use]
    pub fn places(&self, limits: Option<ServerLimits>) -> Option<usize> {
        self.budget(limits).map(|budget| budget.saturating_sub(self.reserved))
    }

    /// The chunks that so many places are cut into; the last may be smaller.
    #[must_use]
    pub fn chunks(&self, places: usize) -> usize {
        places.div_ceil(self.chunk.max(1)).min(Chunk::MAX_COUNT)
    }

    /// The chunk of this number.
    #[must_use]
    pub fn chunk(&self, places: usize, index: usize) -> Chunk {
        let size = self.chunk.max(1);
        Chunk::new(index, size.min(places.saturating_sub(index * size)))
    }

    pub(crate) fn proof_age(&self) -> Duration {
        self.settle / 4
    }
}
