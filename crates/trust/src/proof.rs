//! What a client signs to show that it is the one a token or a code speaks of.
//!
//! Each text begins with a label and a zero byte of its own, so that a signature for one purpose is none for another.

use crate::api::{PROOF_SKEW_MS, registration_message, request_message};
use crate::error::ParseError;
use crate::identity::{Identity, PublicIdentity};
use crate::ids::{NetworkId, RequestId, Role, sha256};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;

/// The label of the keying material that a hello signs (RFC 8446 §7.5), with an empty context, 32 bytes.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-holdfast-hello";

/// A signature of 64 bytes for one purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Proof(pub [u8; 64]);

impl Proof {
    /// The proof of a hello (`docs/protocol.md` §3): of this start, on this TLS connection.
    #[must_use]
    pub fn hello(identity: &Identity, network: NetworkId, epoch: u64, exporter: &[u8; 32]) -> Self {
        Self(identity.sign(&hello(network, epoch, exporter)))
    }

    /// Whether it is the hello of that identity.
    #[must_use]
    pub fn is_hello(
        &self,
        identity: &PublicIdentity,
        network: NetworkId,
        epoch: u64,
        exporter: &[u8; 32],
    ) -> bool {
        identity.verify(&hello(network, epoch, exporter), &self.0)
    }

    /// The proof of a registration: whoever asks holds the keys that it asks to register.
    #[must_use]
    pub fn registration(identity: &Identity, network: NetworkId, request: RequestId, role: Role) -> Self {
        Self(identity.sign(&registration(identity.public(), network, request, role)))
    }

    /// Whether it is the registration of that identity.
    #[must_use]
    pub fn is_registration(
        &self,
        identity: &PublicIdentity,
        network: NetworkId,
        request: RequestId,
        role: Role,
    ) -> bool {
        identity.verify(&registration(identity, network, request, role), &self.0)
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Proof")
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for Proof {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut bytes = [0; 64];
        match BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(64) => Ok(Self(bytes)),
            _ => Err(ParseError::Proof),
        }
    }
}

/// What goes with a token in a request to the api, so that a stolen token alone is useless there too: a time and a
/// signature ([`crate::api::request_message`]). In its header as `TIME.SIGNATURE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestProof {
    /// When it was made, ms since 1970.
    pub time_ms: u64,
    /// The signature.
    pub proof: Proof,
}

impl RequestProof {
    /// The proof of one request. `path` with its query.
    #[must_use]
    pub fn sign(
        identity: &Identity,
        network: NetworkId,
        time_ms: u64,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Self {
        let proof = Proof(identity.sign(&request(network, time_ms, method, path, body)));
        Self { time_ms, proof }
    }

    /// Whether its time is within [`PROOF_SKEW_MS`] of `now_ms`.
    #[must_use]
    pub const fn is_timely(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.time_ms) <= PROOF_SKEW_MS
    }

    /// Whether that identity signed this request, at whatever time it says.
    #[must_use]
    pub fn is_of(
        &self,
        identity: &PublicIdentity,
        network: NetworkId,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> bool {
        identity.verify(&request(network, self.time_ms, method, path, body), &self.proof.0)
    }
}

impl fmt::Display for RequestProof {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.time_ms, self.proof)
    }
}

impl FromStr for RequestProof {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (time, proof) = text.split_once('.').ok_or(ParseError::Proof)?;
        let time_ms = time.parse().map_err(|_| ParseError::Proof)?;
        Ok(Self { time_ms, proof: proof.parse()? })
    }
}

fn hello(network: NetworkId, epoch: u64, exporter: &[u8; 32]) -> Vec<u8> {
    [b"holdfast hello 1\0".as_slice(), &network.0, &epoch.to_be_bytes(), exporter].concat()
}

fn registration(identity: &PublicIdentity, network: NetworkId, request: RequestId, role: Role) -> Vec<u8> {
    registration_message(&network.0, request.0, role.number(), identity.bytes())
}

fn request(network: NetworkId, time_ms: u64, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    request_message(&network.0, method, path, time_ms, &sha256(&[body]))
}

#[cfg(test)]
mod tests;
