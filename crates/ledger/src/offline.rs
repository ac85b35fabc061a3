//! What is carried while the database gives no answer: bounded, counted like everything else, and settled later.

use std::collections::HashMap;
use std::hash::Hash;

const MIB: u64 = 1 << 20;

/// The least allowance of a contract: 8 MiB, two first blocks. A proxy's busy customers are to get by with it until the api, which
/// is asked with pauses of up to 30 s, gives the block for the outage.
pub const LEAST_ALLOWANCE_BYTES: u64 = 8 * MIB;
/// The greatest allowance of a contract: 64 MiB.
pub const GREATEST_ALLOWANCE_BYTES: u64 = 64 * MIB;
/// What one relay allows a payer in one outage, over all contracts: 256 MiB, one greatest block.
pub const PAYER_ALLOWANCE_BYTES: u64 = 256 * MIB;
/// Payers that one relay allows anything in one outage. Beyond, streams end with their blocks.
pub const MOST_PAYERS: usize = 65_536;
/// How long after the database has answered again allowances still begin, ms: openers ask for their next block with pauses of up
/// to 30 s, and a stream is not to break just because everything is well again.
pub const ALLOWANCE_GRACE_MS: u64 = 45_000;
/// The block that an api gives an opener without its database: 256 MiB, one greatest block. There is no other for it while the database
/// is gone, so its last one says little about what it needs: 64 MiB were over after nine minutes of a quarter of a megabyte a second.
pub const OFFLINE_BLOCK_BYTES: u64 = crate::GREATEST_BLOCK_BYTES;
/// What one api gives an account in one outage, over all its openers: 1 GiB.
pub const ACCOUNT_OFFLINE_BYTES: u64 = 1024 * MIB;

/// What a contract may be used beyond its block while the database gives no answer, once: a quarter of the block, because that is
/// how far a payer whose use doubles from block to block has shown to go, within the bounds above.
#[must_use]
pub const fn allowance_bytes(block_bytes: u64) -> u64 {
    let quarter = block_bytes / 4;
    if quarter < LEAST_ALLOWANCE_BYTES {
        LEAST_ALLOWANCE_BYTES
    } else if quarter > GREATEST_ALLOWANCE_BYTES {
        GREATEST_ALLOWANCE_BYTES
    } else {
        quarter
    }
}

/// The most that one start of a relay carries under a contract, and so the most that is charged of what it reports.
#[must_use]
pub const fn most_carried_bytes(block_bytes: u64) -> u64 {
    block_bytes.saturating_add(allowance_bytes(block_bytes))
}

/// When allowances begin, and for whom: one relay's book. Its times are ms of a clock that does not jump.
#[derive(Debug)]
pub struct Allowances<P> {
    after_ms: u64,
    /// The first question that the database has not answered.
    asked_at_ms: Option<u64>,
    /// After an outage: until when allowances still begin.
    closes_at_ms: u64,
    given: HashMap<P, u64>,
}

impl<P: Eq + Hash> Allowances<P> {
    /// A book whose database counts as silent when it has owed an answer for longer than `after_ms`.
    #[must_use]
    pub fn new(after_ms: u64) -> Self {
        Self { after_ms, asked_at_ms: None, closes_at_ms: 0, given: HashMap::new() }
    }

    /// The database is asked for something.
    pub fn asked(&mut self, now_ms: u64) {
        self.asked_at_ms.get_or_insert(now_ms);
    }

    /// The database has taken something. An outage, if there was one, is over.
    pub fn answered(&mut self, now_ms: u64) {
        if self.is_silent(now_ms) {
            self.closes_at_ms = now_ms.saturating_add(ALLOWANCE_GRACE_MS);
        }
        self.asked_at_ms = None;
    }

    /// The database has owed an answer for so long that this is an outage.
    #[must_use]
    pub fn is_silent(&self, now_ms: u64) -> bool {
        self.asked_at_ms.is_some_and(|asked_at_ms| now_ms.saturating_sub(asked_at_ms) > self.after_ms)
    }

    /// Whether allowances begin now: in an outage, and for [`ALLOWANCE_GRACE_MS`] after it.
    #[must_use]
    pub fn is_open(&self, now_ms: u64) -> bool {
        self.is_silent(now_ms) || now_ms < self.closes_at_ms
    }

    /// The allowance of a contract of this payer, which then counts against the payer; the caller asks once for a contract. `None`:
    /// there is no outage, or the payer (or the relay) has given as much as it may.
    pub fn begin(&mut self, payer: P, block_bytes: u64, now_ms: u64) -> Option<u64> {
        if !self.is_open(now_ms) {
            self.given.clear();
            return None;
        }
        if self.given.len() >= MOST_PAYERS && !self.given.contains_key(&payer) {
            return None;
        }
        let bytes = allowance_bytes(block_bytes);
        let given = self.given.entry(payer).or_insert(0);
        if given.saturating_add(bytes) > PAYER_ALLOWANCE_BYTES {
            return None;
        }
        *given += bytes;
        Some(bytes)
    }

    /// Forgets who was given what, once the outage is over.
    pub fn sweep(&mut self, now_ms: u64) {
        if !self.is_open(now_ms) {
            self.given.clear();
        }
    }
}

#[cfg(test)]
mod tests;
