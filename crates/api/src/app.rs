//! What all requests share.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use cache::{Cache, CacheConfigError, Channel};
use keys::{
    CertificateFileError, CertificateFiles, CertificateKeeper, Reader, Signer, TokenKeyFiles, read_key,
};
use store::{ConfigError, DatabaseConfigError, NewAccount, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trust::api::ErrorCode;
use trust::{AccountId, ClientId, RootKey, TokenKey};

use crate::answer::Refusal;
use crate::config::Config;
use crate::documents::Documents;
use crate::guesses::{Guesses, Neighbourhood};
use crate::handlers::accounts::lock;
use crate::known::KnownClients;
use crate::lookups::Lookups;
use crate::memory::Memory;
use crate::offline::Offline;
use crate::passwords::{NoRandomness, hash_password};
use crate::pools::PoolKeeper;
use crate::routes;

/// Requests that are worked on at once.
pub(crate) const MOST_REQUESTS: usize = 256;
/// How long a definite refusal is given again without asking the database, ms. Clients that are refused for longer are known from
/// the shared reader, and cost no question at all.
const REFUSED_MS: u64 = 60_000;
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
    /// The cache.
    #[error(transparent)]
    Cache(#[from] CacheConfigError),
    /// The certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateFileError),
    /// `offline_after_ms` makes no sense.
    #[error("offline_after_ms is 0: every pause of the database would be an outage")]
    OfflineAfter,
    /// The state folder.
    #[error("the state folder {} cannot be used: {source}", path.display())]
    State {
        /// Which.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
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
    pub(crate) documents: Documents,
    /// The newest generation of pools.
    pub(crate) pools: PoolKeeper,
    /// Clients that the database has vouched for.
    pub(crate) known: KnownClients,
    /// For the time without the database.
    pub(crate) offline: Offline,
    pub(crate) requests: Semaphore,
    /// Wrong codes and passwords, by where they come from.
    pub(crate) guesses: Mutex<Guesses<Neighbourhood>>,
    /// Wrong passwords, by the name that is guessed at.
    pub(crate) name_guesses: Mutex<Guesses<[u8; 32]>>,
    /// Candidates of a moment ago.
    pub(crate) lookups: Lookups,
    /// Definite refusals of a moment ago, of clients whose tokens are signed by a known key.
    pub(crate) refused_clients: Mutex<Memory<ClientId, Denial>>,
    /// And of bearer tokens, which anybody can make up: they push out nobody else.
    pub(crate) refused_bearers: Mutex<Memory<[u8; 32], Denial>>,
    /// Whether the database could serve a moment ago.
    pub(crate) readiness: Mutex<Memory<(), bool>>,
    hashing: Arc<Semaphore>,
    hashing_line: Semaphore,
}

/// The right to hash one password.
pub(crate) struct HashingTurn(OwnedSemaphorePermit);

/// A definite refusal that is remembered.
pub(crate) type Denial = (ErrorCode, &'static str);

/// What runs beside the requests.
pub(crate) struct Keeping {
    pub(crate) reader: Reader,
    pub(crate) certificate: CertificateKeeper,
    pub(crate) cache: Cache,
}

impl App {
    pub(crate) fn build(config: &Config) -> Result<(Self, Keeping), RunError> {
        if config.offline_after_ms == 0 {
            return Err(RunError::OfflineAfter);
        }
        let store = config.database.open(config.network)?;
        let files =
            CertificateFiles { certificate: config.certificate.clone(), key: config.certificate_key.clone() };
        let certificate =
            CertificateKeeper::open(files, |certificate| trust::server_config(certificate, &[b"http/1.1"]))?;
        let root = config.root_key.as_deref().map(|path| read_key(path, RootKey::from_seed)).transpose()?;
        if let (Some(root), Some(path)) = (&root, &config.root_key)
            && root.network() != config.network
        {
            return Err(ConfigError::wrong(path, "the root key of another network").into());
        }
        let folder = config.state_folder.as_deref();
        let reader = Reader::open(store.clone(), config.network, folder).map_err(|source| {
            let path = folder.unwrap_or_else(|| Path::new("")).to_owned();
            RunError::State { path, source }
        })?;
        let files = TokenKeyFiles { first: config.token_key.clone(), folder: config.token_keys.clone() };
        let signer = Signer::open(files, reader.book())?;
        let cache = config.cache.open(config.network)?;
        let changes = cache.publisher(Channel::CHANGES);
        let documents = Documents::new(config.network, root, reader.book(), reader.hint(), changes, signer);
        let kept = documents.current().ok();
        let ring = kept.as_ref().map(|known| &*known.ring);
        let pools = PoolKeeper::new(config.network, config.state_folder.clone(), ring);
        let app = Self {
            store,
            documents,
            pools,
            known: KnownClients::new(config.state_folder.clone(), clock::unix_ms()),
            offline: Offline::open(config.network, config.state_folder.as_deref(), config.offline_after_ms),
            requests: Semaphore::new(MOST_REQUESTS),
            guesses: Mutex::default(),
            name_guesses: Mutex::default(),
            lookups: Lookups::default(),
            refused_clients: Mutex::new(Memory::new(REFUSED_MS)),
            refused_bearers: Mutex::new(Memory::new(REFUSED_MS)),
            readiness: Mutex::new(Memory::new(READINESS_MS)),
            hashing: Arc::new(Semaphore::new(MOST_HASHING)),
            hashing_line: Semaphore::new(MOST_WAITING_TO_HASH),
        };
        Ok((app, Keeping { reader, certificate, cache }))
    }

    /// The key that signs tokens and contracts now.
    pub(crate) fn token_key(&self) -> Result<Arc<TokenKey>, Refusal> {
        let waiting = "no key that signs for this network is here: come back";
        self.documents.signer.key().ok_or_else(|| Refusal::later(ErrorCode::Unavailable, waiting, 5_000))
    }

    /// Forgets who was refused whenever a change is heard: who still is, is known by then without a question. Never ends.
    pub(crate) async fn forget_refusals(&self) {
        let mut changes = self.documents.book().watch();
        while changes.changed().await.is_ok() {
            lock(&self.refused_clients).clear();
            lock(&self.refused_bearers).clear();
        }
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
