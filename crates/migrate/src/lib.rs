//! Runs DDL so that nobody has to wait for it for long: never without a short `lock_timeout`, after a look at who is in the
//! way, again and again with growing rests, within a budget of time for which others may be blocked.

mod database;
mod names;
mod plan;
mod pooler;
mod preflight;
mod run;

pub use database::{DatabaseError, connect_config};
pub use plan::{Plan, PlanError, Unit};
pub use preflight::Blocker;
pub use run::{MAX_CANCELLED, MigrateError, Options, Progress, Report, run};
