//! Beside the house: private PostgreSQL and Redis servers, faults and load, for integration tests, `holdfast bench` and
//! `holdfast drill`.
//!
//! Nothing here shares code with the pooler: the client side of the wire protocol ([`wire`]) is a second, independent
//! one, so that a mistake in the pooler's own protocol room cannot hide itself. The room returns data and prints nothing.
//! Every process that it starts is stopped when its owner is dropped, and by a watchdog when the owner was killed.

pub mod cost;
pub mod fleet;
pub mod guard;
pub mod name_server;
pub mod namespaces;
pub mod network;
pub mod peer;
pub mod port;
pub mod postgres;
pub mod process;
pub mod redis;
pub mod relay;
pub mod scenario;
pub mod scratch;
pub mod stall;
pub mod traffic;
pub mod wire;

mod clock;
mod daemon;
