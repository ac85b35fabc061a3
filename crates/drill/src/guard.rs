//! Poolers side by side under an open-loop load, each before a private PostgreSQL of its own, while something is done to
//! that database.
//!
//! **Capacity is set by construction**: a pool of 20 and a query that sleeps, so that what is measured is the pooler's
//! choice of whom to serve and not this machine's CPU. It is measured once more in each run, without a pooler between.
//!
//! **Arrivals are open-loop** ([`load`]): they come at times that were fixed before, whether or not earlier ones were
//! answered, since callers do not wait for each other. Latency counts from the time that was meant, so that a
//! generator or a pooler that falls behind cannot hide it.

pub mod load;
pub mod map;

mod capacity;
pub(crate) mod figures;
mod schedule;
mod sessions;
mod side;
mod stage;

pub use figures::{Bucket, Outcome, Record};
pub use side::{PoolerKind, Side, SideOptions};
pub use stage::{GuardStage, SideReport, Spans};
pub(crate) use stage::{Plan, percent};

/// Servers in a pool, unless a drill says otherwise.
pub const POOL_SIZE: u32 = 20;
