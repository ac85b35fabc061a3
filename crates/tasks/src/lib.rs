//! How work is shared out: lanes with guaranteed shares, and when what failed is tried again. No I/O, no clock, no SQL.

mod lane;
mod retry;
mod shares;

pub use lane::{LANES, Lane};
pub use retry::{MOST_ATTEMPTS, retry_ms};
pub use shares::{SLOTS, Shares};
