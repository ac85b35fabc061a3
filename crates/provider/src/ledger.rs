//! Counts of what became of streams, by cause. The causes are few and fixed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Streams by how they ended.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    refused: Mutex<BTreeMap<&'static str, u64>>,
    ended: Mutex<BTreeMap<&'static str, u64>>,
}

impl Ledger {
    /// An open that became no stream.
    pub(crate) fn refused(&self, cause: &'static str) {
        count(&self.refused, cause);
    }

    /// A stream that is over.
    pub(crate) fn ended(&self, cause: &'static str) {
        count(&self.ended, cause);
    }

    /// Opens that became no stream, by cause.
    pub(crate) fn refusals(&self) -> BTreeMap<&'static str, u64> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Streams that are over, by how they ended.
    pub(crate) fn ends(&self) -> BTreeMap<&'static str, u64> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn count(counts: &Mutex<BTreeMap<&'static str, u64>>, cause: &'static str) {
    *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(cause).or_default() += 1;
}
