//! Listeners, the tasks beside them, and the stop.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client::{Membership, MembershipError};
use clock::unix_ms;
use egress::{Policy, Ports};
use snapshot::Shelf;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::abuse::{self, Records};
use crate::accounts::{Account, Accounts, REFRESH_EVERY};
use crate::config::{Config, ConfigError, Listen};
use crate::connection::{self, Counts, Proxy};
use crate::control::Control;
use crate::directory::Directory;
use crate::exits::Exits;
use crate::last_known::{Keeper, LastKnown, SavedBlock};
use crate::limits::Strangers;
use crate::network::Network;
use crate::opener::{KEPT_UNUSED, MAX_TOP_UPS, Opener};
use clock::Clock;

/// The pause after an accept that failed: there are no descriptors, and more will not come at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// How often the counts are written to the log, if they have changed.
const COUNTS_EVERY: Duration = Duration::from_secs(60);

/// How often it is written down what is known; less often if that takes long.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// To write it down takes at most one part in so many of the time.
const KEEP_SHARE: u32 = 20;

/// What it takes at a stop to give contracts back and hand in the last records.
const FAREWELL: Duration = Duration::from_secs(3);

/// Every port but the one that no provider ever reaches: which of the others are reached is each provider's own matter.
const PORTS: &str = "1-65535, 23, 135, 136, 137, 138, 139, 445, 465, 587, 3389, 5900";

/// The file, in the folder of the membership, with what was last known.
const LAST_KNOWN: &str = "last-known.json";

/// How the folder beside it ends, with the pools of providers.
const POOLS: &str = "pools";

/// Why a proxy does not run.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// Its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Its membership.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

/// Sockets that listen, each with what is spoken there.
#[derive(Debug)]
pub struct Listeners(Vec<(TcpListener, Listen)>);

impl Listeners {
    /// Listens on all addresses of a configuration, which is checked first: none beyond loopback without logins.
    ///
    /// # Errors
    ///
    /// The configuration is wrong, or an address cannot be had.
    pub async fn bind(config: &Config) -> Result<Self, ProxyError> {
        config.check()?;
        let mut listeners = Vec::new();
        for listen in &config.listen {
            let address = listen.address;
            let listener = TcpListener::bind(address).await;
            let listener = listener.map_err(|error| ProxyError::Listen { address, error })?;
            listeners.push((listener, listen.clone()));
        }
        Ok(Self(listeners))
    }

    /// Where they listen, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }
}

/// Runs a proxy of a network until `shutdown`, and then until its streams have ended or their time is over.
///
/// # Errors
///
/// It could not start.
pub async fn run(
    config: Config,
    membership: Arc<Membership>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ProxyError> {
    let listeners = Listeners::bind(&config).await?;
    let epoch = membership.take_epoch()?;
    let network = Arc::new(Network::new(Arc::clone(&membership), epoch));
    let mut beside = JoinSet::new();
    beside.spawn(keep_token(Arc::clone(&membership)));
    let last_known = membership.folder().join(LAST_KNOWN);
    serve(config, listeners, Arc::clone(&network), membership, Some(last_known), shutdown).await;
    beside.shutdown().await;
    network.close();
    Ok(())
}

async fn keep_token(membership: Arc<Membership>) {
    let error = membership.keep_fresh().await;
    // Relays and the api have the last word on what the token at hand is worth.
    tracing::error!(%error, "this proxy's token is refreshed no more");
}

/// Serves customers by any outgoing side and any api. What it knows is kept in the file `last_known`, if there is one.
pub async fn serve<E: Exits, C: Control>(
    config: Config,
    listeners: Listeners,
    exits: Arc<E>,
    control: Arc<C>,
    last_known: Option<PathBuf>,
    shutdown: impl Future<Output = ()>,
) {
    let clock = Clock::start();
    let (records, handed_in) = Records::new();
    let (top_ups, wanted) = mpsc::channel(MAX_TOP_UPS);
    let keeper = tokio::spawn(abuse::keep(handed_in, Arc::clone(&control), config.keeping()));
    let (stop, stopping) = watch::channel(false);
    let shelf = last_known.as_ref().map(|file| Shelf::new(file.with_extension(POOLS)));
    let directory = Arc::new(Directory::new(Arc::clone(&control), clock, fastrand::u64(..), shelf));
    directory.restore_pools().await;
    let proxy = Arc::new(Proxy {
        accounts: Accounts::new(Arc::clone(&control), clock, config.targets_per_minute),
        opener: Arc::new(Opener {
            exits,
            control,
            directory,
            policy: policy(&config),
            clock,
            records,
            writes_targets: config.abuse.targets,
            top_ups,
        }),
        counts: Counts::default(),
        strangers: Strangers::new(config.handshakes_per_address),
        stopping,
        config,
    });
    let keeper_of_known = last_known.map(Keeper::new);
    if let Some(known) = keeper_of_known.as_ref().and_then(|keeper| keeper.read(unix_ms())) {
        proxy.restore(known);
    }
    let keeping = Arc::new(Mutex::new(keeper_of_known));
    let mut beside = JoinSet::new();
    beside.spawn(refresh_providers(Arc::clone(&proxy)));
    beside.spawn(refresh_logins(Arc::clone(&proxy)));
    beside.spawn(keep_known(Arc::clone(&proxy), Arc::clone(&keeping)));
    beside.spawn(top_up(Arc::clone(&proxy), wanted));
    beside.spawn(count(Arc::clone(&proxy)));
    let connections = Arc::new(Semaphore::new(proxy.config.connections as usize));
    let mut accepting = JoinSet::new();
    for (listener, listen) in listeners.0 {
        tracing::info!(address = ?listener.local_addr().ok(), protocol = ?listen.protocol, "listening");
        accepting.spawn(accept(Arc::clone(&proxy), listener, Arc::new(listen), Arc::clone(&connections)));
    }
    shutdown.await;
    accepting.shutdown().await;
    stop.send_replace(true);
    let all = proxy.config.connections;
    // Each connection holds one of them until it ends.
    let _ = timeout(proxy.config.drain(), connections.acquire_many(all)).await;
    beside.shutdown().await;
    if proxy.opener.directory.hears() {
        proxy.opener.sweep(&proxy.accounts.all(), Duration::ZERO);
    }
    proxy.remember(&keeping);
    proxy.opener.directory.write_now();
    drop(proxy);
    let _ = timeout(FAREWELL, keeper).await;
}

/// What the proxy itself refuses: special addresses, in whatever notation.
fn policy(config: &Config) -> Policy {
    let ports: Ports = PORTS.parse().unwrap_or_default();
    Policy::new(ports).with_exact(config.allow_exact.clone())
}

async fn accept<E: Exits, C: Control>(
    proxy: Arc<Proxy<E, C>>,
    listener: TcpListener,
    listen: Arc<Listen>,
    connections: Arc<Semaphore>,
) {
    loop {
        // Beyond the bound nobody is taken in: they wait in the kernel's queue, which has a bound of its own.
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((socket, peer)) => {
                let served = connection::serve(Arc::clone(&proxy), socket, peer, Arc::clone(&listen));
                tokio::spawn(async move {
                    served.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "accept");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Who could carry streams, every second or so.
async fn refresh_providers<E: Exits, C: Control>(proxy: Arc<Proxy<E, C>>) {
    let every = proxy.config.refresh();
    loop {
        proxy.opener.directory.refresh().await;
        // Many proxies do not fall into step.
        sleep(every.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
    }
}

/// Logins every half minute, one by one, however long that takes; and unused blocks are given back.
async fn refresh_logins<E: Exits, C: Control>(proxy: Arc<Proxy<E, C>>) {
    let mut logins = interval(REFRESH_EVERY);
    logins.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        logins.tick().await;
        proxy.accounts.refresh().await;
        proxy.opener.sweep(&proxy.accounts.all(), KEPT_UNUSED);
    }
}

/// Writes down what is known, so that a proxy that is killed knows at its next start what it knew a few seconds before.
async fn keep_known<E: Exits, C: Control>(proxy: Arc<Proxy<E, C>>, keeping: Keeping) {
    let mut rest = KEEP_EVERY;
    loop {
        sleep(rest).await;
        let (proxy, keeping) = (Arc::clone(&proxy), Arc::clone(&keeping));
        let began = Instant::now();
        // A slow disk is waited for elsewhere.
        let _ = tokio::task::spawn_blocking(move || proxy.remember(&keeping)).await;
        rest = KEEP_EVERY.max(began.elapsed() * KEEP_SHARE);
    }
}

/// Where what is known is kept, if anywhere.
type Keeping = Arc<Mutex<Option<Keeper>>>;

impl<E: Exits, C: Control> Proxy<E, C> {
    fn restore(&self, known: LastKnown) {
        self.accounts.restore(&known.logins);
        self.opener.directory.restore(known.candidates);
        let accounts = self.accounts.all();
        let by_name: HashMap<&str, &Arc<Account>> =
            accounts.iter().map(|account| (&*account.name, account)).collect();
        for block in known.blocks {
            if let Some(account) = by_name.get(block.account.as_str()) {
                account.purse().restore(&block.contract, block.used);
            }
        }
    }

    fn remember(&self, keeping: &Keeping) {
        let mut keeper = keeping.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(keeper) = keeper.as_mut() else { return };
        let mut known = LastKnown::default();
        for account in self.accounts.all() {
            let block = account.purse().current().map(|block| block.saved());
            if let Some((contract, used)) = block {
                known.blocks.push(SavedBlock { account: account.name.to_string(), contract, used });
            }
        }
        known.logins = self.accounts.records();
        known.candidates = self.opener.directory.records();
        keeper.keep(known, unix_ms());
    }
}

async fn top_up<E: Exits, C: Control>(proxy: Arc<Proxy<E, C>>, mut wanted: mpsc::Receiver<Arc<Account>>) {
    while let Some(account) = wanted.recv().await {
        proxy.opener.top_up(&account);
    }
}

async fn count<E: Exits, C: Control>(proxy: Arc<Proxy<E, C>>) {
    let mut ticks = interval(COUNTS_EVERY);
    let mut last = proxy.counts.read();
    loop {
        ticks.tick().await;
        let counts = proxy.counts.read();
        if counts != last {
            let (opened, unfinished, refused) = &counts;
            let refused: Vec<_> = refused.iter().map(|(reason, count)| (reason.label(), *count)).collect();
            let providers = proxy.opener.directory.len();
            let lost_records = proxy.opener.records.lost();
            tracing::info!(opened, unfinished, ?refused, providers, lost_records, "since the start");
            last = counts;
        }
    }
}
