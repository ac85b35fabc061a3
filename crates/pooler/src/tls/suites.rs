//! The suites, groups and versions of the settings, as rustls has them.

use rustls::crypto::aws_lc_rs::{cipher_suite as suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};
use settings::pooler::{CipherSuite, KeyExchange, Tls};
use tls::TlsSession;

/// Each suite of the settings.
const SUITES: [(CipherSuite, SupportedCipherSuite); 9] = [
    (CipherSuite::Tls13Aes256GcmSha384, suite::TLS13_AES_256_GCM_SHA384),
    (CipherSuite::Tls13Aes128GcmSha256, suite::TLS13_AES_128_GCM_SHA256),
    (CipherSuite::Tls13Chacha20Poly1305Sha256, suite::TLS13_CHACHA20_POLY1305_SHA256),
    (CipherSuite::EcdheEcdsaAes256GcmSha384, suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    (CipherSuite::EcdheEcdsaAes128GcmSha256, suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    (CipherSuite::EcdheEcdsaChacha20Poly1305, suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    (CipherSuite::EcdheRsaAes256GcmSha384, suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    (CipherSuite::EcdheRsaAes128GcmSha256, suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    (CipherSuite::EcdheRsaChacha20Poly1305, suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The cryptography, narrowed to what the settings allow.
pub(super) fn provider(tls: &Tls) -> CryptoProvider {
    let mut provider = default_provider();
    let tls13 = tls.tls13_ciphers.suites.iter().filter(|_| tls.protocols.tls13);
    let tls12 = tls.ciphers.suites.iter().filter(|_| tls.protocols.tls12);
    provider.cipher_suites = tls13
        .chain(tls12)
        .filter_map(|wanted| SUITES.iter().find(|(name, _)| name == wanted).map(|(_, suite)| *suite))
        .collect();
    if let Some(groups) = &tls.groups.groups {
        provider.kx_groups = groups.iter().copied().map(group).collect();
    }
    provider
}

/// The versions that the settings allow.
pub(super) fn versions(tls: &Tls) -> Vec<&'static SupportedProtocolVersion> {
    let allowed =
        [(tls.protocols.tls13, &rustls::version::TLS13), (tls.protocols.tls12, &rustls::version::TLS12)];
    allowed.into_iter().filter_map(|(allowed, version)| allowed.then_some(version)).collect()
}

fn group(group: KeyExchange) -> &'static dyn SupportedKxGroup {
    match group {
        KeyExchange::X25519 => kx_group::X25519,
        KeyExchange::X25519MlKem768 => kx_group::X25519MLKEM768,
        KeyExchange::P256 => kx_group::SECP256R1,
        KeyExchange::P256MlKem768 => kx_group::SECP256R1MLKEM768,
        KeyExchange::P384 => kx_group::SECP384R1,
    }
}

/// What a connection has agreed on, as PgBouncer prints it: `TLSv1.3/TLS_AES_256_GCM_SHA384`, and before TLS 1.3 the
/// group of the key exchange too; empty before it is known.
pub(crate) fn describe(session: &TlsSession) -> String {
    let Some((version, suite, group)) = session.agreed() else { return String::new() };
    let name = SUITES.iter().find(|(_, known)| known.suite() == suite).map(|(name, _)| name.openssl_name());
    let name = name.unwrap_or("unknown");
    match version {
        ProtocolVersion::TLSv1_3 => format!("TLSv1.3/{name}"),
        _ => match group.map(group_name) {
            Some(group) => format!("TLSv1.2/{name}/ECDH={group}"),
            None => format!("TLSv1.2/{name}"),
        },
    }
}

fn group_name(group: rustls::NamedGroup) -> &'static str {
    match group {
        rustls::NamedGroup::X25519 => "X25519",
        rustls::NamedGroup::secp256r1 => "prime256v1",
        rustls::NamedGroup::secp384r1 => "secp384r1",
        rustls::NamedGroup::X25519MLKEM768 => "X25519MLKEM768",
        _ => "unknown",
    }
}
