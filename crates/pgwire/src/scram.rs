//! SCRAM-SHA-256, both sides (RFC 5802, RFC 7677), as PostgreSQL speaks it.
//!
//! The user's name inside the exchange is empty or ignored: the one of the start-up packet counts.
//! Channel binding is `tls-server-end-point` (RFC 5929), offered to clients over TLS.

mod attributes;
mod binding;
mod client;
mod saslprep;
mod server;
#[cfg(test)]
mod tests;
mod verifier;

pub use binding::{ChannelBinding, MECHANISM_PLUS};
pub use client::{AwaitServerFinal, AwaitServerFirst, ClientSecret};
pub use saslprep::prepare;
pub use server::{AwaitClientFinal, AwaitClientFirst, Verified};
pub use verifier::{MockSecret, Verifier, VerifierError};

use std::fmt;

use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::secret::same;

/// The mechanism's registered name.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// Iterations of a new verifier where nothing else is said (`scram_iterations` of PostgreSQL).
pub const DEFAULT_ITERATIONS: u32 = 4096;
/// Most iterations that we compute ourselves: a second or two of one core. A peer or a file that asks for
/// more is refused, so that nobody can make us compute for hours.
pub const MAX_ITERATIONS: u32 = 2_000_000;
/// Longest SASL message accepted, in bytes (`PG_MAX_SASL_MESSAGE_LENGTH` of PostgreSQL).
pub const MAX_MESSAGE_BYTES: usize = 1024;

/// Bytes of a SHA-256 key or hash.
const KEY_BYTES: usize = 32;
/// Random bytes of a nonce of ours, and the characters that show them.
const NONCE_BYTES: usize = 18;
const NONCE_CHARS: usize = 24;
/// A key in base64.
const KEY_CHARS: usize = 44;

type Key = [u8; KEY_BYTES];

/// An exchange that failed. None of these texts holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// Not the syntax of RFC 5802; the peer's fault.
    #[error("malformed SCRAM message: {0}")]
    Malformed(&'static str),
    /// Longer than any honest message; the peer's fault.
    #[error("SCRAM message longer than {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
    /// The client insists on channel binding, which was not offered.
    #[error("client requires SCRAM channel binding, but it is not supported")]
    ChannelBinding,
    /// The client could bind the channel and was told that we cannot: somebody stands between us.
    #[error("SCRAM channel binding negotiation error: the client thinks that it is not supported, but it is")]
    ChannelBindingStripped,
    /// A type of channel binding that PostgreSQL does not know either.
    #[error("unsupported SCRAM channel-binding type")]
    ChannelBindingType,
    /// The client sees another certificate than ours: somebody stands between us.
    #[error("SCRAM channel binding check failed")]
    ChannelBindingMismatch,
    /// The client wants to act as somebody else (`a=`).
    #[error("client uses authorization identity, but it is not supported")]
    AuthorizationIdentity,
    /// An extension that must not be ignored (`m=`).
    #[error("peer requires an unsupported SCRAM extension")]
    Extension,
    /// The nonce is not the one of this exchange: a replay, or a broken peer.
    #[error("SCRAM nonce does not match")]
    Nonce,
    /// The client does not know the password, or the user does not exist.
    #[error("SCRAM proof does not match")]
    Proof,
    /// The server asks for more work than is granted, or none.
    #[error("SCRAM iteration count {asked} is outside 1 to {MAX_ITERATIONS}")]
    Iterations {
        /// What it asked for.
        asked: u64,
    },
    /// The server could not prove that it knows the password's verifier: it may be an impostor.
    #[error("server's SCRAM signature does not match, it may not be the server it claims to be")]
    ServerSignature,
    /// The server ended the exchange with an error of its own (`e=`).
    #[error("server reports SCRAM error: {0}")]
    Server(String),
}

/// What a verified login teaches: enough to log in at any server that stores the same verifier
/// (same password, salt and iterations), so it is as secret as the password itself.
#[derive(Clone)]
pub struct ScramKeys {
    /// Proves the client to the server.
    pub client_key: [u8; KEY_BYTES],
    /// Proves the server to the client.
    pub server_key: [u8; KEY_BYTES],
}

impl ScramKeys {
    /// Keys of a password. Costly: `iterations` rounds of HMAC, 4096 take about a millisecond.
    /// The password is prepared with SASLprep as PostgreSQL does.
    ///
    /// # Errors
    /// Iterations outside 1 to [`MAX_ITERATIONS`].
    pub fn derive(password: &[u8], salt: &[u8], iterations: u32) -> Result<Self, ScramError> {
        let salted = salted_password(password, salt, iterations)?;
        Ok(Self {
            client_key: hmac_of(&salted, &[b"Client Key"]),
            server_key: hmac_of(&salted, &[b"Server Key"]),
        })
    }

    /// The hash of the client key, which a verifier stores.
    #[must_use]
    pub fn stored_key(&self) -> [u8; KEY_BYTES] {
        sha256(&self.client_key)
    }
}

/// Compares in constant time.
impl PartialEq for ScramKeys {
    fn eq(&self, other: &Self) -> bool {
        same(&self.client_key, &other.client_key) & same(&self.server_key, &other.server_key)
    }
}

impl Eq for ScramKeys {}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ScramKeys(hidden)")
    }
}

fn salted_password(password: &[u8], salt: &[u8], iterations: u32) -> Result<Key, ScramError> {
    let refused = ScramError::Iterations { asked: u64::from(iterations) };
    let rounds = std::num::NonZeroU32::new(iterations).filter(|rounds| rounds.get() <= MAX_ITERATIONS);
    let rounds = rounds.ok_or(refused)?;
    let mut salted = [0; KEY_BYTES];
    aws_lc_rs::pbkdf2::derive(
        aws_lc_rs::pbkdf2::PBKDF2_HMAC_SHA256,
        rounds,
        salt,
        &prepare(password),
        &mut salted,
    );
    Ok(salted)
}

fn hmac_of(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    to_key(context.sign().as_ref())
}

fn sha256(data: &[u8]) -> Key {
    to_key(digest::digest(&digest::SHA256, data).as_ref())
}

/// Both sources give exactly 32 bytes.
fn to_key(bytes: &[u8]) -> Key {
    let mut key = [0; KEY_BYTES];
    for (place, byte) in key.iter_mut().zip(bytes) {
        *place = *byte;
    }
    key
}

fn xor(left: &Key, right: &Key) -> Key {
    std::array::from_fn(|index| left[index] ^ right[index])
}

/// A nonce of ours; the alphabet of base64 has no comma.
fn nonce(random: &[u8; 32]) -> [u8; NONCE_CHARS] {
    let mut bytes = [0; NONCE_BYTES];
    for (place, byte) in bytes.iter_mut().zip(random) {
        *place = *byte;
    }
    let mut shown = [b'A'; NONCE_CHARS];
    // 18 bytes are exactly 24 characters, so this cannot fail.
    let _ = STANDARD.encode_slice(bytes, &mut shown);
    shown
}

fn decode_key(base64: &[u8]) -> Option<Key> {
    STANDARD.decode(base64).ok()?.try_into().ok()
}
