//! Clients that the database has vouched for, for the time when it gives no answer: in memory, and on disk for a start without it.
//!
//! A client that is revoked is refused by the signed list, whatever stands here; one that is disabled while nobody can be asked is
//! let in until somebody can.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use snapshot::BELIEVED_FOR_MS;
use store::Client;
use trust::{AccountId, ClientId, Role};

use crate::passwords::{decode, encode};

/// The most clients that are known; beyond that, those that were seen longest ago go, a tenth at a time.
const MOST_KNOWN: usize = 20_000;
/// A client that was noted so lately is not noted again: the file need not change for it, ms.
const NOTED_MS: u64 = 3_600_000;
/// The longest file that is read, bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const FILE: &str = "known-clients.json";

#[derive(Debug, Default)]
pub(crate) struct KnownClients {
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    clients: HashMap<ClientId, Known>,
    changed: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Known {
    client: ClientId,
    role: u8,
    identity: String,
    account: AccountId,
    seen_at_ms: u64,
}

impl KnownClients {
    /// With what an earlier start has left in the folder.
    pub(crate) fn new(folder: Option<PathBuf>, now_ms: u64) -> Self {
        let file = folder.map(|folder| folder.join(FILE));
        let text = file.as_ref().and_then(|file| disk::read(file, MAX_FILE_BYTES).ok().flatten());
        // A file that makes no sense is as if there were none.
        let known: Vec<Known> = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let believed = known.into_iter().filter(|known| known.is_believed(now_ms)).take(MOST_KNOWN);
        let clients = believed.map(|known| (known.client, known)).collect();
        Self { file, state: Mutex::new(State { clients, changed: false }) }
    }

    /// The database vouches for this client.
    pub(crate) fn note(&self, client: &Client, now_ms: u64) {
        let mut state = self.lock();
        let noted = state.clients.get(&client.client);
        if noted.is_some_and(|noted| now_ms.saturating_sub(noted.seen_at_ms) < NOTED_MS) {
            return;
        }
        if noted.is_none() && state.clients.len() >= MOST_KNOWN {
            let mut times: Vec<u64> = state.clients.values().map(|known| known.seen_at_ms).collect();
            let (_, tenth, _) = times.select_nth_unstable(MOST_KNOWN / 10);
            let tenth = *tenth;
            state.clients.retain(|_, known| known.seen_at_ms > tenth);
        }
        let known = Known {
            client: client.client,
            role: client.role.number(),
            identity: encode(client.identity.bytes()),
            account: client.account,
            seen_at_ms: now_ms,
        };
        state.clients.insert(client.client, known);
        state.changed = true;
    }

    /// The database has refused this client.
    pub(crate) fn forget(&self, client: ClientId) {
        let mut state = self.lock();
        if state.clients.remove(&client).is_some() {
            state.changed = true;
        }
    }

    /// What was known of a client, while the database gives no answer.
    pub(crate) fn find(&self, client: ClientId, now_ms: u64) -> Option<Client> {
        let known = self.lock().clients.get(&client).filter(|known| known.is_believed(now_ms)).cloned()?;
        Some(Client {
            client,
            role: Role::from_number(known.role)?,
            identity: trust::PublicIdentity::from_bytes(decode(&known.identity)?),
            account: known.account,
            disabled: false,
            revoked: false,
            account_disabled: false,
        })
    }

    /// Writes what is known to the disk, if it has changed.
    pub(crate) fn save(&self) {
        let Some(file) = &self.file else { return };
        let known: Vec<Known> = {
            let mut state = self.lock();
            if !std::mem::take(&mut state.changed) {
                return;
            }
            state.clients.values().cloned().collect()
        };
        let written =
            serde_json::to_vec(&known).map_err(Into::into).and_then(|text| disk::replace(file, &text));
        if let Err(error) = written {
            tracing::warn!(%error, file = %file.display(), "known clients could not be kept on disk");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_believed(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.seen_at_ms) <= BELIEVED_FOR_MS
    }
}

#[cfg(test)]
mod tests {
    use trust::Identity;
    use uuid::Uuid;

    use super::*;

    fn client(id: usize) -> Client {
        Client {
            client: ClientId(Uuid::from_u128(id as u128)),
            role: Role::Proxy,
            identity: *Identity::generate().unwrap().public(),
            account: AccountId::random(),
            disabled: false,
            revoked: false,
            account_disabled: false,
        }
    }

    #[test]
    fn a_client_that_was_vouched_for_is_known_for_a_week_also_after_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let known = KnownClients::new(Some(folder.path().to_owned()), 0);
        let (one, two) = (client(1), client(2));
        known.note(&one, 1_000);
        known.note(&two, 1_000);
        known.forget(two.client);
        known.save();
        let again = KnownClients::new(Some(folder.path().to_owned()), 2_000);
        let found = again.find(one.client, 2_000).unwrap();
        assert_eq!((found.identity, found.account, found.role), (one.identity, one.account, Role::Proxy));
        assert!(again.find(two.client, 2_000).is_none());
        assert!(again.find(one.client, 1_001 + BELIEVED_FOR_MS).is_none());
    }

    #[test]
    fn no_more_are_known_than_there_may_be_and_those_seen_last_stay() {
        let known = KnownClients::default();
        let one = client(0);
        for id in 0..MOST_KNOWN + 5 {
            known.note(&Client { client: ClientId(Uuid::from_u128(id as u128)), ..one.clone() }, id as u64);
        }
        let now_ms = MOST_KNOWN as u64;
        assert!(known.lock().clients.len() <= MOST_KNOWN);
        assert!(known.find(ClientId(Uuid::from_u128(MOST_KNOWN as u128)), now_ms).is_some());
        assert!(known.find(ClientId(Uuid::from_u128(5)), now_ms).is_none());
    }
}
