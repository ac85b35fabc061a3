//! Both sides' TLS as it runs: made of settings and files, as a whole or not at all.

use super::authorities::ServerCheck;
use super::certificate;
use super::files::{FileError, Files, Identity, Which, roots};
use super::suites::{provider, versions};
use pgwire::scram::ChannelBinding;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::{CertificateDer, IpAddr, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};
use settings::diagnostic::Diagnostic;
use settings::pooler::{Loaded, SslMode, Tls};
use std::net::SocketAddr;
use std::sync::Arc;
use tls::{TlsError, TlsSession};

/// The name of PostgreSQL's protocol in ALPN.
const ALPN: &[u8] = b"postgresql";
/// Tickets for each client, to come back with a cheaper handshake. One is enough: a client that opens several
/// connections at once gets one on each.
const TICKETS: usize = 1;

/// TLS towards clients and servers. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct TlsContext {
    pub(crate) clients: Option<Arc<ToClients>>,
    pub(crate) servers: Option<Arc<ToServers>>,
}

/// What clients are offered.
#[derive(Debug)]
pub(crate) struct ToClients {
    config: Arc<ServerConfig>,
    binding: Option<ChannelBinding>,
    made_of: MadeOf,
}

/// What servers are asked for.
#[derive(Debug)]
pub(crate) struct ToServers {
    config: Arc<ClientConfig>,
    mode: SslMode,
    made_of: MadeOf,
}

/// What a side was made of: as long as it is the same, the side stays, and with it the keys of its tickets.
#[derive(Debug, PartialEq, Eq)]
struct MadeOf {
    tls: Tls,
    digest: [u8; 32],
}

/// What is wrong, and with which setting.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    which: Option<Which>,
    message: String,
}

/// Reads what the settings name. What has not changed since `before` stays as it is.
///
/// # Errors
/// A file that cannot be read or used, at the place of its setting; the old files stay in force.
pub fn load(loaded: &Loaded, before: &TlsContext) -> Result<TlsContext, Vec<Diagnostic>> {
    let general = &loaded.config.general;
    let clients = side(&general.client_tls, before.clients.as_ref(), |side| &side.made_of, ToClients::new);
    let servers = side(&general.server_tls, before.servers.as_ref(), |side| &side.made_of, ToServers::new);
    let mut faults = Vec::new();
    let mut take = |side: &'static str, tls: &Tls, fault: Fault| {
        let (setting, file) = match fault.which {
            Some(Which::Key) => ("key_file", &tls.key_file),
            Some(Which::Certificate) => ("cert_file", &tls.cert_file),
            Some(Which::Authorities) => ("ca_file", &tls.ca_file),
            None => ("sslmode", &None),
        };
        let setting = format!("{side}_tls_{setting}");
        let file = file.as_ref().map(|file| format!(" {}", file.display())).unwrap_or_default();
        let message = format!("TLS setup failed: `{setting}`{file}: {}", fault.message);
        faults.push(loaded.error_at(&setting, "tls-file", message));
    };
    match (clients, servers) {
        (Ok(clients), Ok(servers)) => return Ok(TlsContext { clients, servers }),
        (clients, servers) => {
            if let Err(fault) = clients {
                take("client", &general.client_tls, fault);
            }
            if let Err(fault) = servers {
                take("server", &general.server_tls, fault);
            }
        }
    }
    Err(faults)
}

fn side<S>(
    tls: &Tls,
    before: Option<&Arc<S>>,
    made_of: impl Fn(&S) -> &MadeOf,
    make: impl FnOnce(&Tls, Files) -> Result<S, Fault>,
) -> Result<Option<Arc<S>>, Fault> {
    if tls.mode == SslMode::Disable {
        return Ok(None);
    }
    let files = Files::read(tls)?;
    if let Some(before) = before {
        let known = made_of(before);
        if known.tls == *tls && known.digest == files.digest {
            return Ok(Some(Arc::clone(before)));
        }
    }
    make(tls, files).map(|side| Some(Arc::new(side)))
}

impl TlsContext {
    /// Servers would be reached in another way than with `other`.
    pub(crate) fn differs_to_servers(&self, other: &Self) -> bool {
        match (&self.servers, &other.servers) {
            (Some(one), Some(other)) => !Arc::ptr_eq(one, other),
            (None, None) => false,
            _ => true,
        }
    }
}

impl ToClients {
    fn new(tls: &Tls, files: Files) -> Result<Self, Fault> {
        let Files { identity, authorities, digest } = files;
        let provider = Arc::new(provider(tls));
        let key = certified_key(
            identity.ok_or_else(|| Fault::new("a key and a certificate are needed"))?,
            &provider,
        )?;
        let binding = key.cert.first().and_then(|certificate| certificate::channel_binding(certificate));
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(tls))
            .map_err(|error| Fault::new(error.to_string()))?;
        let builder = if tls.mode.verifies() {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(&authorities)?), provider)
                    .build()
                    .map_err(|error| Fault { which: Some(Which::Authorities), message: error.to_string() })?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        config.alpn_protocols = vec![ALPN.to_vec()];
        // As PgBouncer and PostgreSQL.
        config.ignore_client_order = true;
        // Tickets carry the session, so that none is kept here.
        config.ticketer = Ticketer::new().map_err(|error| Fault::new(error.to_string()))?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = TICKETS;
        Ok(Self { config: Arc::new(config), binding, made_of: MadeOf { tls: tls.clone(), digest } })
    }

    /// A connection whose handshake comes next. `direct`: without a request before it.
    pub(crate) fn accept(&self, direct: bool) -> Result<TlsSession, TlsError> {
        TlsSession::accept(Arc::clone(&self.config), direct)
    }

    /// What binds a login to a connection; none if the certificate allows none.
    pub(crate) fn binding(&self) -> Option<ChannelBinding> {
        self.binding.clone()
    }

    /// Each client has to show a certificate.
    pub(crate) fn checks_clients(&self) -> bool {
        self.made_of.tls.mode.verifies()
    }
}

impl ToServers {
    fn new(tls: &Tls, files: Files) -> Result<Self, Fault> {
        let Files { identity, authorities, digest } = files;
        let provider = Arc::new(provider(tls));
        let check = server_check(tls, authorities, &provider)?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(tls))
            .map_err(|error| Fault::new(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(check));
        let mut config = match identity {
            Some(identity) => {
                let key = certified_key(identity, &provider)?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)))
            }
            None => builder.with_no_client_auth(),
        };
        // PostgreSQL gives no tickets, and servers stay for an hour.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), mode: tls.mode, made_of: MadeOf { tls: tls.clone(), digest } })
    }

    /// A connection to the server that the settings name `host`; its first bytes come next.
    pub(crate) fn connect(&self, host: &str, peer: SocketAddr) -> Result<TlsSession, TlsError> {
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            // No certificate holds it, and where names are not compared it does not matter.
            Err(_) if self.mode == SslMode::VerifyFull => {
                let error = rustls::CertificateError::NotValidForName;
                return Err(TlsError::Rustls(rustls::Error::InvalidCertificate(error)));
            }
            Err(_) => ServerName::IpAddress(IpAddr::from(peer.ip())),
        };
        TlsSession::connect(Arc::clone(&self.config), name)
    }

    /// A server that has no TLS will not do.
    pub(crate) fn is_required(&self) -> bool {
        self.mode >= SslMode::Require
    }
}

fn server_check(
    tls: &Tls,
    authorities: Vec<CertificateDer<'static>>,
    provider: &CryptoProvider,
) -> Result<ServerCheck, Fault> {
    let algorithms = provider.signature_verification_algorithms;
    if !tls.mode.verifies() {
        return Ok(ServerCheck::none(algorithms));
    }
    let roots: RootCertStore = roots(&authorities)?;
    Ok(ServerCheck::by(algorithms, roots, authorities, tls.mode == SslMode::VerifyFull))
}

fn certified_key(identity: Identity, provider: &CryptoProvider) -> Result<CertifiedKey, Fault> {
    let key = provider.key_provider.load_private_key(identity.key).map_err(|error| Fault {
        which: Some(Which::Key),
        message: format!("is no key that can be used: {error}"),
    })?;
    let key = CertifiedKey::new(identity.chain, key);
    // Whatever else there may be about a certificate is for those to judge who see it.
    if let Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) = key.keys_match() {
        let message = "is not the key of the certificate".to_owned();
        return Err(Fault { which: Some(Which::Key), message });
    }
    Ok(key)
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self { which: None, message: message.into() }
    }
}

impl From<FileError> for Fault {
    fn from(error: FileError) -> Self {
        Self { which: Some(error.which), message: error.reason }
    }
}

#[cfg(test)]
mod tests;
