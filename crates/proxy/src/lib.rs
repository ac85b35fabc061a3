//! SOCKS5, HTTP CONNECT and plain HTTP in; a stream through a provider out.

#[cfg(test)]
extern crate self as proxy;

mod abuse;
mod accounts;
pub mod config;
mod connection;
pub mod control;
pub mod direct;
mod directory;
pub mod exits;
#[cfg(test)]
mod fixtures;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod http;
mod last_known;
mod limits;
mod moved;
mod network;
mod opener;
mod purse;
pub mod refusal;
mod server;
pub mod socks;

pub use config::{Config, ConfigError};
pub use directory::Provider;
pub use server::{Listeners, ProxyError, run, serve};
