//! The egress node: it dials out to a relay, and carries streams to the world by its owner's rules.

mod carry;
pub mod config;
pub mod control;
pub mod doctor;
pub mod exit;
mod gate;
pub mod join;
mod ledger;
pub mod limits;
pub mod logfile;
mod node;
pub mod state;
pub mod status;
mod uplink;
mod wall;

pub use config::{Config, ConfigError};
pub use gate::User;
pub use node::{DRAIN_TIME, RunError, run, status_at_rest};
pub use state::{StateError, StateFolder};
pub use status::Status;
