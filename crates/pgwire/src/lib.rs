//! The PostgreSQL wire protocol, both sides, without I/O, clock or randomness of its own.
//!
//! Bytes come in as slices, answers go out as bytes to send. What a peer sends never panics and never makes
//! memory grow beyond the bounds named here.

pub mod accept;
pub mod connect;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod md5;
pub mod message;
pub mod replies;
pub mod scram;
mod secret;
pub mod startup;

pub use secret::{CancelKey, MAX_SECRET_KEY_BYTES, MIN_SECRET_KEY_BYTES, Password, SecretKey};
