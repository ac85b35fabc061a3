//! SOCKS5, HTTP CONNECT and plain HTTP in; a stream through a provider out.

mod clock;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod http;
pub mod limits;
pub mod purse;
pub mod refusal;
pub mod socks;
