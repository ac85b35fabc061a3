//! A certificate for the poolers under test, made by the `openssl` program: RSA with 2048 bits, the most usual one.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::peer::PoolerSetup;
use crate::scratch::Scratch;
use cluster::Account;

/// Gone when dropped.
#[derive(Debug)]
pub(super) struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    _folder: Scratch,
}

impl Certificate {
    pub(super) fn make() -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let folder = Scratch::new("tls", &account)?;
        let (certificate, key) = (folder.path().join("server.pem"), folder.path().join("server.key"));
        let output = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .context("cannot run openssl, which makes the certificate for cases with TLS")?;
        ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
        account.give(&key)?;
        fs::set_permissions(&key, Permissions::from_mode(0o600))?;
        Ok(Self { certificate, key, _folder: folder })
    }

    /// A pooler that offers TLS with it.
    pub(super) fn offer(&self, setup: PoolerSetup) -> PoolerSetup {
        setup
            .setting("client_tls_sslmode", "allow")
            .setting("client_tls_key_file", &self.key.to_string_lossy())
            .setting("client_tls_cert_file", &self.certificate.to_string_lossy())
    }
}
