//! What a judge goes by.

/// A relay's record, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting<K> {
    /// The relay.
    pub relay: K,
    /// Its start.
    pub epoch: u64,
    /// Of its last beat: a number that grows with each, and is compared with itself only.
    pub stamp: u64,
    /// It says that it is about to end.
    pub draining: bool,
    /// The verdict that stands, if it is one of death.
    pub standing: Option<Standing>,
    /// How long ago it was removed last, ms of the database's clock, whether or not it has come back since.
    pub removed_ms_ago: Option<u64>,
}

/// A verdict of death that stands in the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The start that it is about.
    pub epoch: u64,
    /// The last beat that it knew.
    pub stamp: u64,
    /// Why.
    pub cause: super::DeathCause,
}

/// What an attempt to reach a relay has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It answers.
    Reached,
    /// Its own host says that nobody listens there.
    Refused,
    /// Nothing came back, or the way does not lead there.
    NoAnswer,
}

/// What a relay says of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It reaches it.
    Reaches,
    /// It does not.
    Fails,
}
