//! The relay: it holds the connections of providers, apps and proxies, and moves their streams.
//!
//! One thread. [`run`] listens; a connection goes from `listener` (at what rate) through `door` (who is it) into `hub` (its streams).
//! `peering` keeps links to the other relays, `elsewhere` knows what these have.
//! `reporting` writes down what others want to know: from memory to this disk, and from there, when it can, to the records.

mod admission;
mod config;
mod contracts;
mod counters;
mod database;
mod door;
mod elsewhere;
mod hub;
mod journal;
mod listener;
mod peering;
mod records;
mod reporting;
mod run;

pub use ::keys::Known as Keys;
pub use config::{Config, Forwarding, InvalidConfig};
pub use contracts::Usage;
pub use counters::Status;
pub use database::Database;
pub use hub::Presence;
pub use records::{Beat, Beaten, MAX_BATCH, RecordError, Records};
pub use run::{Resources, StartError, Stop, run};
