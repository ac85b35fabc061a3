//! The signed key ring and revocation list: in memory, on disk, and in the database, the newest everywhere.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use store::{Document, Store, StoreError};
use trust::api::{ErrorCode, TrustAnswer};
use trust::{
    ClientId, DocumentError, KeyRing, KeyState, MAX_REVOKED, NetworkId, RevocationList, Revoked, RingKey,
    RootKey, TOKEN_LIFE_MS,
};

use crate::answer::Refusal;
use clock::unix_ms;

/// How often the database's documents are looked at: so stale is this process at most.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Rest after a look that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often a list is signed anew if another api was faster.
const SIGN_ATTEMPTS: usize = 5;
const RING_FILE: &str = "key-ring.signed";
const REVOCATIONS_FILE: &str = "revocations.signed";

/// Both documents, read and as text.
#[derive(Clone)]
pub(crate) struct Documents {
    pub(crate) ring: KeyRing,
    pub(crate) revocations: RevocationList,
    ring_text: String,
    revocations_text: String,
}

impl Documents {
    fn read(network: NetworkId, ring_text: String, revocations_text: String) -> Result<Self, DocumentError> {
        let ring = KeyRing::verify(&ring_text, network)?;
        let revocations = RevocationList::verify(&revocations_text, network)?;
        Ok(Self { ring, revocations, ring_text, revocations_text })
    }

    /// Each document, or the other's if that has a higher number.
    fn or_newer(mut self, other: &Self) -> Self {
        if other.ring.number() > self.ring.number() {
            self.ring = other.ring.clone();
            self.ring_text.clone_from(&other.ring_text);
        }
        if other.revocations.number() > self.revocations.number() {
            self.revocations = other.revocations.clone();
            self.revocations_text.clone_from(&other.revocations_text);
        }
        self
    }

    pub(crate) fn answer(&self) -> TrustAnswer {
        TrustAnswer { key_ring: self.ring_text.clone(), revocations: self.revocations_text.clone() }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a signed document: {0}")]
    Document(#[from] DocumentError),
    #[error("the network has no key ring yet, and the root key that could sign one is not here")]
    NoRing,
    #[error("another api signs faster than this one")]
    Contended,
}

/// Keeps the documents.
pub(crate) struct DocumentKeeper {
    network: NetworkId,
    root: Option<RootKey>,
    token_key: [u8; 32],
    folder: Option<PathBuf>,
    current: RwLock<Option<Arc<Documents>>>,
}

impl DocumentKeeper {
    pub(crate) fn new(
        network: NetworkId,
        root: Option<RootKey>,
        token_key: [u8; 32],
        folder: Option<PathBuf>,
    ) -> Self {
        let read = |name: &str| {
            folder
                .as_ref()
                .and_then(|folder| std::fs::read_to_string(folder.join(name)).ok())
                .unwrap_or_default()
        };
        let kept = Documents::read(network, read(RING_FILE), read(REVOCATIONS_FILE)).ok();
        Self { network, root, token_key, folder, current: RwLock::new(kept.map(Arc::new)) }
    }

    /// The newest that is known; refused before there are any.
    pub(crate) fn current(&self) -> Result<Arc<Documents>, Refusal> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        let waiting = "the network's key ring is not known yet: come back";
        current.ok_or_else(|| Refusal::later(ErrorCode::Unavailable, waiting, 1_000))
    }

    /// Keeps looking. Never ends.
    pub(crate) async fn keep(&self, store: &Store) {
        loop {
            let rest = match self.sync(store).await {
                Ok(()) => LOOK_EVERY,
                Err(error) => {
                    tracing::warn!(%error, "the signed documents could not be read");
                    RETRY_AFTER
                }
            };
            tokio::time::sleep(rest).await;
        }
    }

    pub(crate) async fn sync(&self, store: &Store) -> Result<(), SyncError> {
        let kept = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        let ring = store.trust_document(Document::KeyRing).await?;
        let revocations = store.trust_document(Document::Revocations).await?;
        let there = match (ring, revocations) {
            (Some((_, ring)), Some((_, revocations))) => Documents::read(self.network, ring, revocations)?,
            // Begin anew from what is on disk, or with the root key.
            _ => {
                store.ensure_network().await?;
                let first = match kept.as_deref() {
                    Some(kept) => kept.clone(),
                    None => self.first()?,
                };
                self.publish(store, &first).await?;
                first
            }
        };
        let newest = match kept.as_deref() {
            Some(kept) => there.or_newer(kept),
            None => there,
        };
        if !newest.ring.keys().iter().any(|key| key.public_key == self.token_key) {
            tracing::error!(
                "the key that signs tokens here is not in the network's key ring: nobody will believe them"
            );
        }
        self.take(newest);
        Ok(())
    }

    /// Signs the list of revoked clients anew and publishes it. `false`: the root key is not here, the list is unchanged.
    pub(crate) async fn sign_revocations(&self, store: &Store) -> Result<bool, SyncError> {
        let Some(root) = &self.root else { return Ok(false) };
        for _ in 0..SIGN_ATTEMPTS {
            self.sync(store).await?;
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(current) = current else { return Err(SyncError::NoRing) };
            let now_ms = unix_ms();
            // Whoever was revoked longer ago has no token that is still valid, and gets no new one.
            let since_ms = now_ms.saturating_sub(TOKEN_LIFE_MS + 86_400_000);
            let most = u32::try_from(MAX_REVOKED).unwrap_or(u32::MAX);
            let revoked = store.revoked_clients(since_ms, most).await?;
            let entries = revoked.into_iter().map(|(client, at_ms)| revoked_entry(client, at_ms));
            let number = current.revocations.number() + 1;
            let list = RevocationList::new(self.network, number, now_ms / 1_000, entries)?;
            let text = list.sign(root)?;
            if store.put_trust_document(Document::Revocations, number, text.clone()).await? {
                self.take(Documents { revocations: list, revocations_text: text, ..(*current).clone() });
                return Ok(true);
            }
        }
        Err(SyncError::Contended)
    }

    fn first(&self) -> Result<Documents, SyncError> {
        let root = self.root.as_ref().ok_or(SyncError::NoRing)?;
        let now_s = unix_ms() / 1_000;
        let keys = vec![RingKey::new(self.token_key, KeyState::Signing)];
        let ring = KeyRing::new(self.network, 1, now_s, keys)?;
        let revocations = RevocationList::new(self.network, 1, now_s, [])?;
        let (ring_text, revocations_text) = (ring.sign(root)?, revocations.sign(root)?);
        Ok(Documents { ring, revocations, ring_text, revocations_text })
    }

    async fn publish(&self, store: &Store, documents: &Documents) -> Result<(), StoreError> {
        let (ring, revocations) = (documents.ring_text.clone(), documents.revocations_text.clone());
        store.put_trust_document(Document::KeyRing, documents.ring.number(), ring).await?;
        store.put_trust_document(Document::Revocations, documents.revocations.number(), revocations).await?;
        Ok(())
    }

    /// Takes what is newer of these documents, and keeps them on disk.
    fn take(&self, documents: Documents) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Others may have come since these were read.
        let documents = match current.as_deref() {
            Some(kept) => documents.or_newer(kept),
            None => documents,
        };
        let is_same = current.as_ref().is_some_and(|kept| {
            kept.ring_text == documents.ring_text && kept.revocations_text == documents.revocations_text
        });
        if is_same {
            return;
        }
        if let Some(folder) = &self.folder {
            let files = [(RING_FILE, &documents.ring_text), (REVOCATIONS_FILE, &documents.revocations_text)];
            for (name, text) in files {
                let fresh = folder.join(format!("{name}.new"));
                let written =
                    std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, folder.join(name)));
                if let Err(error) = written {
                    tracing::warn!(%error, name, "a signed document could not be kept on disk");
                }
            }
        }
        *current = Some(Arc::new(documents));
    }
}

fn revoked_entry(client: ClientId, at_ms: u64) -> Revoked {
    // The whole second counts: a token of the same second may be older.
    Revoked { client, before_s: at_ms / 1_000 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look at the database that was under way while a list was signed here brought the older one back.
    #[test]
    fn what_is_newer_is_never_replaced_by_what_was_read_before_it() {
        let (root, token_key) = (RootKey::generate().unwrap(), trust::TokenKey::generate().unwrap());
        let network = root.network();
        let list = RevocationList::new(network, 2, 1, []).unwrap();
        let revocations_text = list.sign(&root).unwrap();
        let keeper = DocumentKeeper::new(network, Some(root), *token_key.public_key(), None);
        let older = keeper.first().unwrap();
        keeper.take(Documents { revocations: list, revocations_text, ..older.clone() });
        keeper.take(older);
        assert_eq!(keeper.current().unwrap().revocations.number(), 2);
    }
}
