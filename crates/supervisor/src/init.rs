//! A new network: its root key, the key that signs tokens, certificates of the roles, ports and passwords.
//!
//! Running it again keeps keys, ports and passwords, and issues the certificates anew: they live for 90 days.

use crate::data::DataFolder;
use crate::error::UpError;
use crate::settings::{Secrets, Settings};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use clock::unix_ms;
use trust::{CertificateRole, JoinLink, NetworkId, RootKey, TokenKey};

const ROOT_KEY: &str = "root.key";
const TOKEN_KEY: &str = "token.key";
const ROOT_CERTIFICATE: &str = "root.crt";

/// How a network is made.
#[derive(Clone, Debug, Default)]
pub struct InitOptions {
    /// The name or address under which others reach this machine; without it, the network stays on loopback.
    pub address: Option<String>,
    /// A new network's ports are chosen from here on; without it, each from a usual one on.
    pub first_port: Option<u16>,
}

/// A network that is ready to be started.
#[derive(Debug)]
pub struct Initialised {
    /// Its folder.
    pub data: DataFolder,
    /// Its name.
    pub network: NetworkId,
    /// Where it listens.
    pub settings: Settings,
    /// Its passwords.
    pub secrets: Secrets,
    /// Where others join.
    pub link: JoinLink,
}

/// Makes what is missing.
///
/// # Errors
/// See [`UpError`].
pub fn init(data: &DataFolder, options: &InitOptions) -> Result<Initialised, UpError> {
    let root = key(data, ROOT_KEY, RootKey::generate, RootKey::from_seed, RootKey::seed)?;
    key(data, TOKEN_KEY, TokenKey::generate, TokenKey::from_seed, TokenKey::seed)?;
    let settings = Settings::load_or_write(data, options.address.as_deref(), options.first_port)?;
    let secrets = Secrets::load_or_write(data)?;
    let now_ms = unix_ms();
    data.write(ROOT_CERTIFICATE, &root.certificate(now_ms)?.pem())?;
    issue_certificates(data, &root, &settings, now_ms)?;
    let link = JoinLink { host: settings.address.clone(), port: settings.ports.api, network: root.network() };
    Ok(Initialised { data: data.clone(), network: root.network(), settings, secrets, link })
}

/// Roles that have a certificate, by the names of their files.
pub(crate) const CERTIFICATES: [(&str, CertificateRole); 3] =
    [("api", CertificateRole::Api), ("relay", CertificateRole::Relay), ("proxy", CertificateRole::Proxy)];

/// A new certificate, with a new key of its own, for each role; no other key is touched.
pub(crate) fn issue_certificates(
    data: &DataFolder,
    root: &RootKey,
    settings: &Settings,
    now_ms: u64,
) -> Result<(), UpError> {
    for (name, role) in CERTIFICATES {
        let certificate = root.issue(role, &settings.names(), now_ms)?;
        // A role that reads between the two finds that they do not belong together, and reads again.
        data.write(&format!("{name}.crt"), &certificate.chain_pem())?;
        data.write(&format!("{name}.key"), &certificate.key_pem())?;
    }
    Ok(())
}

/// The network's root key, if there is one.
pub(crate) fn root_key(data: &DataFolder) -> Result<Option<RootKey>, UpError> {
    let text = data.read(ROOT_KEY)?;
    text.map(|text| read_key(data, ROOT_KEY, &text, RootKey::from_seed)).transpose()
}

/// The key of that file; made and written if there is none. Never replaced: a network's name hangs on it.
fn key<K>(
    data: &DataFolder,
    name: &str,
    generate: impl Fn() -> Result<K, trust::KeyError>,
    read: impl Fn(&[u8]) -> Result<K, trust::KeyError>,
    seed: impl Fn(&K) -> &[u8; 32],
) -> Result<K, UpError> {
    if let Some(text) = data.read(name)? {
        return read_key(data, name, &text, read);
    }
    let key = generate()?;
    data.write(name, &format!("{}\n", BASE64_URL_SAFE_NO_PAD.encode(seed(&key))))?;
    Ok(key)
}

fn read_key<K>(
    data: &DataFolder,
    name: &str,
    text: &str,
    read: impl Fn(&[u8]) -> Result<K, trust::KeyError>,
) -> Result<K, UpError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim());
    let bytes = bytes.map_err(|_| data.damaged(name, "not a key in base64url"))?;
    read(&bytes).map_err(|error| data.damaged(name, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trust::RoleCertificate;

    #[test]
    fn running_it_again_keeps_keys_and_issues_certificates_anew() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::create(folder.path()).unwrap();
        let first = init(&data, &InitOptions::default()).unwrap();
        let files = |name: &str| data.read(name).unwrap().unwrap();
        let (root, token, certificate) = (files("root.key"), files("token.key"), files("api.crt"));
        let second = init(&data, &InitOptions::default()).unwrap();
        assert_eq!((first.network, &first.link), (second.network, &second.link));
        assert_eq!((root, token), (files("root.key"), files("token.key")));
        assert_ne!(certificate, files("api.crt"));
        let read = RoleCertificate::from_pem(&files("api.crt"), &files("api.key")).unwrap();
        assert!(trust::server_config(&read, &[b"http/1.1"]).is_ok());
    }

    #[test]
    fn a_damaged_key_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::create(folder.path()).unwrap();
        init(&data, &InitOptions::default()).unwrap();
        data.write("root.key", "AAAA\n").unwrap();
        let error = init(&data, &InitOptions::default()).unwrap_err();
        assert!(matches!(error, UpError::Damaged { .. }), "{error}");
        assert_eq!(data.read("root.key").unwrap().unwrap(), "AAAA\n");
    }
}
