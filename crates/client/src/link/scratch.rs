//! Buffers of a thread, lent for as long as nothing is awaited: an idle link owns none.

use std::cell::RefCell;
use tls::MAX_PENDING_BYTES;

/// Bytes of one receive.
pub(crate) const READ_BYTES: usize = 256 * 1024;

pub(crate) struct Scratch {
    /// For what a socket gives: [`READ_BYTES`] behind what was left over.
    pub incoming: Vec<u8>,
    /// For what TLS opens.
    pub plain: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> =
        RefCell::new(Scratch { incoming: vec![0; MAX_PENDING_BYTES + READ_BYTES], plain: Vec::new() });
}

/// Lends them. `work` must not ask for them again.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(work)
}
