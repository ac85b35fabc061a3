//! Certificates of roles: ECDSA P-256, 90 days, below the root. The role stands in a URI, names and addresses beside it.

mod validity;

use crate::error::CertificateError;
use crate::join::is_host;
use crate::root::RootCertificate;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// How long a role's certificate holds, in days.
pub const ROLE_CERTIFICATE_DAYS: u64 = 90;
/// How far back a certificate is dated, for clocks that are behind.
const BACKDATE_MS: u64 = 3_600_000;
/// The most certificates that are read from a chain's PEM text.
const MAX_CHAIN: usize = 4;

/// What a certificate's holder may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CertificateRole {
    /// Serves the api.
    Api,
    /// Relays streams.
    Relay,
    /// A hosted proxy.
    Proxy,
}

impl CertificateRole {
    /// How it stands in the certificate, as a URI among the subject's other names.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Api => "urn:holdfast:role:api",
            Self::Relay => "urn:holdfast:role:relay",
            Self::Proxy => "urn:holdfast:role:proxy",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Relay => "relay",
            Self::Proxy => "proxy",
        }
    }
}

/// A role's chain (its own certificate, then the root's) and key.
pub struct RoleCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl RoleCertificate {
    /// From the PEM text of a chain, the root's certificate last, and of a PKCS #8 key.
    ///
    /// # Errors
    /// An item is missing or damaged.
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, CertificateError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain.as_bytes())
            .take(MAX_CHAIN)
            .collect::<Result<_, _>>()
            .map_err(|_| CertificateError::Pem("certificate"))?;
        if chain.is_empty() {
            return Err(CertificateError::Pem("certificate"));
        }
        let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes())
            .map_err(|_| CertificateError::Pem("private key"))?;
        Ok(Self { chain, key })
    }

    /// The chain as PEM.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        self.chain.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect()
    }

    /// The key as PEM (PKCS #8): a secret.
    #[must_use]
    pub fn key_pem(&self) -> String {
        pem("PRIVATE KEY", self.key.secret_pkcs8_der())
    }

    /// The chain.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// When the role's own certificate ends, ms since 1970. `None`: it cannot be read.
    #[must_use]
    pub fn expires_at_ms(&self) -> Option<u64> {
        validity::validity_ms(self.chain.first()?).map(|(_, until_ms)| until_ms)
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }
}

impl fmt::Debug for RoleCertificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RoleCertificate({} certificates)", self.chain.len())
    }
}

pub(crate) fn issue(
    issuer: &rcgen::Issuer<'_, KeyPair>,
    root: &RootCertificate,
    role: CertificateRole,
    names: &[String],
    now_ms: u64,
) -> Result<RoleCertificate, CertificateError> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(making)?;
    let mut params = CertificateParams::default();
    date(&mut params, now_ms, ROLE_CERTIFICATE_DAYS);
    name(&mut params, &format!("holdfast {}", role.name()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    params.subject_alt_names = vec![SanType::URI(role.uri().try_into().map_err(making)?)];
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) if is_host(name) => SanType::DnsName(name.as_str().try_into().map_err(making)?),
            Err(_) => return Err(CertificateError::Name(name.clone())),
        });
    }
    let made = params.signed_by(&key, issuer).map_err(making)?;
    let chain = vec![made.der().clone(), root.der().clone()];
    Ok(RoleCertificate { chain, key: PrivatePkcs8KeyDer::from(key.serialize_der()) })
}

pub(crate) fn ed25519(seed: &[u8; 32]) -> Result<KeyPair, CertificateError> {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(making)?;
    let document = pair.to_pkcs8().map_err(making)?;
    let document = PrivatePkcs8KeyDer::from(document.as_ref());
    KeyPair::from_pkcs8_der_and_sign_algo(&document, &rcgen::PKCS_ED25519).map_err(making)
}

pub(crate) fn date(params: &mut CertificateParams, now_ms: u64, days: u64) {
    let from = Duration::from_millis(now_ms.saturating_sub(BACKDATE_MS));
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + from;
    params.not_after = epoch + from + Duration::from_secs(days * 86_400);
}

pub(crate) fn name(params: &mut CertificateParams, name: &str) {
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for start in (0..text.len()).step_by(64) {
        pem.push_str(&text[start..text.len().min(start + 64)]);
        pem.push('\n');
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}

pub(crate) fn making(error: impl fmt::Display) -> CertificateError {
    CertificateError::Making(error.to_string())
}
