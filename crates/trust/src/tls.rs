//! Ready TLS configurations: 1.3 only, and of X25519MLKEM768, X25519 and P-256 the one that the client likes best. Never P-384, whose
//! exchange costs many times as much.

use crate::certificate::{CertificateRole, RoleCertificate};
use crate::error::CertificateError;
use crate::ids::NetworkId;
use crate::verifier::PinnedVerifier;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use std::sync::Arc;

/// For whoever dials a server of that role in that network. `alpn` in order of preference.
///
/// # Errors
/// The TLS library refuses what stands here, which would be a mistake of ours.
pub fn client_config(
    network: NetworkId,
    role: CertificateRole,
    alpn: &[&[u8]],
) -> Result<Arc<ClientConfig>, CertificateError> {
    let provider = Arc::new(provider());
    let verifier = Arc::new(PinnedVerifier::new(network, role, &provider));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(refused)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// For the server of a role. `alpn` in order of preference.
///
/// # Errors
/// Chain and key do not belong together, or are damaged.
pub fn server_config(
    certificate: &RoleCertificate,
    alpn: &[&[u8]],
) -> Result<Arc<ServerConfig>, CertificateError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(certificate.chain().to_vec(), certificate.key())
        .map_err(refused)?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    // A cache for resumption in one process is of no use to a fleet, and a ticket is work for each connection.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519MLKEM768, kx_group::X25519, kx_group::SECP256R1],
        ..default_provider()
    }
}

fn refused(error: rustls::Error) -> CertificateError {
    CertificateError::Tls(error.to_string())
}

#[cfg(test)]
mod tests;
