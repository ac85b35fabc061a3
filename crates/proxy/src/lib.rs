//! SOCKS5, HTTP CONNECT and plain HTTP in; a stream through a provider out.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod http;
pub mod refusal;
pub mod socks;
