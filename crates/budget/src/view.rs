//! What people are shown of a lease.

use std::time::Duration;

/// How a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Nothing is needed, or nothing has been asked yet.
    Unused,
    /// The control connection is there.
    Held,
    /// It is not: nothing new is opened, what is open stays.
    Lost,
}

impl LeaseState {
    /// The word for it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Held => "held",
            Self::Lost => "lost",
        }
    }
}

/// A lease at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// How it stands.
    pub state: LeaseState,
    /// The whole budget; none before an automatic one is known.
    pub budget: Option<usize>,
    /// Kept from pools.
    pub reserved: usize,
    /// Chunks that this pooler holds.
    pub chunks: usize,
    /// Places of those.
    pub places: usize,
    /// Places that may be used, as of the last look.
    pub usable: usize,
    /// Connections that count: logging in, logged in, closed but not known to be gone.
    pub used: usize,
    /// Those of them that log in.
    pub attempts: usize,
    /// Those of them that have ended while their process may go on.
    pub doubtful: usize,
    /// No further place is to be had.
    pub is_exhausted: bool,
    /// Poolers with a control connection, this one included.
    pub poolers: usize,
    /// Places of the others' chunks, and what they have beyond those.
    pub others: usize,
    /// Backends that belong to no pooler: other programs', and those of poolers that have died.
    pub unowned: usize,
    /// What the server has been seen to carry, where it has said that it carries no more.
    pub estimate: Option<usize>,
    /// Since the last look; none before the first.
    pub looked: Option<Duration>,
    /// Looks so far.
    pub looks: u64,
    /// Times that the control connection was lost or could not be opened.
    pub losses: u64,
}
