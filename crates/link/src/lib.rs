//! The network's own protocol without I/O: what a provider, an app or a proxy speaks with a relay.
//!
//! `docs/protocol.md` is its definition; sections are cited as "§2". Bytes and moments come in, bytes and decisions go out; who
//! reads sockets and clocks is in `client` and `relay`.
//!
//! - [`Frame`], [`Kind`]: where a frame begins and ends (§2)
//! - [`message`]: the payloads that are fields (§3, §4)
//! - [`Code`]: why something was refused or ended (§7)
//! - [`seal`]: what keeps a stream's content from the relay (§6)
//! - [`SendCredit`], [`ReceiveCredit`]: how much may be sent (§5)
//! - [`websocket`]: the same bytes where only HTTP passes (§1)
//! - [`Heartbeat`], [`Comeback`]: when a silent peer is given up, and when to come back (§3)

mod code;
mod comeback;
mod credit;
mod fields;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod heartbeat;
pub mod message;
pub mod seal;
pub mod websocket;

pub use code::Code;
pub use comeback::{Comeback, Pace, may_be_wait, parse_wait, write_wait};
pub use credit::{Overrun, ReceiveCredit, SendCredit, Sharing};
pub use fields::Malformed;
pub use frame::{Frame, HEADER_BYTES, Header, Kind, MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES, write_frame};
pub use heartbeat::{Beat, Heartbeat};

/// The protocol's name in ALPN (RFC 7301).
pub const ALPN: &[u8] = b"holdfast/1";
/// What a relay's TLS offers in ALPN, in order of preference.
pub const RELAY_ALPN: &[&[u8]] = &[ALPN, websocket::ALPN, PEER_ALPN];
/// What a relay that dials another asks for in ALPN (§8).
pub const PEER_ALPN: &[u8] = b"holdfast-relay/1";
/// The version of this protocol.
pub const VERSION: u8 = 1;
/// A hello must come within this time (§3).
pub const HELLO_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);
/// A peer that takes no bytes for this long is given up (§3).
pub const WRITE_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);
