//! A relay from its start to its end.

use crate::admission::Admission;
use crate::config::{Config, InvalidConfig};
use crate::counters::Status;
use crate::door::Door;
use crate::hub::Hub;
use crate::journal::Journal;
use crate::listener::{Listener, most_connections};
use crate::peering::Peering;
use crate::records::Records;
use crate::reporting::Reporting;
use ::keys::Known;
use clock::unix_ms;
use rustls::ServerConfig;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::LocalSet;
use trust::{RelayId, RoleCertificate};

/// Connections that the kernel may hold before they are accepted.
const BACKLOG: u32 = 4_096;
/// How often it is looked at whether all have left.
const DRAIN_LOOK: Duration = Duration::from_millis(100);
/// After everybody was told, they may take so long to hear it.
const CLOSING_LIMIT: Duration = Duration::from_secs(2);
/// A share of the descriptors, one in so many, may hold refused clients.
const HELD_DIVISOR: usize = 10;
/// How often the status is told.
const STATUS_INTERVAL: Duration = Duration::from_millis(500);

/// When to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Not now.
    #[default]
    No,
    /// Send clients away, let streams end, then stop.
    Drain,
    /// Now.
    Now,
}

/// What a relay is given.
pub struct Resources<R> {
    /// Who it is.
    pub relay: RelayId,
    /// Its certificate; a new one holds for new connections.
    pub tls: watch::Receiver<Arc<ServerConfig>>,
    /// Its role's certificate and key, which it shows to other relays; a new one holds for new links.
    pub certificate: watch::Receiver<Arc<RoleCertificate>>,
    /// The network's keys.
    pub keys: watch::Receiver<Arc<Known>>,
    /// The reader's hint, given when a client shows a key that is not among them.
    pub unknown_key: Arc<Notify>,
    /// Where records go.
    pub records: R,
    /// Where its status goes.
    pub status: watch::Sender<Status>,
}

/// Why a relay cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// It cannot listen.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The state folder cannot be used.
    #[error("the usage journal in {folder} cannot be used: {error}")]
    Journal {
        /// Which folder.
        folder: std::path::PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Its thread cannot be started, or has ended in a panic.
    #[error("the relay's thread: {0}")]
    Thread(String),
}

/// Runs a relay, on a thread of its own, until it is told to stop.
///
/// # Errors
/// It cannot start. What goes wrong later is logged, and the relay goes on.
pub async fn run<R: Records>(
    config: Config,
    resources: Resources<R>,
    stop: watch::Receiver<Stop>,
) -> Result<(), StartError> {
    config.check()?;
    let listener = listen(&config)?;
    let journal = Journal::open(&config.state_folder, unix_ms(), config.journal_bytes)
        .map_err(|error| StartError::Journal { folder: config.state_folder.clone(), error })?;
    let (ended, end) = oneshot::channel();
    std::thread::Builder::new()
        .name("relay".to_owned())
        .spawn(move || {
            let result = on_this_thread(config, resources, listener, journal, stop);
            // Whoever waited may have left.
            drop(ended.send(result));
        })
        .map_err(|error| StartError::Thread(error.to_string()))?;
    end.await.unwrap_or_else(|_| Err(StartError::Thread("it ended in a panic".to_owned())))
}

fn listen(config: &Config) -> Result<std::net::TcpListener, StartError> {
    let address = config.listen;
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)?.into_std()
    };
    open().map_err(|error| StartError::Listen { address, error })
}

fn on_this_thread<R: Records>(
    config: Config,
    resources: Resources<R>,
    listener: std::net::TcpListener,
    journal: Journal,
    stop: watch::Receiver<Stop>,
) -> Result<(), StartError> {
    let address = config.listen;
    let failed = |error: io::Error| StartError::Thread(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let socket =
            TcpListener::from_std(listener).map_err(|error| StartError::Listen { address, error })?;
        serve(config, resources, socket, journal, stop).await;
        Ok(())
    })
}

async fn serve<R: Records>(
    config: Config,
    resources: Resources<R>,
    socket: TcpListener,
    journal: Journal,
    mut stop: watch::Receiver<Stop>,
) {
    let most = most_connections();
    let admission = Admission::new(config.admissions_per_second, config.admission_line);
    let hub = Hub::new(config, resources.relay, journal.epoch(), resources.keys.clone());
    let door = Rc::new(Door {
        hub: Rc::clone(&hub),
        tls: resources.tls,
        keys: resources.keys,
        unknown_key: resources.unknown_key,
        most_held: most / HELD_DIVISOR,
    });
    tracing::info!(relay = %resources.relay, address = %hub.config.listen, connections = most, "relay listens");
    let listening = tokio::task::spawn_local(Listener { door, socket, admission, most }.run());
    let deadlines = tokio::task::spawn_local(Rc::clone(&hub).keep_deadlines());
    let revoking = tokio::task::spawn_local(Rc::clone(&hub).keep_leases());
    let telling = tokio::task::spawn_local(tell(Rc::clone(&hub), resources.status));
    let records = Arc::new(resources.records);
    let reporting = Reporting::start(&hub, Arc::clone(&records), journal);
    let peering = Peering::new(&hub, resources.certificate, records);
    let peering = tokio::task::spawn_local(peering.run());
    // Whoever holds the other end may have gone without a word.
    let stopped = stop.wait_for(|stop| *stop != Stop::No).await.map_or(Stop::Now, |stop| *stop);
    listening.abort();
    if stopped == Stop::Drain {
        drain(&hub, &mut stop).await;
    }
    peering.abort();
    hub.close_all();
    let closed = async {
        nobody(&hub).await;
        while hub.elsewhere.borrow().links().next().is_some() {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    let _ = tokio::time::timeout(CLOSING_LIMIT, closed).await;
    reporting.finish().await;
    deadlines.abort();
    revoking.abort();
    telling.abort();
    tracing::info!("relay ended");
}

/// Clients go elsewhere; streams that stand may end within the deadline.
async fn drain(hub: &Rc<Hub>, stop: &mut watch::Receiver<Stop>) {
    tracing::info!(clients = hub.connections().len(), "draining");
    hub.drain();
    let deadline = Duration::from_millis(u64::from(hub.config.drain_deadline_ms));
    let gone = async {
        while !hub.connections().is_empty() {
            hub.let_go();
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    tokio::select! {
        () = gone => {}
        () = tokio::time::sleep(deadline) => tracing::info!("the drain's deadline has passed"),
        _ = stop.wait_for(|stop| *stop == Stop::Now) => {}
    }
}

async fn nobody(hub: &Hub) {
    while !hub.connections().is_empty() {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}

async fn tell(hub: Rc<Hub>, status: watch::Sender<Status>) {
    loop {
        status.send_replace(hub.status());
        tokio::time::sleep(STATUS_INTERVAL).await;
    }
}
