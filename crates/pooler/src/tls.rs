//! TLS on both sides: what the configuration's files hold, and one connection's state without I/O.
//!
//! Everything speaks rustls' unbuffered interface from the first byte of the handshake, since a connection may pass from
//! the login plane into the reactor, or out of it to the console, and the two interfaces do not convert. What is decrypted
//! and encrypted stands in buffers of the caller's, so that an idle connection owns none.

mod authorities;
mod certificate;
mod context;
mod files;
#[cfg(test)]
mod fixtures;
pub(crate) mod handshakes;
pub(crate) mod session;
pub(crate) mod stream;
mod suites;

#[cfg(test)]
pub(crate) use context::ToClients;
pub(crate) use context::ToServers;
pub use context::{TlsContext, load};
