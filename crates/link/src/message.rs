//! The payloads that are fields (§3, §4, §7).
//!
//! Each has `decode`, from a frame's payload, and `write`, which adds the whole frame.

mod connection;
mod hello;
mod peer;
mod stream;
mod welcome;

pub use connection::{Contract, Drain, Refuse};
pub use hello::Hello;
pub use peer::{MOST_PRESENT, Peer, Peered, Presence, PresenceChange, Present, Standing};
pub use stream::{Moved, Open, Opened, Reset, decode_credit, write_credit};
pub use welcome::Welcome;

/// The longest token or contract, in bytes of text.
pub const MAX_TOKEN_BYTES: usize = 2_048;
/// The longest name and version of a client's software.
pub const MAX_SOFTWARE_BYTES: usize = 64;
/// The longest cause in a REFUSE.
pub const MAX_CAUSE_BYTES: usize = 200;
/// The most addresses of other relays.
pub const MAX_ADDRESSES: usize = 16;
/// The longest `host:port`: a name of 253 bytes, and brackets, colon and port.
pub const MAX_ADDRESS_BYTES: usize = 261;
/// The longest sealed message in OPEN or OPENED.
pub const MAX_SEAL_BYTES: usize = 1_024;

#[cfg(test)]
mod tests;
