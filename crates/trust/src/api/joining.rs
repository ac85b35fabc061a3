//! Registration, tokens, and the documents that verifiers keep.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// `POST /v1/clients`. Sent again with the same `request` and keys, it gets the first answer again (with a fresh token),
/// also when the code's time is over by then.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// Chosen by the client once, and kept with its keys.
    pub request: Uuid,
    /// 1 provider, 2 app, 3 proxy, as in HELLO.
    pub role: u8,
    /// 64 bytes: Ed25519 key, X25519 key.
    pub identity: String,
    /// The single-use code.
    pub code: String,
    /// The Ed25519 signature over [`registration_message`]: whoever registers a key has it.
    pub proof: String,
    /// A name that the owner will recognise, at most 64 bytes.
    #[serde(default)]
    pub label: String,
    /// Name and version of the software, at most 64 bytes.
    #[serde(default)]
    pub software: String,
    /// Where a provider says that it is: two capital letters (ISO 3166-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
}

/// What a registration's proof signs.
#[must_use]
pub fn registration_message(network: &[u8; 32], request: Uuid, role: u8, identity: &[u8; 64]) -> Vec<u8> {
    let mut message = b"holdfast register 1\0".to_vec();
    message.extend_from_slice(network);
    message.extend_from_slice(request.as_bytes());
    message.push(role);
    message.extend_from_slice(identity);
    message
}

/// A client that is registered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegisterAnswer {
    /// Its name from now on.
    pub client: Uuid,
    /// Its first token, as `POST /v1/token` gives them.
    pub token: TokenAnswer,
    /// The documents to verify others with.
    pub trust: TrustAnswer,
}

/// `POST /v1/token`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// The least epoch that the token may be for.
    #[serde(default)]
    pub epoch: u64,
}

/// A token and where to go with it.
#[derive(Clone, Serialize, Deserialize)]
pub struct TokenAnswer {
    /// Seven days of trust, as text.
    pub token: String,
    /// When it ends.
    pub expires_at_ms: u64,
    /// Ask for the next one after this time (spread, so that a fleet does not ask at once).
    pub refresh_after_ms: u64,
    /// Relays, `host:port`, those with most room first.
    pub relays: Vec<String>,
    /// The api's clock.
    pub now_ms: u64,
}

impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenAnswer")
            .field("expires_at_ms", &self.expires_at_ms)
            .field("relays", &self.relays)
            .finish_non_exhaustive()
    }
}

/// `GET /v1/trust`: both signed by the root key, as text; each says its own number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustAnswer {
    /// The keys that sign tokens and contracts.
    pub key_ring: String,
    /// The clients that nobody serves any more.
    pub revocations: String,
}
