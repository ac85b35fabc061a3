//! Certificates, made when the tests run: an authority, what it has certified, and another authority that nobody trusts.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use base64::Engine as _;
use drill::peer::PoolerSetup;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SignatureAlgorithm};
use tempfile::TempDir;

/// An authority.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pub(crate) pem: String,
}

/// A certificate and its key (PEM).
pub(crate) struct Certificate {
    pub(crate) pem: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = pem("CERTIFICATE", params.self_signed(&key).unwrap().der());
        Self { params, key, pem }
    }

    /// Certifies a name or address.
    pub(crate) fn certify(&self, name: &str) -> Certificate {
        self.certify_with(name, &rcgen::PKCS_ECDSA_P256_SHA256)
    }

    /// With a key of another kind.
    pub(crate) fn certify_with(&self, name: &str, algorithm: &'static SignatureAlgorithm) -> Certificate {
        self.certify_all(&[name], algorithm)
    }

    /// Certifies several names at once.
    pub(crate) fn certify_all(&self, names: &[&str], algorithm: &'static SignatureAlgorithm) -> Certificate {
        let alternatives: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(alternatives).unwrap();
        params.distinguished_name.push(DnType::CommonName, names[0]);
        let key = KeyPair::generate_for(algorithm).unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        Certificate {
            pem: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", &key.serialize_der()),
        }
    }
}

/// Files of a test: `ca.pem`, `other_ca.pem`, and `server`, `client` and `stranger` with `.pem` and `.key`, the stranger's
/// of the other authority. The server's is for 127.0.0.1.
pub(crate) struct Files {
    folder: TempDir,
    pub(crate) authority: Authority,
}

impl Files {
    pub(crate) fn new() -> Self {
        let (authority, other) = (Authority::new("ours"), Authority::new("another"));
        let files = Self { folder: tempfile::tempdir().unwrap(), authority };
        files.write("ca.pem", &files.authority.pem);
        files.write("other_ca.pem", &other.pem);
        files.put("server", &files.authority.certify("127.0.0.1"));
        files.put("client", &files.authority.certify("bench"));
        files.put("stranger", &other.certify("bench"));
        files
    }

    /// Writes a certificate and its key.
    pub(crate) fn put(&self, name: &str, certificate: &Certificate) {
        self.write(&format!("{name}.pem"), &certificate.pem);
        self.write(&format!("{name}.key"), &certificate.key);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    /// The pooler with TLS to clients.
    pub(crate) fn offer(&self, setup: PoolerSetup, mode: &str) -> PoolerSetup {
        setup
            .setting("client_tls_sslmode", mode)
            .setting("client_tls_key_file", &self.path("server.key"))
            .setting("client_tls_cert_file", &self.path("server.pem"))
            .setting("client_tls_ca_file", &self.path("ca.pem"))
    }
}

/// RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
