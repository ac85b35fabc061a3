//! What is done about a pile-up.

/// The setting `lock_pileup`, where anybody looks at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// End whoever keeps the DDL waiting.
    CancelBlocker,
    /// Cancel the DDL that waits: it can be tried again.
    CancelWaitingDdl,
    /// Say who waits for whom, and hold no more connections behind it.
    Warn,
}
