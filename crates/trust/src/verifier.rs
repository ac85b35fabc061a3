//! TLS that trusts one network, and nothing else: the root is found in the presented chain by the hash of its key.

use crate::certificate::CertificateRole;
use crate::ids::NetworkId;
use crate::root::RootCertificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, RootCertStore, SignatureScheme,
};

/// The most certificates beside the leaf that a server may present.
const MAX_PRESENTED: usize = 3;

/// Takes a server's chain if it ends in the root key that the network is named after, is dated right, is for the name that was
/// dialled, and names the role that was meant.
#[derive(Debug)]
pub struct PinnedVerifier {
    network: NetworkId,
    role: CertificateRole,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinnedVerifier {
    /// Trusts this network, and expects a server of this role.
    #[must_use]
    pub const fn new(network: NetworkId, role: CertificateRole, provider: &CryptoProvider) -> Self {
        Self { network, role, algorithms: provider.signature_verification_algorithms }
    }

    /// Everything but the name that was dialled.
    pub(crate) fn verify_role(
        &self,
        leaf: &CertificateDer<'_>,
        presented: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let roots = self.authority(presented)?;
        let parsed = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, presented, now, self.algorithms.all)?;
        let leaf = webpki::EndEntityCert::try_from(leaf).map_err(|_| CertificateError::BadEncoding)?;
        if !leaf.valid_uri_names().any(|uri| uri == self.role.uri()) {
            return Err(CertificateError::InvalidPurpose.into());
        }
        Ok(())
    }

    /// The network's root among the certificates that were presented.
    fn authority(&self, presented: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        if presented.len() > MAX_PRESENTED {
            return Err(CertificateError::UnknownIssuer.into());
        }
        let pinned = |certificate: &&CertificateDer<'_>| {
            RootCertificate::key_in(certificate)
                .is_some_and(|key| NetworkId::of_root_key(&key) == self.network)
        };
        let root = presented.iter().find(pinned).ok_or(CertificateError::UnknownIssuer)?;
        let mut roots = RootCertStore::empty();
        roots.add(root.clone().into_owned())?;
        Ok(roots)
    }
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        presented: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify_role(leaf, presented, now)?;
        verify_server_name(&ParsedCertificate::try_from(leaf)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SelectedUnofferedCipherSuite.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
