//! The records and the keys in the network's database.

use crate::contracts::Usage;
use crate::door::Keys;
use crate::elsewhere::MAX_PEERS;
use crate::hub::Presence;
use crate::records::{Beat, Beaten, RecordError, Records};
use clock::unix_ms;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Connected, Disconnected, Document, Store, StoreError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use trust::{DocumentError, KeyRing, NetworkId, RelayId, RevocationList};

/// How often the key ring and the revocations are read: the greatest time after which a revocation holds.
pub const KEYS_INTERVAL: Duration = Duration::from_secs(10);
/// A client that shows an unknown key makes them be read at once, but not more often than this.
const LEAST_INTERVAL: Duration = Duration::from_secs(2);
/// Another relay has so long to answer when this one looks for it.
const REACH_LIMIT: Duration = Duration::from_secs(2);
const KEY_RING_FILE: &str = "keyring.jws";
const REVOCATIONS_FILE: &str = "revocations.jws";

/// Records of one relay.
#[derive(Clone, Debug)]
pub struct Database {
    store: Store,
    relay: RelayId,
}

impl Database {
    /// Records of this relay go to this store.
    #[must_use]
    pub const fn new(store: Store, relay: RelayId) -> Self {
        Self { store, relay }
    }
}

impl Records for Database {
    async fn beat(&self, beat: Beat) -> Result<Beaten, RecordError> {
        let Beat { epoch, started_at_ms, address, connections, draining } = beat;
        let relay = self.relay;
        let beat = store::Beat { relay, epoch, address, connections, draining, started_at_ms };
        let beaten = match self.store.beat(beat).await? {
            store::Beaten::Known => Beaten::Known,
            store::Beaten::New => Beaten::New,
            store::Beaten::Superseded => {
                return Err("a later start of this relay beats already; is it started twice?".into());
            }
        };
        // What an earlier start has left is closed a piece at a time, by a beat that follows: this one has been taken.
        if let Err(error) = self.store.close_earlier_connections(relay, epoch).await {
            tracing::debug!(%error, "connections of earlier starts are not closed yet");
        }
        Ok(beaten)
    }

    async fn tell_of_others(&self) -> Result<(), RecordError> {
        let network = self.store.network();
        let asked = self.store.relays_in_doubt(self.relay).await?;
        let mut looking: JoinSet<_> = asked
            .into_iter()
            .map(|(relay, address)| async move {
                (relay, client::reach(&address, network, REACH_LIMIT).await == client::Reach::Answers)
            })
            .collect();
        let mut words = Vec::new();
        while let Some(looked) = looking.join_next().await {
            words.extend(looked);
        }
        if !words.is_empty() {
            self.store.tell_of_relays(self.relay, words).await?;
        }
        Ok(())
    }

    async fn presence(&self, epoch: u64, presence: &[Presence]) -> Result<(), RecordError> {
        let (came, went) = summarize(presence);
        Ok(self.store.record_connections(self.relay, epoch, came, went).await?)
    }

    async fn relays(&self) -> Result<Vec<String>, RecordError> {
        let most = u32::try_from(MAX_PEERS).unwrap_or(u32::MAX);
        Ok(self.store.relay_addresses(most).await?)
    }

    async fn usage(&self, epoch: u64, usage: &[Usage]) -> Result<(), RecordError> {
        let reports = usage.iter().map(|&Usage { contract, sequence, bytes }| store::Usage {
            contract,
            sequence,
            bytes,
        });
        Ok(self.store.record_usage(self.relay, epoch, reports.collect()).await?)
    }
}

/// Of each start of a client, what holds in the end.
fn summarize(presence: &[Presence]) -> (Vec<Connected>, Vec<Disconnected>) {
    let mut last: HashMap<_, (Option<Connected>, Option<Disconnected>)> = HashMap::new();
    for event in presence {
        match event {
            Presence::Came { client, epoch, software, at_ms } => {
                let software = software.to_string();
                let came = Connected { client: *client, epoch: *epoch, software, at_ms: *at_ms };
                last.insert((*client, *epoch), (Some(came), None));
            }
            Presence::Left { client, epoch, cause, at_ms } => {
                let left = Disconnected { client: *client, epoch: *epoch, cause: *cause, at_ms: *at_ms };
                match last.entry((*client, *epoch)) {
                    Entry::Occupied(mut entry) => entry.get_mut().1 = Some(left),
                    Entry::Vacant(entry) => drop(entry.insert((None, Some(left)))),
                }
            }
        }
    }
    let (came, went): (Vec<_>, Vec<_>) = last.into_values().unzip();
    (came.into_iter().flatten().collect(), went.into_iter().flatten().collect())
}

/// Keeps the network's keys: from this disk at the start, from the database since, and the last that is known for as long as
/// the database is gone.
#[derive(Debug)]
pub struct KeyKeeper {
    store: Store,
    network: NetworkId,
    folder: PathBuf,
    keys: watch::Sender<Arc<Keys>>,
    unknown_key: Arc<Notify>,
}

/// What a signed document was not good for.
#[derive(Debug, thiserror::Error)]
enum KeysError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("the keys cannot be kept on this disk: {0}")]
    Io(#[from] io::Error),
}

impl KeyKeeper {
    /// With what the folder has of an earlier start; without any, nobody is let in until the database has answered.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn new(store: Store, network: NetworkId, folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let ring = read(&folder.join(KEY_RING_FILE))?.and_then(|text| KeyRing::verify(&text, network).ok());
        let revocations = read(&folder.join(REVOCATIONS_FILE))?
            .and_then(|text| RevocationList::verify(&text, network).ok());
        let none = |error: DocumentError| io::Error::other(error.to_string());
        let keys = Keys {
            network,
            ring: ring.map_or_else(|| KeyRing::new(network, 0, 0, Vec::new()), Ok).map_err(none)?,
            revocations: revocations
                .map_or_else(|| RevocationList::new(network, 0, 0, []), Ok)
                .map_err(none)?,
        };
        let (keys, _) = watch::channel(Arc::new(keys));
        Ok(Self { store, network, folder: folder.to_owned(), keys, unknown_key: Arc::new(Notify::new()) })
    }

    /// What is known, as it changes.
    #[must_use]
    pub fn keys(&self) -> watch::Receiver<Arc<Keys>> {
        self.keys.subscribe()
    }

    /// To be told of keys that are not known.
    #[must_use]
    pub fn unknown_key(&self) -> Arc<Notify> {
        Arc::clone(&self.unknown_key)
    }

    /// Reads them again and again; never ends.
    pub async fn run(self) {
        let mut failing = false;
        loop {
            match self.look().await {
                Ok(()) => failing = false,
                Err(error) => {
                    // Once for each time that it begins to fail.
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "the network's keys cannot be read; the last that are known hold");
                    }
                }
            }
            tokio::time::sleep(LEAST_INTERVAL).await;
            let rest = (KEYS_INTERVAL - LEAST_INTERVAL).mul_f64(0.5 + fastrand::f64() / 2.0);
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = self.unknown_key.notified() => {}
            }
        }
    }

    async fn look(&self) -> Result<(), KeysError> {
        let mut keys = Keys::clone(&self.keys.borrow());
        let mut changed = false;
        if let Some((number, text)) = self.store.trust_document(Document::KeyRing).await?
            && number > keys.ring.number()
            && keys.ring.replace(KeyRing::verify(&text, self.network)?)?
        {
            write(&self.folder.join(KEY_RING_FILE), &text)?;
            changed = true;
        }
        if let Some((number, text)) = self.store.trust_document(Document::Revocations).await?
            && number > keys.revocations.number()
            && keys.revocations.replace(RevocationList::verify(&text, self.network)?)?
        {
            write(&self.folder.join(REVOCATIONS_FILE), &text)?;
            changed = true;
        }
        if changed {
            let (ring, revocations) = (keys.ring.number(), keys.revocations.number());
            tracing::info!(ring, revocations, at_ms = unix_ms(), "the network's keys have changed");
            self.keys.send_replace(Arc::new(keys));
        }
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, text)?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trust::ClientId;
    use uuid::Uuid;

    fn came(client: u128, at_ms: u64) -> Presence {
        Presence::Came { client: ClientId(Uuid::from_u128(client)), epoch: 1, software: "x".into(), at_ms }
    }

    fn left(client: u128, at_ms: u64) -> Presence {
        Presence::Left { client: ClientId(Uuid::from_u128(client)), epoch: 1, cause: 5, at_ms }
    }

    #[test]
    fn of_many_comings_and_goings_the_last_holds() {
        let (came, went) =
            summarize(&[came(1, 1), left(1, 2), came(1, 3), came(2, 4), left(2, 5), left(3, 6)]);
        let mut came: Vec<_> = came.iter().map(|row| (row.client.0.as_u128(), row.at_ms)).collect();
        let mut went: Vec<_> = went.iter().map(|row| (row.client.0.as_u128(), row.at_ms)).collect();
        came.sort_unstable();
        went.sort_unstable();
        assert_eq!(came, [(1, 3), (2, 4)]);
        assert_eq!(went, [(2, 5), (3, 6)]);
    }
}
