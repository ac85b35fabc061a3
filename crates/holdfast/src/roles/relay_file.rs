//! A relay from its file: `relay.toml`.

use anyhow::Context as _;
use cache::{CacheConfig, Channel};
use keys::{CertificateFiles, CertificateKeeper, Reader};
use relay::{Config, Database, Resources, Status, Stop};
use rustls::ServerConfig;
use serde::Deserialize;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::DatabaseConfig;
use tokio::sync::watch;
use trust::{CertificateError, NetworkId, RelayId, RoleCertificate};

const ID_FILE: &str = "relay-id";
/// The longest such file that is read.
const MAX_ID_BYTES: u64 = 256;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelayFile {
    /// The network's name.
    network: NetworkId,
    /// PEM: the role's certificate, then the root's.
    certificate: PathBuf,
    /// PEM: its key.
    certificate_key: PathBuf,
    /// Where hints of changes come from; in process without.
    #[serde(default)]
    cache: CacheConfig,
    /// The way to the database.
    database: DatabaseConfig,
    /// Everything else.
    #[serde(default)]
    relay: Config,
}

pub(crate) fn read(path: &Path) -> anyhow::Result<RelayFile> {
    Ok(store::config::read_toml(path)?)
}

/// Runs until it has drained after `drain`, or until `stop`.
pub(crate) async fn run(
    file: RelayFile,
    drain: impl Future<Output = ()>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let RelayFile { network, certificate, certificate_key, cache, database, relay: config } = file;
    let files = CertificateFiles { certificate, key: certificate_key };
    let certificate = CertificateKeeper::open(files, server_config)?;
    let store = database.open(network)?;
    let reader = Reader::open(store.clone(), network, Some(&config.state_folder))?;
    let cache = cache.open(network)?;
    let hint = reader.hint();
    let relay = relay_id(&config.state_folder)?;
    let resources = Resources {
        relay,
        tls: certificate.tls(),
        certificate: certificate.certificate(),
        keys: reader.book().watch(),
        unknown_key: reader.hint(),
        records: Database::new(store, relay),
        status: watch::Sender::new(Status::default()),
    };
    let (told, stopped) = watch::channel(Stop::No);
    let run = relay::run(config, resources, stopped);
    let told_to = async {
        tokio::pin!(stop);
        tokio::select! {
            () = drain => drop(told.send_replace(Stop::Drain)),
            () = &mut stop => return,
        }
        stop.await;
    };
    tokio::pin!(run);
    tokio::select! {
        ended = &mut run => return Ok(ended?),
        () = reader.run() => {}
        () = cache.wake(Channel::CHANGES, &hint) => {}
        () = certificate.run() => {}
        () = told_to => {}
    }
    told.send_replace(Stop::Now);
    Ok(run.await?)
}

/// Hellos sign keying material of their connection.
fn server_config(certificate: &RoleCertificate) -> Result<Arc<ServerConfig>, CertificateError> {
    let mut tls = Arc::unwrap_or_clone(trust::server_config(certificate, link::RELAY_ALPN)?);
    tls.key_log = tls::exporting();
    Ok(Arc::new(tls))
}

/// Who this relay is, made once for its state folder.
fn relay_id(folder: &Path) -> anyhow::Result<RelayId> {
    let path = folder.join(ID_FILE);
    let read = disk::read_text(&path, MAX_ID_BYTES);
    match read.with_context(|| format!("cannot read {}", path.display()))? {
        Some(text) => text.trim().parse().with_context(|| format!("{} is damaged", path.display())),
        None => {
            let id = RelayId::random();
            let written = disk::replace(&path, id.to_string().as_bytes());
            written.with_context(|| format!("cannot write {}", path.display()))?;
            Ok(id)
        }
    }
}
