//! The signed key ring and revocation list: read by the shared reader, begun and kept in the database from here.

use cache::Publisher;
use std::sync::Arc;
use std::time::Duration;

use keys::{Book, Known, PublishError, Signer, publish_revocations};
use store::{Document, Store, StoreError};
use tokio::sync::Notify;
use tokio::time::sleep;
use trust::api::{ErrorCode, TrustAnswer};
use trust::{DocumentError, KeyRing, KeyState, NetworkId, RevocationList, RingKey, RootKey};

use crate::answer::Refusal;
use clock::unix_ms;

/// How often it is looked at whether the database has what it should have.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Rest after a look that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(crate) enum TendError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a signed document: {0}")]
    Document(#[from] DocumentError),
    #[error("the network has no key ring yet, and the root key that could sign one is not here")]
    NoRing,
    #[error("no key that signs tokens is here")]
    NoKey,
}

/// What is known of the keys, and what this api does for it.
pub(crate) struct Documents {
    network: NetworkId,
    root: Option<RootKey>,
    book: Book,
    hint: Arc<Notify>,
    changes: Publisher,
    pub(crate) signer: Signer,
}

impl Documents {
    pub(crate) fn new(
        network: NetworkId,
        root: Option<RootKey>,
        book: Book,
        hint: Arc<Notify>,
        changes: Publisher,
        signer: Signer,
    ) -> Self {
        Self { network, root, book, hint, changes, signer }
    }

    /// The newest that is known; refused before there are any.
    pub(crate) fn current(&self) -> Result<Arc<Known>, Refusal> {
        let known = self.book.known();
        if known.ring.number() == 0 {
            let waiting = "the network's key ring is not known yet: come back";
            return Err(Refusal::later(ErrorCode::Unavailable, waiting, 1_000));
        }
        Ok(known)
    }

    /// What is known, with or without a ring.
    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    /// There may be something that the reader has not read. Whoever is no client of this network may cause this: it stays here.
    pub(crate) fn hint(&self) {
        self.hint.notify_one();
    }

    /// Something has changed: the readers of all processes are to read now.
    pub(crate) fn changed(&self) {
        self.hint();
        self.changes.notify();
    }

    /// Keeps in the database what should be there. Never ends.
    pub(crate) async fn keep(&self, store: &Store) {
        let mut changes = self.book.watch();
        let mut failing = false;
        loop {
            changes.mark_unchanged();
            let rest = match self.tend(store).await {
                Ok(()) => {
                    failing = false;
                    LOOK_EVERY
                }
                Err(error) => {
                    // Once for each time that it begins.
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "the signed documents are not as they should be");
                    }
                    RETRY_AFTER
                }
            };
            tokio::select! {
                () = sleep(rest) => {}
                changed = changes.changed(), if !failing => if changed.is_err() { return },
            }
        }
    }

    /// Begins a network's documents, puts those back that a database has lost, and takes keys out that nobody needs any more.
    async fn tend(&self, store: &Store) -> Result<(), TendError> {
        let known = self.book.known();
        // Nothing is begun before the database has said what it has.
        let Some((ring, revocations)) = known.in_database else { return Ok(()) };
        if ring == 0 || revocations == 0 {
            store.ensure_network().await?;
        }
        if known.ring.number() == 0 && ring == 0 {
            let root = self.root.as_ref().ok_or(TendError::NoRing)?;
            let key = self.signer.first().ok_or(TendError::NoKey)?;
            let keys = vec![RingKey::new(*key.public_key(), KeyState::Signing)];
            let first = KeyRing::new(self.network, 1, unix_ms() / 1_000, keys)?.sign(root)?;
            self.publish(store, Document::KeyRing, 1, &first).await?;
        } else if ring < known.ring.number() {
            self.publish(store, Document::KeyRing, known.ring.number(), &known.documents.ring).await?;
        }
        if known.revocations.number() == 0 && revocations == 0 {
            let root = self.root.as_ref().ok_or(TendError::NoRing)?;
            let first = RevocationList::new(self.network, 1, unix_ms() / 1_000, [])?.sign(root)?;
            self.publish(store, Document::Revocations, 1, &first).await?;
        } else if revocations < known.revocations.number() {
            let number = known.revocations.number();
            self.publish(store, Document::Revocations, number, &known.documents.revocations).await?;
        }
        if let Some(root) = &self.root
            && let Some(tidied) = known.ring.tidied(unix_ms() / 1_000)
        {
            self.publish(store, Document::KeyRing, tidied.number(), &tidied.sign(root)?).await?;
        }
        Ok(())
    }

    /// Signs the list of revoked clients anew and publishes it. `false`: the root key is not here, the list is unchanged.
    pub(crate) async fn sign_revocations(&self, store: &Store) -> Result<bool, PublishError> {
        let Some(root) = &self.root else { return Ok(false) };
        let (_, text) = publish_revocations(store, root).await?;
        self.book.take_revocations(&text)?;
        Ok(true)
    }

    async fn publish(
        &self,
        store: &Store,
        document: Document,
        number: u64,
        text: &str,
    ) -> Result<(), TendError> {
        if store.put_trust_document(document, number, text.to_owned()).await? {
            match document {
                Document::KeyRing => self.book.take_ring(text)?,
                Document::Revocations => self.book.take_revocations(text)?,
            };
        }
        self.changed();
        Ok(())
    }
}

/// Both documents, as everybody may have them.
pub(crate) fn answer(known: &Known) -> TrustAnswer {
    TrustAnswer {
        key_ring: known.documents.ring.to_string(),
        revocations: known.documents.revocations.to_string(),
    }
}
