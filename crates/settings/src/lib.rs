//! Configuration in two steps: what was written, with its place, then what runs, typed and checked.
//!
//! Start at [`pooler::load`]. Nothing here binds a socket or starts anything.

pub mod diagnostic;
pub mod pooler;
pub mod source;
pub mod units;
pub mod written;
