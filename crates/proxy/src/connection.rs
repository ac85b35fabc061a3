//! One customer's connection, from its first byte.

mod client;
mod http;
mod pacing;
mod socks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::accounts::Accounts;
use crate::config::{Config, Listen, Protocol};
use crate::control::Control;
use crate::exits::Exits;
use crate::limits::Strangers;
use crate::opener::Opener;
use crate::refusal::Reason;
use crate::socks::{SOCKS4_REJECTED, VERSION as SOCKS5};
use client::Client;

/// The first byte of a SOCKS4 client.
const SOCKS4: u8 = 4;

/// What all connections of a proxy share.
pub(crate) struct Proxy<E, C> {
    pub(crate) config: Config,
    pub(crate) opener: Arc<Opener<E, C>>,
    pub(crate) accounts: Accounts<C>,
    pub(crate) counts: Counts,
    pub(crate) strangers: Arc<Strangers>,
    /// Becomes true when the proxy stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// What has happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    opened: AtomicU64,
    refused: [AtomicU64; Reason::ALL.len()],
    /// Connections that ended before they had asked for anything that could be answered.
    unfinished: AtomicU64,
}

impl Counts {
    fn opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    fn refused(&self, reason: Reason) {
        let place = Reason::ALL.iter().position(|known| *known == reason);
        if let Some(count) = place.and_then(|place| self.refused.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn unfinished(&self) {
        self.unfinished.fetch_add(1, Ordering::Relaxed);
    }

    /// Streams opened, connections that came to nothing, and refusals by reason.
    pub(crate) fn read(&self) -> (u64, u64, Vec<(Reason, u64)>) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let refused = Reason::ALL.iter().copied().zip(self.refused.iter().map(load));
        (load(&self.opened), load(&self.unfinished), refused.filter(|(_, count)| *count > 0).collect())
    }
}

impl<E, C> Proxy<E, C> {
    /// Waits until the proxy stops.
    async fn stops(&self) {
        let mut stopping = self.stopping.clone();
        // Whoever could say so is gone as well.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }
}

/// How a conversation ended early: the customer left, broke the protocol, or was too slow. Nothing is answered.
pub(crate) struct Gone;

impl From<std::io::Error> for Gone {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// Serves one connection until it ends.
pub(crate) async fn serve<E: Exits, C: Control>(
    proxy: Arc<Proxy<E, C>>,
    socket: TcpStream,
    peer: SocketAddr,
    listen: Arc<Listen>,
) {
    // An answer is one write: waiting for more of it would only cost time.
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let Some(stranger) = proxy.strangers.enter(peer.ip()) else {
        proxy.counts.unfinished();
        return;
    };
    let deadline = Instant::now() + proxy.config.handshake();
    let mut client = Client::new(socket, peer, stranger);
    let served = converse(&proxy, &mut client, &listen, deadline).await;
    if served.is_err() {
        proxy.counts.unfinished();
    }
}

async fn converse<E: Exits, C: Control>(
    proxy: &Arc<Proxy<E, C>>,
    client: &mut Client,
    listen: &Listen,
    deadline: Instant,
) -> Result<(), Gone> {
    let first = timeout_at(deadline, client.first_byte()).await.map_err(|_| Gone)??;
    match (first, listen.protocol) {
        (SOCKS5, Protocol::Any | Protocol::Socks5) => socks::serve(proxy, client, listen, deadline).await,
        (SOCKS4, Protocol::Any | Protocol::Socks5) => {
            client.write(&SOCKS4_REJECTED).await?;
            Err(Gone)
        }
        (first, Protocol::Any | Protocol::Http) if first.is_ascii_alphabetic() => {
            http::serve(proxy, client, listen, deadline).await
        }
        _ => Err(Gone),
    }
}
