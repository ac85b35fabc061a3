//! A relay of the bench: a real one, whose records go nowhere.

use super::Seeds;
use super::part::{Standing, tell};
use anyhow::Context as _;
use clock::unix_ms;
use relay::{Beat, Beaten, Config, Keys, Presence, RecordError, Records, Resources, Status, Stop, Usage};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use trust::{CertificateRole, KeyRing, KeyState, RelayId, RevocationList, RingKey, RootKey, TokenKey};

const TELL: Duration = Duration::from_millis(250);

struct Nowhere;

impl Records for Nowhere {
    async fn beat(&self, _beat: Beat) -> Result<Beaten, RecordError> {
        Ok(Beaten::Known)
    }

    async fn presence(&self, _epoch: u64, _presence: &[Presence]) -> Result<(), RecordError> {
        Ok(())
    }

    async fn usage(&self, _epoch: u64, _usage: &[Usage]) -> Result<(), RecordError> {
        Ok(())
    }
}

pub(super) async fn run(
    seeds: Seeds,
    address: SocketAddr,
    state: PathBuf,
    admissions_per_second: u32,
) -> anyhow::Result<()> {
    let root = RootKey::from_seed(&seeds.root)?;
    let token_key = TokenKey::from_seed(&seeds.tokens)?;
    let (network, now_s) = (root.network(), unix_ms() / 1_000);
    let ring_key = RingKey::new(*token_key.public_key(), KeyState::Signing);
    let ring = KeyRing::new(network, 1, now_s, vec![ring_key])?;
    let keys = Keys::new(network, ring, RevocationList::new(network, 1, now_s, Vec::new())?);
    let certificate = root.issue(CertificateRole::Relay, &[address.ip().to_string()], unix_ms())?;
    let mut tls = Arc::unwrap_or_clone(trust::server_config(&certificate, &[link::ALPN])?);
    tls.key_log = tls::exporting();
    let config = Config { listen: address, state_folder: state, admissions_per_second, ..Config::default() };
    let (status, mut standing) = watch::channel(Status::default());
    let (_keep_keys, keys) = watch::channel(Arc::new(keys));
    let (_keep_tls, tls) = watch::channel(Arc::new(tls));
    let (_keep_certificate, certificate) = watch::channel(Arc::new(certificate));
    let (_keep_running, stop) = watch::channel(Stop::No);
    let resources = Resources {
        relay: RelayId::random(),
        tls,
        certificate,
        keys,
        unknown_key: Arc::new(Notify::new()),
        records: Nowhere,
        status,
    };
    let telling = async move {
        // The first is told once it listens.
        while standing.changed().await.is_ok() {
            let connected = standing.borrow_and_update().providers;
            tell(Standing { connected, ..Standing::default() })?;
            tokio::time::sleep(TELL).await;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = relay::run(config, resources, stop) => ended.context("the relay"),
        told = telling => told,
    }
}
