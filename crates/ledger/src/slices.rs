//! How a grant is cut.

use crate::GREATEST_BLOCK_BYTES;

/// The most slices of one grant.
pub const MOST_SLICES: u16 = 16;
/// What a grant must have for each further slice: sixteen of the greatest blocks.
pub const SLICE_BYTES: u64 = 16 * GREATEST_BLOCK_BYTES;

/// Into how many slices a grant of this size is cut: 1 to [`MOST_SLICES`].
#[must_use]
pub fn slice_count(grant_bytes: u64) -> u16 {
    u16::try_from(grant_bytes / SLICE_BYTES).unwrap_or(MOST_SLICES).clamp(1, MOST_SLICES)
}

/// The bytes of slice `index` (from 0) out of `count`. All slices together are the grant, to the byte.
#[must_use]
pub fn slice_bytes(grant_bytes: u64, count: u16, index: u16) -> u64 {
    let (count, index) = (u64::from(count.max(1)), u64::from(index));
    if index >= count {
        return 0;
    }
    grant_bytes / count + u64::from(index < grant_bytes % count)
}
