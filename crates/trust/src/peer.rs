//! How one relay shows another that it is one (`docs/protocol.md` §8): its role's certificate, and a signature by that certificate's
//! key over keying material of this very connection.

use crate::certificate::{CertificateRole, RoleCertificate};
use crate::error::CertificateError;
use crate::ids::{NetworkId, RelayId};
use crate::tls::provider;
use crate::verifier::PinnedVerifier;
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_ecdsa_type;
use rustls::pki_types::{CertificateDer, UnixTime};
use std::time::Duration;

/// The label of the keying material that a relay signs towards another (RFC 8446 §7.5), with an empty context, 32 bytes.
pub const PEER_EXPORTER_LABEL: &[u8] = b"EXPORTER-holdfast-relay";
/// The most certificates of a chain that a relay shows another.
pub const MAX_PEER_CHAIN: usize = 4;
/// The longest signature, in bytes: ECDSA over P-256, in DER.
pub const MAX_PEER_PROOF_BYTES: usize = 80;

/// Roles sign with the keys of their certificates, and these are all on this curve.
const SCHEME: SignatureScheme = SignatureScheme::ECDSA_NISTP256_SHA256;

/// What a relay says of itself to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerClaims {
    /// The network that both are of.
    pub network: NetworkId,
    /// Who it is.
    pub relay: RelayId,
    /// The number of its start.
    pub epoch: u64,
}

impl PeerClaims {
    /// The signature of whoever holds the certificate, for the connection that exported these bytes.
    ///
    /// # Errors
    /// The key is of another kind.
    pub fn sign(
        &self,
        certificate: &RoleCertificate,
        exporter: &[u8; 32],
    ) -> Result<Vec<u8>, CertificateError> {
        let refused = |error: rustls::Error| CertificateError::Tls(error.to_string());
        let key = any_ecdsa_type(&certificate.key()).map_err(refused)?;
        let signer = key.choose_scheme(&[SCHEME]);
        let signer = signer.ok_or_else(|| CertificateError::Tls("the key is not on P-256".to_owned()))?;
        signer.sign(&self.message(exporter)).map_err(refused)
    }

    /// Whether a relay of the network says so, on this connection, at `now_ms`: the chain (its own certificate first) ends in the
    /// network's root and names the role, and its key has signed.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        signature: &[u8],
        exporter: &[u8; 32],
        now_ms: u64,
    ) -> Result<(), CertificateError> {
        let stranger = |error: String| CertificateError::Stranger(error);
        let (leaf, presented) =
            chain.split_first().ok_or_else(|| stranger("it shows no certificate".to_owned()))?;
        let provider = provider();
        let verifier = PinnedVerifier::new(self.network, CertificateRole::Relay, &provider);
        let now = UnixTime::since_unix_epoch(Duration::from_millis(now_ms));
        verifier.verify_role(leaf, presented, now).map_err(|error| stranger(error.to_string()))?;
        let signed = webpki::EndEntityCert::try_from(leaf).is_ok_and(|leaf| {
            let algorithms = &provider.signature_verification_algorithms;
            algorithms
                .mapping
                .iter()
                .filter(|(scheme, _)| *scheme == SCHEME)
                .flat_map(|(_, algorithms)| algorithms.iter())
                .any(|algorithm| {
                    leaf.verify_signature(*algorithm, &self.message(exporter), signature).is_ok()
                })
        });
        if signed { Ok(()) } else { Err(stranger("the signature is not for this connection".to_owned())) }
    }

    fn message(&self, exporter: &[u8; 32]) -> Vec<u8> {
        let label = b"holdfast relay 1\0".as_slice();
        [label, &self.network.0, &self.relay.bytes(), &self.epoch.to_be_bytes(), exporter].concat()
    }
}

#[cfg(test)]
mod tests;
