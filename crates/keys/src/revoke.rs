//! The list of revoked clients, signed anew.

use clock::unix_ms;
use store::{Document, Store, StoreError};
use trust::{ClientId, DocumentError, MAX_REVOKED, REFUSED_FOR_MS, RevocationList, Revoked, RootKey};

/// How often a document is signed anew if another process was faster.
pub(crate) const SIGN_ATTEMPTS: usize = 5;

/// Why a document was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What stands there, or would.
    #[error("a signed document: {0}")]
    Document(#[from] DocumentError),
    /// Others publish at the same time.
    #[error("another process signs faster than this one: try again")]
    Contended,
}

/// Signs the list of revoked clients anew, with everybody in it whose tokens may still live, and publishes it. The text, and
/// its number.
///
/// # Errors
/// See [`PublishError`]; the same may be tried again.
pub async fn publish_revocations(store: &Store, root: &RootKey) -> Result<(u64, String), PublishError> {
    let network = root.network();
    for _ in 0..SIGN_ATTEMPTS {
        let number = store.trust_document(Document::Revocations).await?.map_or(0, |(number, _)| number) + 1;
        let now_ms = unix_ms();
        let most = u32::try_from(MAX_REVOKED).unwrap_or(u32::MAX);
        let revoked = store.revoked_clients(now_ms.saturating_sub(REFUSED_FOR_MS), most).await?;
        let entries = revoked.into_iter().map(|(client, at_ms)| entry(client, at_ms));
        let list = RevocationList::new(network, number, now_ms / 1_000, entries)?;
        let text = list.sign(root)?;
        if store.put_trust_document(Document::Revocations, number, text.clone()).await? {
            return Ok((number, text));
        }
    }
    Err(PublishError::Contended)
}

fn entry(client: ClientId, at_ms: u64) -> Revoked {
    // The whole second counts: a token of the same second may be older.
    Revoked { client, before_s: at_ms / 1_000 + 1 }
}
