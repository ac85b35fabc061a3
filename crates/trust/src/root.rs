//! The root key, whose hash is the network's name, and its certificate.

use crate::certificate::{self, CertificateRole, RoleCertificate};
use crate::error::{CertificateError, KeyError};
use crate::ids::NetworkId;
use crate::signed::TokenKey;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyUsagePurpose};
use rustls::pki_types::CertificateDer;
use std::fmt;

/// How long the root's own certificate is dated. Whoever pins the key does not look at it.
const ROOT_CERTIFICATE_DAYS: u64 = 20 * 365;

/// The secret of a network: made once, kept in a file that only its owner may read.
pub struct RootKey(TokenKey);

impl RootKey {
    /// A new network's key.
    ///
    /// # Errors
    /// The system gave no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        TokenKey::generate().map(Self)
    }

    /// The key that [`RootKey::seed`] gave.
    ///
    /// # Errors
    /// Another length.
    pub fn from_seed(seed: &[u8]) -> Result<Self, KeyError> {
        TokenKey::from_seed(seed).map(Self)
    }

    /// The secret.
    #[must_use]
    pub const fn seed(&self) -> &[u8; 32] {
        self.0.seed()
    }

    /// The public half, whose hash is the network's name.
    #[must_use]
    pub const fn public_key(&self) -> &[u8; 32] {
        self.0.public_key()
    }

    /// The network's name.
    #[must_use]
    pub fn network(&self) -> NetworkId {
        NetworkId::of_root_key(self.public_key())
    }

    /// A certificate of the root key, signed by itself, from `now_ms` on. Any two differ in their dates only.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn certificate(&self, now_ms: u64) -> Result<RootCertificate, CertificateError> {
        let params = self.params(now_ms);
        let made = params.self_signed(&self.pair()?).map_err(certificate::making)?;
        Ok(RootCertificate(made.der().clone()))
    }

    /// A certificate with a new key for a role, below the root, for the names and addresses at which it is reached.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn issue(
        &self,
        role: CertificateRole,
        names: &[String],
        now_ms: u64,
    ) -> Result<RoleCertificate, CertificateError> {
        let issuer = rcgen::Issuer::new(self.params(now_ms), self.pair()?);
        certificate::issue(&issuer, &self.certificate(now_ms)?, role, names, now_ms)
    }

    pub(crate) const fn signer(&self) -> &TokenKey {
        &self.0
    }

    fn pair(&self) -> Result<rcgen::KeyPair, CertificateError> {
        certificate::ed25519(self.seed())
    }

    fn params(&self, now_ms: u64) -> CertificateParams {
        let mut params = CertificateParams::default();
        certificate::date(&mut params, now_ms, ROOT_CERTIFICATE_DAYS);
        certificate::name(&mut params, &format!("holdfast network {}", self.network()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RootKey({})", self.network())
    }
}

/// The certificate of a network's root key: what a TLS library takes as authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootCertificate(CertificateDer<'static>);

impl RootCertificate {
    /// The root key in a certificate, if it is an Ed25519 key. Nothing is checked beyond.
    #[must_use]
    pub fn key_in(certificate: &CertificateDer<'_>) -> Option<[u8; 32]> {
        /// What stands before the 32 bytes of an Ed25519 key (RFC 8410 §4).
        const PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
        let info = parsed.subject_public_key_info();
        info.as_ref().strip_prefix(&PREFIX)?.try_into().ok()
    }

    /// Its DER bytes.
    #[must_use]
    pub const fn der(&self) -> &CertificateDer<'static> {
        &self.0
    }

    /// As PEM, for any TLS library.
    #[must_use]
    pub fn pem(&self) -> String {
        certificate::pem("CERTIFICATE", &self.0)
    }
}
