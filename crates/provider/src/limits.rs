//! What an owner gives away: bytes a month, a rate, streams, hours. Pure rules.

mod bytes;
mod hours;
mod usage;

pub use bytes::{ByteCount, ByteCountError};
pub use hours::{Hours, HoursError};
pub use usage::Usage;
