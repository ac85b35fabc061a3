//! How a client shows that the token in a request is its own.
//!
//! `authorization: Holdfast TOKEN` and `holdfast-proof: TIME.SIGNATURE`, the time in ms since 1970, the signature by the
//! client's Ed25519 key over [`request_message`]. So a token that was overheard opens nothing.

/// Scheme of the `authorization` header of a client; an account's is `Bearer`.
pub const TOKEN_SCHEME: &str = "Holdfast";
/// Header with the time and the signature.
pub const PROOF_HEADER: &str = "holdfast-proof";
/// The most that the time may differ from the api's clock, ms.
pub const PROOF_SKEW_MS: u64 = 120_000;

/// What the signature covers: the network, the method, the path with its query, the time, and the SHA-256 of the body.
#[must_use]
pub fn request_message(
    network: &[u8; 32],
    method: &str,
    path_and_query: &str,
    time_ms: u64,
    body_sha256: &[u8; 32],
) -> Vec<u8> {
    let mut message = b"holdfast request 1\0".to_vec();
    message.extend_from_slice(network);
    message.extend_from_slice(&time_ms.to_be_bytes());
    message.extend_from_slice(body_sha256);
    message.extend_from_slice(method.as_bytes());
    message.push(b' ');
    message.extend_from_slice(path_and_query.as_bytes());
    message
}
