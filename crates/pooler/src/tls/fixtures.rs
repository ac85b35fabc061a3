//! Certificates for tests, made when they run.

use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SignatureAlgorithm};
use std::path::{Path, PathBuf};
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
