//! What all requests share.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use store::config::read_text;
use store::{ConfigError, DatabaseConfigError, NewAccount, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trust::api::ErrorCode;
use trust::{AccountId, CertificateError, ClientId, KeyError, RoleCertificate, RootKey, TokenKey};

use crate::answer::Refusal;
use crate::config::Config;
use crate::documents::DocumentKeeper;
use crate::guesses::{Guesses, Neighbourhood};
use crate::known::KnownClients;
use crate::lookups::Lookups;
use crate::memory::Memory;
use crate::offline::Offline;
use crate::passwords::{NoRandomness, hash_password};
use crate::pools::PoolKeeper;
use crate::routes;

/// Requests that are worked on at once.
pub(crate) const MOST_REQUESTS: usize = 256;
/// How long a definite refusal is given again without asking the database, ms.
const REFUSED_MS: u64 = 15_000;
/// How long the database's answer to whether it is ready holds, ms.
const READINESS_MS: u64 = 500;
/// Passwords that are hashed at once: each takes a core for a fifth of a second.
const MOST_HASHING: usize = 2;
/// Passwords that wait for that; the next one is refused. Each of them holds one of the requests at once.
pub(crate) const MOST_WAITING_TO_HASH: usize = 32;

/// Why the api cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The way to the database.
    #[error(transparent)]
    Database(#[from] DatabaseConfigError),
    /// The certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// `offline_after_ms` makes no sense.
    #[error("offline_after_ms is 0: every pause of the database would be an outage")]
    OfflineAfter,
    /// The address to listen on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// Why an account was not made.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// What all requests share.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) token_key: TokenKey,
    pub(crate) documents: DocumentKeeper,
    /// The newest generation of pools.
    pub(crate) pools: PoolKeeper,
    /// Clients that the database has vouched for.
    pub(crate) known: KnownClients,
    /// For the time without the database.
    pub(crate) offline: Offline,
    pub(crate) certificate: RoleCertificate,
    pub(crate) requests: Semaphore,
    /// Wrong codes and passwords, by where they come from.
    pub(crate) guesses: Mutex<Guesses<Neighbourhood>>,
    /// Wrong passwords, by the name that is guessed at.
    pub(crate) name_guesses: Mutex<Guesses<[u8; 32]>>,
    /// Candidates of a moment ago.
    pub(crate) lookups: Lookups,
    /// Definite refusals of a moment ago.
    pub(crate) refused: Mutex<Memory<Refused, (ErrorCode, &'static str)>>,
    /// Whether the database could serve a moment ago.
    pub(crate) readiness: Mutex<Memory<(), bool>>,
    hashing: Arc<Semaphore>,
    hashing_line: Semaphore,
}

/// The right to hash one password.
pub(crate) struct HashingTurn(OwnedSemaphorePermit);

/// Who was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Refused {
    Client(ClientId),
    Bearer([u8; 32]),
}

impl App {
    pub(crate) fn build(config: &Config) -> Result<Self, RunError> {
        if config.offline_after_ms == 0 {
            return Err(RunError::OfflineAfter);
        }
        let store = config.database.open(config.network)?;
        let certificate = RoleCertificate::from_pem(
            &read_text(&config.certificate)?,
            &read_text(&config.certificate_key)?,
        )?;
        let token_key = key(&config.token_key, TokenKey::from_seed)?;
        let root = config.root_key.as_deref().map(|path| key(path, RootKey::from_seed)).transpose()?;
        if let (Some(root), Some(path)) = (&root, &config.root_key)
            && root.network() != config.network
        {
            return Err(ConfigError::wrong(path, "the root key of another network").into());
        }
        let documents =
            DocumentKeeper::new(config.network, root, *token_key.public_key(), config.state_folder.clone());
        let kept = documents.current().ok();
        let ring = kept.as_ref().map(|documents| &documents.ring);
        let pools = PoolKeeper::new(config.network, config.state_folder.clone(), ring);
        Ok(Self {
            store,
            token_key,
            documents,
            pools,
            known: KnownClients::new(config.state_folder.clone(), clock::unix_ms()),
            offline: Offline::open(config.network, config.state_folder.as_deref(), config.offline_after_ms),
            certificate,
            requests: Semaphore::new(MOST_REQUESTS),
            guesses: Mutex::default(),
            name_guesses: Mutex::default(),
            lookups: Lookups::default(),
            refused: Mutex::new(Memory::new(REFUSED_MS)),
            readiness: Mutex::new(Memory::new(READINESS_MS)),
            hashing: Arc::new(Semaphore::new(MOST_HASHING)),
            hashing_line: Semaphore::new(MOST_WAITING_TO_HASH),
        })
    }

    pub(crate) fn router(self: &Arc<Self>) -> Router {
        routes::router(self)
    }

    /// Waits for a turn to hash a password: a bounded number waits.
    pub(crate) async fn hashing_turn(&self) -> Result<HashingTurn, Refusal> {
        let _place = self.hashing_line.try_acquire().map_err(|_| Refusal::busy())?;
        let turn = Arc::clone(&self.hashing).acquire_owned().await.map_err(|_| Refusal::busy())?;
        Ok(HashingTurn(turn))
    }
}

impl HashingTurn {
    /// Work that takes a core for a while. The turn is over when it has ended, also if nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let Self(turn) = self;
        let work = move || {
            let done = work();
            drop(turn);
            done
        };
        tokio::task::spawn_blocking(work).await.ok()
    }
}

/// Makes the network's row and an account of this name and password, if they are not there; an account that is there stays
/// as it is. For whoever sets a network up.
///
/// # Errors
/// See [`AccountError`].
pub async fn ensure_account(
    store: &Store,
    name: &str,
    password: &str,
    operator: bool,
) -> Result<AccountId, AccountError> {
    store.ensure_network().await?;
    for _ in 0..2 {
        if let Some(account) = store.account_by_name(name.to_owned()).await? {
            return Ok(account.account);
        }
        let owned = password.to_owned();
        let hash = tokio::task::spawn_blocking(move || hash_password(&owned)).await;
        let new = NewAccount {
            account: AccountId::at(clock::unix_ms()),
            name: name.to_owned(),
            password: hash.unwrap_or(Err(NoRandomness))?,
            operator,
        };
        store.create_account(new).await?;
    }
    Err(StoreError::Corrupt { what: "an account that is neither there nor can be made" }.into())
}

/// A key from its seed in base64url.
fn key<K>(path: &Path, from_seed: impl Fn(&[u8]) -> Result<K, KeyError>) -> Result<K, ConfigError> {
    let text = read_text(path)?;
    let seed = BASE64_URL_SAFE_NO_PAD
        .decode(text.trim())
        .map_err(|_| ConfigError::wrong(path, "not a key in base64url"))?;
    from_seed(&seed).map_err(|error| ConfigError::wrong(path, error))
}
