//! What keeps a stream's content, and where it goes, from the relay (§6).
//!
//! `Noise_IK_25519_AESGCM_SHA256`: the opener is the initiator. The handshake is snow's, on the primitives of aws-lc-rs; the
//! messages behind it are sealed in place.

mod crypto;
mod handshake;
mod payload;
mod record;
mod replay;

pub use handshake::{Initiator, Parties, Responder, SealError};
pub use payload::{Answer, Family, Host, Request, Target};
pub use record::{MAX_PLAIN_BYTES, Sealer, TAG_BYTES, Unsealer};
pub use replay::{Freshness, GREATEST_SKEW_MS, MAX_REMEMBERED, Stale};

/// Bytes of an X25519 key, public or private.
pub const KEY_BYTES: usize = 32;

/// The public half of an X25519 key; `None` if the library refuses it.
#[must_use]
pub fn public_key(private: &[u8; KEY_BYTES]) -> Option<[u8; KEY_BYTES]> {
    crypto::public_key(private)
}

#[cfg(test)]
mod tests;
