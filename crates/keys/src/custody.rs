//! What the holder of the root key does with the network's keys: look, rotate, revoke. Where each of it stands is in the database
//! and in the signed ring, so whatever was interrupted is taken up again by asking for the same once more.

mod rotate;
mod secrets;
mod status;

pub use rotate::{RotateOptions, Rotated, Step};
pub use status::{KeyLine, KeysStatus, VerifierLine};

use crate::revoke::{PublishError, publish_revocations};
use clock::unix_ms;
use secrets::Secrets;
use std::path::PathBuf;
use std::time::Duration;
use store::{ConfigError, Document, Store, StoreError, Verifier};
use tokio::time::{Instant, sleep};
use trust::{ClientId, DocumentError, KeyError, KeyRing, RevocationList, RootKey, RotationError};

/// A relay or api that has not beaten for so long, ms, is not waited for: they beat every 5 s.
pub const VERIFIER_SILENCE_MS: u64 = 30_000;
/// How often it is looked at who has seen what.
const LOOK: Duration = Duration::from_secs(1);

/// Holds the root key, and reaches the database as an api does.
#[derive(Debug)]
pub struct Custody {
    store: Store,
    root: RootKey,
    secrets: Secrets,
}

/// Why it was not done. Whatever was begun can be taken up again.
#[derive(Debug, thiserror::Error)]
pub enum CustodyError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Files.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// What is signed there.
    #[error("a signed document: {0}")]
    Document(#[from] DocumentError),
    /// The ring does not allow it.
    #[error(transparent)]
    Rotation(#[from] RotationError),
    /// Another process signs too.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// No new key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Nothing was ever signed.
    #[error("the network has no key ring yet: start its api once, with the root key")]
    NoRing,
    /// There is no folder for further keys.
    #[error(
        "there is no folder for a new key: name one as `token_keys` in the api's file, the same on all its machines"
    )]
    NoFolder,
    /// Another process has ended this rotation in another way.
    #[error("the key that was coming is gone from the ring: another process has changed it")]
    Overtaken,
    /// Not everybody has seen it in time.
    #[error("after {limit_s} s: {why}. Nothing is lost: the same command goes on from here")]
    TooLong {
        /// How long was waited, s.
        limit_s: u64,
        /// For whom.
        why: String,
    },
    /// There is none.
    #[error("no client is called {0}")]
    NoClient(ClientId),
}

impl Custody {
    /// With the api's way to the database, its first token key, and the folder in which all apis look for the secrets of further ones.
    #[must_use]
    pub fn new(store: Store, root: RootKey, token_key: PathBuf, token_keys: Option<PathBuf>) -> Self {
        Self { store, root, secrets: Secrets { first: token_key, folder: token_keys } }
    }

    /// Relays and apis that live.
    async fn verifiers(&self) -> Result<Vec<Verifier>, StoreError> {
        self.store.verifiers(VERIFIER_SILENCE_MS).await
    }

    /// Revokes a client and publishes the list that says so. With `within`, waits until every relay and api that lives holds that
    /// list; `behind` hears how many do not yet. Its number.
    ///
    /// # Errors
    /// See [`CustodyError`]; the same may be tried again.
    pub async fn revoke(
        &self,
        client: ClientId,
        within: Option<Duration>,
        mut behind: impl FnMut(usize),
    ) -> Result<u64, CustodyError> {
        if !self.store.revoke_client(client, None, "by the holder of the root key".to_owned()).await? {
            return Err(CustodyError::NoClient(client));
        }
        let (number, _) = publish_revocations(&self.store, &self.root).await?;
        let Some(limit) = within else { return Ok(number) };
        let end = Instant::now() + limit;
        loop {
            let verifiers = self.verifiers().await?;
            let late: Vec<_> = verifiers.iter().filter(|one| one.revocations < number).collect();
            if late.is_empty() {
                return Ok(number);
            }
            behind(late.len());
            if Instant::now() >= end {
                let why = format!("{} do not hold the new list yet", names(&late));
                return Err(CustodyError::TooLong { limit_s: limit.as_secs(), why });
            }
            sleep(LOOK).await;
        }
    }

    /// Takes the key that is coming out of the ring again: its secret was lost, or it was a mistake. It has signed nothing. The ring's
    /// number.
    ///
    /// # Errors
    /// See [`CustodyError`].
    pub async fn withdraw(&self) -> Result<u64, CustodyError> {
        let next = self.ring().await?.withdrawn(unix_ms() / 1_000)?;
        if self.publish(&next).await? { Ok(next.number()) } else { Err(PublishError::Contended.into()) }
    }

    async fn ring(&self) -> Result<KeyRing, CustodyError> {
        let (_, text) = self.store.trust_document(Document::KeyRing).await?.ok_or(CustodyError::NoRing)?;
        Ok(KeyRing::verify(&text, self.root.network())?)
    }

    async fn revocations(&self) -> Result<Option<RevocationList>, CustodyError> {
        let found = self.store.trust_document(Document::Revocations).await?;
        Ok(found.map(|(_, text)| RevocationList::verify(&text, self.root.network())).transpose()?)
    }

    /// Publishes the next ring. `false`: another process was faster.
    async fn publish(&self, ring: &KeyRing) -> Result<bool, CustodyError> {
        let text = ring.sign(&self.root)?;
        Ok(self.store.put_trust_document(Document::KeyRing, ring.number(), text).await?)
    }
}

/// For people: at most a few of them.
fn names(verifiers: &[&Verifier]) -> String {
    const MOST: usize = 5;
    let mut names: Vec<_> = verifiers.iter().take(MOST).map(|one| status::name(one)).collect();
    if verifiers.len() > MOST {
        names.push(format!("{} more", verifiers.len() - MOST));
    }
    names.join(", ")
}
