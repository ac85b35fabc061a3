//! What a relay writes down for others. It runs on without: a database that is gone delays records, and nothing else.

use crate::contracts::Usage;
use crate::hub::Presence;
use std::error::Error;
use std::future::Future;

/// Why something was not written. It is tried again.
pub type RecordError = Box<dyn Error + Send + Sync>;

/// That the relay lives, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The number of this start.
    pub epoch: u64,
    /// When it started, ms since 1970.
    pub started_at_ms: u64,
    /// How clients reach it.
    pub address: String,
    /// How many there are.
    pub connections: u32,
    /// It sends its clients away.
    pub draining: bool,
    /// Number of the key ring that it knows.
    pub ring: u64,
    /// Number of the revocation list that it knows.
    pub revocations: u64,
}

/// What the records answered to a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beaten {
    /// The relay is known there.
    Known,
    /// It was not known. If it has beaten before, its record had vanished, and perhaps more.
    New,
}

/// Where records go. Each call may be repeated; what was written already stays as it is.
pub trait Records: Send + Sync + 'static {
    /// That the relay lives.
    fn beat(&self, beat: Beat) -> impl Future<Output = Result<Beaten, RecordError>> + Send;

    /// Looks whether other relays can be reached from here that do not beat, and writes down what was found: nobody is declared
    /// dead whom a peer still reaches.
    fn tell_of_others(&self) -> impl Future<Output = Result<(), RecordError>> + Send {
        async { Ok(()) }
    }

    /// Who has come and gone, in order; at most [`MAX_BATCH`].
    fn presence(
        &self,
        epoch: u64,
        presence: &[Presence],
    ) -> impl Future<Output = Result<(), RecordError>> + Send;

    /// How the network's relays that live are reached, `host:port`; this one may be among them.
    fn relays(&self) -> impl Future<Output = Result<Vec<String>, RecordError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// What was used at a start of this relay; at most [`MAX_BATCH`].
    fn usage(&self, epoch: u64, usage: &[Usage]) -> impl Future<Output = Result<(), RecordError>> + Send;
}

/// The most records in one call.
pub const MAX_BATCH: usize = 5_000;
