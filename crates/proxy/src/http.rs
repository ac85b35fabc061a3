//! HTTP/1 as a proxy speaks it (RFC 9110, RFC 9112), without I/O: heads, where bodies end, and what is passed on.
//!
//! Strict where leniency lets two readers see two different messages: bare line feeds, folded lines, spaces before a colon,
//! two lengths, a length beside `chunked` are errors.

pub mod answer;
pub mod body;
pub mod head;
pub mod request;
pub mod response;

pub use body::{Body, BodyError};
pub use head::{Head, HeadError, MAX_HEAD_BYTES, MAX_HEADERS, Version};
pub use request::{Request, Way};
pub use response::Response;
