//! How large a contract's block is, and how long it lasts.

const MIB: u64 = 1 << 20;

/// The first block of an opener: 4 MiB.
pub const FIRST_BLOCK_BYTES: u64 = 4 * MIB;
/// No block is larger: 256 MiB.
pub const GREATEST_BLOCK_BYTES: u64 = 256 * MIB;
/// A slice that has less than this left is used up: 64 KiB. A smaller block would cost more than it carries.
pub const LEAST_BLOCK_BYTES: u64 = 64 << 10;
/// How long a contract opens streams: six hours.
pub const CONTRACT_LIFETIME_MS: u64 = 6 * 3_600_000;
/// How long its hold stays behind that, so that the last count of the relay arrives and is settled: ten minutes.
pub const SETTLE_GRACE_MS: u64 = 600_000;

/// The size of the block that follows one of `previous` bytes: twice as much, within the bounds.
#[must_use]
pub fn next_block_bytes(previous: Option<u64>) -> u64 {
    previous.map_or(FIRST_BLOCK_BYTES, |bytes| {
        bytes.saturating_mul(2).clamp(FIRST_BLOCK_BYTES, GREATEST_BLOCK_BYTES)
    })
}

/// Whether it is time to ask for the next block: half of this one is used.
#[must_use]
pub fn top_up_is_due(block_bytes: u64, used_bytes: u64) -> bool {
    used_bytes >= block_bytes - block_bytes / 2
}
