//! Grants, holds and blocks: arithmetic. No socket, no clock, no SQL.
//!
//! A **grant** gives an account bytes. It is cut in **slices**, so that admissions at the same time do not wait for one
//! another. A **contract** is a block of bytes that is **held** on one slice until it is settled, or until its minute is over:
//! a hold of the past counts no more, without anyone having to take it away.

mod block;
mod minute;
mod slice;
mod slices;

pub use block::{
    CONTRACT_LIFETIME_MS, FIRST_BLOCK_BYTES, GREATEST_BLOCK_BYTES, LEAST_BLOCK_BYTES, SETTLE_GRACE_MS,
    next_block_bytes, top_up_is_due,
};
pub use minute::Minute;
pub use slice::{Held, MOST_MINUTES, Refusal, Slice};
pub use slices::{MOST_SLICES, SLICE_BYTES, slice_bytes, slice_count};

#[cfg(test)]
mod tests;
