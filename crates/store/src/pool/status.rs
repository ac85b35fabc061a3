//! What a pool says about itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// A pool at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    /// Connections at rest.
    pub idle: usize,
    /// Connections that work, are being opened or settled.
    pub busy: usize,
    /// Callers in the line.
    pub waiting: usize,
    /// Connections opened so far.
    pub opened: u64,
    /// Attempts to open one that failed.
    pub open_failed: u64,
    /// Connections that were found broken.
    pub broken: u64,
    /// Connections closed because the server did not answer to a cancel in time.
    pub unsettled: u64,
    /// Callers that stopped while their work ran.
    pub stopped: u64,
    /// Work that was cancelled at the server.
    pub cancelled: u64,
    /// Callers refused because the line was full.
    pub queue_full: u64,
    /// Callers that got no connection in time.
    pub acquire_deadlines: u64,
    /// Work that took too long.
    pub work_deadlines: u64,
}

/// Counts up.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a pool counts.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) opened: Counter,
    pub(super) open_failed: Counter,
    pub(super) broken: Counter,
    pub(super) unsettled: Counter,
    pub(super) stopped: Counter,
    pub(super) cancelled: Counter,
    pub(super) queue_full: Counter,
    pub(super) acquire_deadlines: Counter,
    pub(super) work_deadlines: Counter,
}

impl Counters {
    pub(super) fn status(&self, idle: usize, busy: usize, waiting: usize) -> PoolStatus {
        PoolStatus {
            idle,
            busy,
            waiting,
            opened: self.opened.value(),
            open_failed: self.open_failed.value(),
            broken: self.broken.value(),
            unsettled: self.unsettled.value(),
            stopped: self.stopped.value(),
            cancelled: self.cancelled.value(),
            queue_full: self.queue_full.value(),
            acquire_deadlines: self.acquire_deadlines.value(),
            work_deadlines: self.work_deadlines.value(),
        }
    }
}
