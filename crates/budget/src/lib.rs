//! One budget of connections for each database server, shared by every pooler in front of it.
//!
//! A pooler leases places in chunks. A chunk is a lock that its control connection holds in the server, so that it is free
//! again when that connection ends, however it ends. A lease alone proves nothing about what a dead holder has left behind:
//! a place is used only while every backend that is seen, every place that others hold, and this one fit into the budget.
//!
//! No socket, no clock, no SQL: a driver carries an [`Order`] to the server and brings back a [`Look`].

mod chunk;
mod estimate;
mod floor;
mod lease;
mod order;
mod servers;
mod terms;
mod view;

pub use chunk::Chunk;
pub use estimate::{Estimate, GROWTH_INTERVAL};
pub use lease::{Demand, IDLE_LOOK, LOOK, Lease, SURPLUS_REST, Step, TURN};
pub use order::{Look, Order, Other, ServerLimits};
pub use terms::{AUTOMATIC_MARGIN, Size, Terms};
pub use view::{LeaseState, LeaseView};
