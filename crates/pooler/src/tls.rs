//! TLS on both sides: what the configuration's files hold, and where the dear steps of handshakes run.

mod authorities;
mod certificate;
mod context;
mod files;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod handshakes;
pub(crate) mod suites;

#[cfg(test)]
pub(crate) use context::ToClients;
pub(crate) use context::ToServers;
pub use context::{TlsContext, load};
