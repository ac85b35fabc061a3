//! The folder of a network: its keys, its files, and the account that its roles run as.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cluster::Account;
use trust::{CertificateRole, NetworkId, RootKey, TokenKey};

use crate::scratch::Scratch;

/// What the roles of one network have in common.
#[derive(Debug)]
pub(super) struct Home {
    pub account: Account,
    pub network: NetworkId,
    pub root: RootKey,
    pub token: TokenKey,
    scratch: Scratch,
}

impl Home {
    /// A folder with keys, and certificates for roles on loopback and at `further` addresses.
    pub(crate) fn make(further: impl Iterator<Item = Ipv4Addr>) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let scratch = Scratch::new("net", &account)?;
        let (root, token) = (RootKey::generate()?, TokenKey::generate()?);
        let home = Self { account, network: root.network(), root, token, scratch };
        let names = ["127.0.0.1", "localhost"].map(str::to_owned).into_iter();
        let names: Vec<String> = names.chain(further.map(|address| address.to_string())).collect();
        let now_ms = ::clock::unix_ms();
        for (name, role) in [("api", CertificateRole::Api), ("relay", CertificateRole::Relay)] {
            let certificate = home.root.issue(role, &names, now_ms)?;
            home.write(&format!("{name}.crt"), &certificate.chain_pem())?;
            home.write(&format!("{name}.key"), &certificate.key_pem())?;
        }
        home.write("root.key", &BASE64_URL_SAFE_NO_PAD.encode(home.root.seed()))?;
        home.write("token.key", &BASE64_URL_SAFE_NO_PAD.encode(home.token.seed()))?;
        Ok(home)
    }

    pub(crate) fn path(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A file that only the roles may read.
    pub(crate) fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.file(name);
        let write = || {
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            self.account.give(&path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// A folder that only the roles may enter.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.file(name);
        let make = || {
            fs::create_dir(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
            self.account.give(&path)
        };
        make().with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }
}
