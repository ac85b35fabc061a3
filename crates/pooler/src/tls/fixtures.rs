//! Certificates for tests, made when they run.

use super::context::{ToClients, ToServers};
use super::{TlsContext, load};
use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, SignatureAlgorithm,
};
use settings::pooler::load as load_settings;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// An authority that signs certificates.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pub pem: String,
}

/// A certificate and its key.
pub(crate) struct Certificate {
    pub der: Vec<u8>,
    pub pem: String,
    pub key_pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = pem("CERTIFICATE", params.self_signed(&key).unwrap().der());
        Self { params, key, pem }
    }

    /// A certificate for these names and addresses.
    pub(crate) fn certify(&self, names: &[&str], algorithm: &'static SignatureAlgorithm) -> Certificate {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let key = KeyPair::generate_for(algorithm).unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        Certificate::new(certificate.der(), &key)
    }
}

impl Certificate {
    /// One that has signed itself.
    pub(crate) fn self_signed(names: &[&str], algorithm: &'static SignatureAlgorithm) -> Self {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        // As `openssl req -x509` makes them.
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self::new(params.self_signed(&key).unwrap().der(), &key)
    }

    fn new(der: &[u8], key: &KeyPair) -> Self {
        let key_pem = pem("PRIVATE KEY", &key.serialize_der());
        Self { der: der.to_vec(), pem: pem("CERTIFICATE", der), key_pem }
    }
}

/// A folder with files in it.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }
}

/// RFC 7468.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Clients and servers of one context, where `general` is further lines of the settings.
pub(crate) fn context(general: &str) -> (Arc<ToClients>, Arc<ToServers>) {
    let authority = Authority::new();
    let Certificate { pem, key_pem, .. } = authority.certify(&["localhost"], &PKCS_ECDSA_P256_SHA256);
    let folder = Folder::new(&[("key.pem", &key_pem), ("cert.pem", &pem), ("ca.pem", &authority.pem)]);
    let path = folder.path("pgbouncer.ini");
    let at = folder.folder().display();
    let text = format!(
        "[databases]\n* = host=localhost\n[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\nauth_type = any\n\
         client_tls_sslmode = require\nclient_tls_key_file = {at}/key.pem\nclient_tls_cert_file = {at}/cert.pem\n\
         server_tls_sslmode = verify-full\nserver_tls_ca_file = {at}/ca.pem\n{general}\n"
    );
    std::fs::write(&path, text).unwrap();
    let context = load(&load_settings(&path).unwrap(), &TlsContext::default()).unwrap();
    (context.clients.unwrap(), context.servers.unwrap())
}

pub(crate) fn peer() -> SocketAddr {
    "127.0.0.1:5432".parse().unwrap()
}
