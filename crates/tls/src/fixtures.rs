//! Two ends that trust each other, for tests.

use crate::exporter::exporting;
use crate::session::TlsSession;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::sync::Arc;

pub(crate) struct Configs {
    pub client: Arc<ClientConfig>,
    pub server: Arc<ServerConfig>,
}

impl Configs {
    pub(crate) fn new(version: &'static SupportedProtocolVersion) -> Self {
        Self::build(version, |_, _| ())
    }

    pub(crate) fn exporting() -> Self {
        Self::build(&rustls::version::TLS13, |client, server| {
            client.key_log = exporting();
            server.key_log = exporting();
        })
    }

    /// With an ALPN name for each end, if it has one.
    pub(crate) fn naming(client_protocol: Option<&[u8]>, server_protocol: &[u8]) -> Self {
        Self::build(&rustls::version::TLS13, |client, server| {
            client.alpn_protocols = client_protocol.iter().map(|name| name.to_vec()).collect();
            server.alpn_protocols = vec![server_protocol.to_vec()];
        })
    }

    pub(crate) fn ends(&self, requires_alpn: bool) -> (TlsSession, TlsSession) {
        let name = "localhost".try_into().unwrap();
        let client = TlsSession::connect(Arc::clone(&self.client), name).unwrap();
        (client, TlsSession::accept(Arc::clone(&self.server), requires_alpn).unwrap())
    }

    fn build(
        version: &'static SupportedProtocolVersion,
        adapt: impl FnOnce(&mut ClientConfig, &mut ServerConfig),
    ) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        adapt(&mut client, &mut server);
        Self { client: Arc::new(client), server: Arc::new(server) }
    }
}
