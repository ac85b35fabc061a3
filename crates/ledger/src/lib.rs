//! Grants, holds and blocks: arithmetic. No socket, no clock, no SQL.
//!
//! A **grant** gives an account bytes. It is cut in **slices**, so that admissions at the same time do not wait for one
//! another. A **contract** is a block of bytes that is **held** on one slice until it is settled, or until its minute is over:
//! a hold of the past counts no more, without anyone having to take it away.
//!
//! What is used beyond a hold is debited all the same, as an **overdraft**: an account in debt gets no block until a grant covers it.

mod block;
mod gap;
mod minute;
mod offline;
mod slice;
mod slices;

pub use block::{
    CONTRACT_LIFETIME_MS, FIRST_BLOCK_BYTES, GREATEST_BLOCK_BYTES, LEAST_BLOCK_BYTES, SETTLE_GRACE_MS,
    next_block_bytes, top_up_is_due,
};
pub use gap::{Gap, LEAST_GAP_MS, MOST_EXTENSION_MINUTES, PULSE_MS, extension_minutes};
pub use minute::Minute;
pub use offline::{
    ACCOUNT_OFFLINE_BYTES, ALLOWANCE_GRACE_MS, Allowances, GREATEST_ALLOWANCE_BYTES, LEAST_ALLOWANCE_BYTES,
    MOST_PAYERS, OFFLINE_BLOCK_BYTES, PAYER_ALLOWANCE_BYTES, allowance_bytes, most_carried_bytes,
};
pub use slice::{Charged, Held, MOST_MINUTES, Refusal, Slice};
pub use slices::{MOST_SLICES, SLICE_BYTES, slice_bytes, slice_count};

#[cfg(test)]
mod tests;
