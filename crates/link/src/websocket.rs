//! The same bytes inside a WebSocket, where only HTTP passes (§1; RFC 6455).
//!
//! The WebSocket is inside TLS, and the frames of §2 are inside the WebSocket. What a message is, and where it ends, means nothing
//! here: so no message is ever put together, and a connection owns a few bytes for it and no buffer.

mod handshake;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use handshake::{BadAnswer, Handshake, MAX_HEAD_BYTES, Refusal, accept, status};
pub use reader::{BadFrame, Reader};
pub use writer::{close, wrap_masked, wrap_plain};

/// The protocol's name in ALPN (RFC 7301) when a WebSocket follows.
pub const ALPN: &[u8] = b"http/1.1";
/// What is asked for.
pub const PATH: &str = "/v1/link";
/// The protocol inside, `Sec-WebSocket-Protocol`.
pub const PROTOCOL: &str = "holdfast-1";

/// Kinds of frames (RFC 6455 §5.2).
mod opcode {
    pub(super) const CONTINUATION: u8 = 0x0;
    pub(super) const BINARY: u8 = 0x2;
    pub(super) const CLOSE: u8 = 0x8;
    pub(super) const PING: u8 = 0x9;
    pub(super) const PONG: u8 = 0xA;
}

/// Which end of a connection this is: a client masks what it sends, a server does not (RFC 6455 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Whoever has asked for the WebSocket.
    Client,
    /// Whoever has granted it.
    Server,
}
