//! What is asked of the control connection, and what it has seen.

use crate::chunk::Chunk;

/// What the control connection has to do, in this order, and then to look around. An order that is not carried out whole
/// counts as a lost control connection: its session must not live on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Named in the answer.
    pub id: u64,
    /// On a control connection of its own, since there is none; otherwise on the one that is there, and on no other.
    pub begins_session: bool,
    /// Backends to be known as this pooler's.
    pub register: Vec<i32>,
    /// Backends that are gone.
    pub forget: Vec<i32>,
    /// Chunks to give back.
    pub release: Vec<Chunk>,
    /// Chunks of which to take up to [`Self::take`], the first free ones.
    pub candidates: Vec<Chunk>,
    /// How many of them.
    pub take: usize,
    /// Others are to know whether this pooler lacks places.
    pub is_starving: bool,
    /// Backends that may be gone: are they still there?
    pub doubtful: Vec<i32>,
}

/// What was seen after an [`Order`] had been carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Every chunk that this session holds.
    pub mine: Vec<Chunk>,
    /// The other poolers.
    pub others: Vec<Other>,
    /// Backends that nobody has registered and that are no control connections.
    pub unowned: Vec<i32>,
    /// Control connections, this one included.
    pub controls: usize,
    /// Those of the doubtful that are still there.
    pub present: Vec<i32>,
    /// What the server itself allows.
    pub limits: ServerLimits,
}

/// Another pooler, or the session that a dead one has left and that the server has not noticed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Other {
    /// Places of its chunks.
    pub places: usize,
    /// Backends that it has registered and that are there.
    pub servers: usize,
    /// It lacks places.
    pub is_starving: bool,
}

impl Other {
    /// The most that it may have, now and later.
    pub(crate) fn greatest(self) -> usize {
        self.places.max(self.servers)
    }
}

/// `max_connections`, and what the server keeps of that for superusers and for roles with a reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// `max_connections`.
    pub connections: usize,
    /// `superuser_reserved_connections` and `reserved_connections`.
    pub reserved: usize,
}

impl ServerLimits {
    /// What everybody may use.
    #[must_use]
    pub fn usable(self) -> usize {
        self.connections.saturating_sub(self.reserved)
    }
}
