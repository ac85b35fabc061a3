//! The shared reader: one a process and network.

use crate::folder::Folder;
use crate::known::Known;
use clock::unix_ms;
use membership::lease::{Cause, Leases, Refusal};
use overload::Backoff;
use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{ChangeCursor, Changes, ClientRefusal, ClientStanding, Document, Store, StoreError};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use trust::{ClientId, DocumentError, KeyRing, NetworkId, REFUSED_FOR_MS, RevocationList};

/// The longest rest between two reads while the database answers: the greatest time after which a change is heard.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// A hint makes it read at once, but not more often than this.
pub const LEAST_INTERVAL: Duration = Duration::from_secs(2);
/// The first rest after a read without an answer; it doubles up to [`INTERVAL`].
const FIRST_REST: Duration = Duration::from_secs(4);
/// A cursor is good for as long as the log is kept (7 days), less a day.
const CURSOR_LIFE_MS: u64 = 6 * 86_400_000;
/// So often everything is read, whatever the cursor says.
const WHOLE_EVERY_MS: u64 = 3_600_000;

/// Where a reader asks.
pub trait Source: Send + Sync + 'static {
    /// See [`Store::changes`].
    fn changes(
        &self,
        cursor: Option<ChangeCursor>,
        refused_since_ms: u64,
    ) -> impl Future<Output = Result<Changes, StoreError>> + Send;

    /// See [`Store::trust_document`].
    fn document(
        &self,
        document: Document,
    ) -> impl Future<Output = Result<Option<(u64, String)>, StoreError>> + Send;
}

impl Source for Store {
    async fn changes(&self, cursor: Option<ChangeCursor>, since_ms: u64) -> Result<Changes, StoreError> {
        Self::changes(self, cursor, since_ms).await
    }

    async fn document(&self, document: Document) -> Result<Option<(u64, String)>, StoreError> {
        self.trust_document(document).await
    }
}

/// What is known, for everybody in this process. Clones share it.
#[derive(Clone, Debug)]
pub struct Book {
    known: Arc<watch::Sender<Arc<Known>>>,
    folder: Option<Folder>,
}

impl Book {
    /// With what the folder has of an earlier start.
    fn open(network: NetworkId, folder: Option<&Path>) -> io::Result<Self> {
        let invalid = |error: DocumentError| io::Error::other(error.to_string());
        let mut known = Known::nothing(network).map_err(invalid)?;
        let folder = folder.map(Folder::create).transpose()?;
        if let Some(folder) = &folder {
            // A document that does not hold is as good as none.
            if let Some(text) = folder.ring()?
                && let Ok(ring) = KeyRing::verify(&text, network)
            {
                (known.ring, known.documents.ring) = (Arc::new(ring), text.into());
            }
            if let Some(text) = folder.revocations()?
                && let Ok(list) = RevocationList::verify(&text, network)
            {
                (known.revocations, known.documents.revocations) = (Arc::new(list), text.into());
            }
            let (leases, answered_at_ms) = folder.refused()?;
            (known.leases, known.answered_at_ms) = (Arc::new(leases), answered_at_ms);
        }
        Ok(Self { known: Arc::new(watch::Sender::new(Arc::new(known))), folder })
    }

    /// What is known now.
    #[must_use]
    pub fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.borrow())
    }

    /// What is known, as it changes. That the same was heard again is no change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Known>> {
        self.known.subscribe()
    }

    /// Takes a key ring, if it is newer, and keeps it on disk. `false`: it is not.
    ///
    /// # Errors
    /// It does not hold.
    pub fn take_ring(&self, text: &str) -> Result<bool, DocumentError> {
        let ring = KeyRing::verify(text, self.known().network)?;
        let is_newer = self.change(|known| {
            let is_newer = ring.number() > known.ring.number();
            if is_newer {
                tracing::info!(number = ring.number(), "a new key ring");
                (known.ring, known.documents.ring) = (Arc::new(ring), text.into());
            }
            is_newer
        });
        if is_newer {
            self.keep("key ring", |folder| folder.write_ring(text));
        }
        Ok(is_newer)
    }

    /// Takes a revocation list, if it is newer, and keeps it on disk. `false`: it is not.
    ///
    /// # Errors
    /// It does not hold.
    pub fn take_revocations(&self, text: &str) -> Result<bool, DocumentError> {
        let list = RevocationList::verify(text, self.known().network)?;
        let is_newer = self.change(|known| {
            let is_newer = list.number() > known.revocations.number();
            if is_newer {
                tracing::info!(number = list.number(), clients = list.len(), "a new revocation list");
                (known.revocations, known.documents.revocations) = (Arc::new(list), text.into());
            }
            is_newer
        });
        if is_newer {
            self.keep("revocation list", |folder| folder.write_revocations(text));
        }
        Ok(is_newer)
    }

    /// The database has answered.
    fn answer(&self, changes: &Changes, now_ms: u64) {
        let changed = self.change(|known| {
            known.answered_at_ms = Some(now_ms);
            let in_database = Some((changes.ring, changes.revocations));
            // A database that knows less than was known here takes no refusal back.
            let is_whole = changes.is_whole
                && changes.ring >= known.ring.number()
                && changes.revocations >= known.revocations.number();
            let mut is_changed = std::mem::replace(&mut known.in_database, in_database) != in_database;
            if is_whole || !changes.clients.is_empty() {
                // One that was refused and let in again between two reads is no change of ours; but somebody may remember the refusal.
                is_changed |= !is_whole && changes.clients.iter().any(|one| one.refused.is_none());
                let mut leases = Leases::clone(&known.leases);
                let heard = changes.clients.iter().map(heard);
                if is_whole {
                    let refused = heard.filter_map(|(client, refusal)| Some((client, refusal?)));
                    leases.answer_whole(refused, now_ms);
                } else {
                    leases.answer_changes(heard, now_ms);
                }
                if leases != *known.leases {
                    known.leases = Arc::new(leases);
                    is_changed = true;
                }
            }
            is_changed
        });
        if changed || changes.is_whole {
            let known = self.known();
            self.keep("refused clients", |folder| folder.write_refused(&known.leases, known.answered_at_ms));
        }
    }

    /// Changes what is known; whoever waits is told only if `work` says that something has changed.
    fn change(&self, work: impl FnOnce(&mut Known) -> bool) -> bool {
        self.known.send_if_modified(|known| work(Arc::make_mut(known)))
    }

    fn keep(&self, what: &str, write: impl FnOnce(&Folder) -> io::Result<()>) {
        if let Some(Err(error)) = self.folder.as_ref().map(write) {
            // It holds in memory; the next start without the database knows an older one.
            tracing::warn!(what, %error, "not kept on this disk");
        }
    }
}

/// Reads what has changed, again and again, and puts it into the [`Book`].
#[derive(Debug)]
pub struct Reader<S = Store> {
    source: S,
    book: Book,
    hint: Arc<Notify>,
    cursor: Option<Cursor>,
}

#[derive(Clone, Copy, Debug)]
struct Cursor {
    at: ChangeCursor,
    read_at_ms: u64,
    whole_at_ms: u64,
}

/// Why a read came to nothing.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a signed document: {0}")]
    Document(#[from] DocumentError),
}

impl<S: Source> Reader<S> {
    /// With what the folder has of an earlier start; without any, nobody is let in until the database has answered.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(source: S, network: NetworkId, folder: Option<&Path>) -> io::Result<Self> {
        let book = Book::open(network, folder)?;
        Ok(Self { source, book, hint: Arc::new(Notify::new()), cursor: None })
    }

    /// What it knows.
    #[must_use]
    pub fn book(&self) -> Book {
        self.book.clone()
    }

    /// `notify_one` on this says: read now. It carries nothing; if it is lost, the interval finds what there is.
    #[must_use]
    pub fn hint(&self) -> Arc<Notify> {
        Arc::clone(&self.hint)
    }

    /// Reads again and again; never ends. One read at a time.
    pub async fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            match self.read().await {
                Ok(()) => {
                    backoff.reset();
                    sleep(LEAST_INTERVAL).await;
                    let rest = (INTERVAL - LEAST_INTERVAL).mul_f64(0.5 + fastrand::f64() / 2.0);
                    tokio::select! {
                        () = sleep(rest) => {}
                        () = self.hint.notified() => {}
                    }
                }
                Err(error) => {
                    // Once for each time that it begins to fail.
                    if backoff.failures() == 0 {
                        tracing::warn!(%error, "the network's keys and changes cannot be read; what was heard last holds");
                    }
                    // No hint shortens this: whoever gives it cannot know that nobody answers.
                    sleep(backoff.failed(FIRST_REST, INTERVAL, fastrand::u64(..))).await;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<(), ReadError> {
        let now_ms = unix_ms();
        let cursor = self.cursor.filter(|cursor| {
            now_ms.saturating_sub(cursor.read_at_ms) < CURSOR_LIFE_MS
                && now_ms.saturating_sub(cursor.whole_at_ms) < WHOLE_EVERY_MS
        });
        let since_ms = now_ms.saturating_sub(REFUSED_FOR_MS);
        let changes = self.source.changes(cursor.map(|cursor| cursor.at), since_ms).await?;
        // First who is refused: a document that does not hold keeps nobody in.
        self.book.answer(&changes, now_ms);
        let whole_at_ms = match cursor {
            Some(cursor) if !changes.is_whole => cursor.whole_at_ms,
            _ => now_ms,
        };
        self.cursor = Some(Cursor { at: changes.cursor, read_at_ms: now_ms, whole_at_ms });
        let known = self.book.known();
        if changes.ring > known.ring.number()
            && let Some((_, text)) = self.source.document(Document::KeyRing).await?
        {
            self.book.take_ring(&text)?;
        }
        if changes.revocations > known.revocations.number()
            && let Some((_, text)) = self.source.document(Document::Revocations).await?
        {
            self.book.take_revocations(&text)?;
        }
        Ok(())
    }
}

/// What the database says of a client, as its lease takes it.
fn heard(standing: &ClientStanding) -> (ClientId, Option<Refusal>) {
    let refusal = standing.refused.map(|(why, since_ms)| Refusal {
        cause: match why {
            ClientRefusal::Revoked => Cause::Revoked,
            ClientRefusal::Disabled => Cause::Disabled,
            ClientRefusal::AccountDisabled => Cause::AccountDisabled,
        },
        until_ms: since_ms.saturating_add(REFUSED_FOR_MS),
    });
    (standing.client, refusal)
}

#[cfg(test)]
mod tests;
