//! The listening sockets: accepting, a bounded number a turn, and resting while descriptors are out.

mod bind;
mod keepalive;
mod unix_path;

pub use bind::BindError;
pub(crate) use bind::{UnixAccess, bind_tcp, bind_unix};
pub(crate) use keepalive::set_keepalive;
pub(crate) use unix_path::UnixPath;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use overload::Moment;
use pooling::seam::ClientAddress;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with, getsockname};
use settings::pooler::Keepalive;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// Connections accepted in one turn.
pub(crate) const MAX_ACCEPTS_A_TURN: usize = 64;
/// Rest after the system had no descriptor left, unless one is given back before.
const PAUSE: Duration = Duration::from_millis(250);
/// At most one log line about it in this time.
const LOG_PERIOD: Duration = Duration::from_secs(10);

/// A socket that listens.
#[derive(Debug)]
pub(crate) struct Listener {
    descriptor: OwnedFd,
    endpoint: Endpoint,
    /// Connections may wait there.
    ready: bool,
}

#[derive(Debug)]
enum Endpoint {
    Tcp {
        /// The address of every accepted connection, unless it is a wildcard.
        local: SocketAddr,
    },
    /// Removes the socket's name when it closes.
    Unix { path: UnixPath, port: u16 },
}

/// A connection that has been accepted: not blocking, with the options of its listener.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub descriptor: OwnedFd,
    pub address: ClientAddress,
    pub is_unix: bool,
}

/// All listening sockets.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: Vec<Listener>,
    /// Whose turn it is.
    next: usize,
    pause: Option<Pause>,
    /// When the last line was logged, and how often accepting failed since.
    logged: Option<Moment>,
    suppressed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Moment,
    /// Descriptors given back when it began.
    closed: u64,
}

impl Listeners {
    pub(crate) const fn new(all: Vec<Listener>) -> Self {
        Self { all, next: 0, pause: None, logged: None, suppressed: 0 }
    }

    /// Watches them, edge-triggered.
    pub(crate) fn register(&self, registry: &Registry, token: impl Fn(usize) -> Token) -> io::Result<()> {
        for (index, listener) in self.all.iter().enumerate() {
            let descriptor = listener.descriptor.as_raw_fd();
            registry.register(&mut SourceFd(&descriptor), token(index), Interest::READABLE)?;
        }
        Ok(())
    }

    /// Connections wait at this listener.
    pub(crate) fn on_event(&mut self, index: usize) {
        if let Some(listener) = self.all.get_mut(index) {
            listener.ready = true;
        }
    }

    /// There is something to accept now, if `closed` descriptors have been given back so far.
    pub(crate) fn is_ready(&self, now: Moment, closed: u64) -> bool {
        self.is_waiting() && !self.is_paused(now, closed)
    }

    /// When a rest ends; none if nothing waits.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.pause.map(|pause| pause.until).filter(|_| self.is_waiting())
    }

    /// The next connection, from each listener in turn.
    pub(crate) fn accept(&mut self, now: Moment, closed: u64) -> Option<Accepted> {
        if !self.is_waiting() || self.is_paused(now, closed) {
            return None;
        }
        self.pause = None;
        for _ in 0..self.all.len() {
            self.next = (self.next + 1) % self.all.len();
            let listener = &mut self.all[self.next];
            if !listener.ready {
                continue;
            }
            match listener.accept() {
                Ok(accepted) => return Some(accepted),
                Err(Errno::AGAIN) => listener.ready = false,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => {
                    self.rest(now, closed, error);
                    return None;
                }
            }
        }
        None
    }

    /// Sets the options that accepted connections inherit.
    pub(crate) fn set_keepalive(&self, keepalive: Keepalive) {
        for listener in &self.all {
            if let Endpoint::Tcp { local } = &listener.endpoint
                && let Err(error) = set_keepalive(listener.descriptor.as_fd(), keepalive)
            {
                tracing::warn!(%error, %local, "cannot set TCP keepalive");
            }
        }
    }

    /// Stops listening: the next connection is refused by the system.
    pub(crate) fn close(&mut self) {
        self.all.clear();
        self.pause = None;
    }

    fn is_waiting(&self) -> bool {
        self.all.iter().any(|listener| listener.ready)
    }

    fn is_paused(&self, now: Moment, closed: u64) -> bool {
        self.pause.is_some_and(|pause| now < pause.until && closed == pause.closed)
    }

    /// No descriptor, no memory, or an error of the network that the next attempt may not meet.
    fn rest(&mut self, now: Moment, closed: u64, error: Errno) {
        self.pause = Some(Pause { until: now + PAUSE, closed });
        if self.logged.is_some_and(|logged| now.since(logged) < LOG_PERIOD) {
            self.suppressed += 1;
            return;
        }
        let error = io::Error::from(error);
        tracing::warn!(%error, suppressed = self.suppressed, "cannot accept connections for the moment");
        self.logged = Some(now);
        self.suppressed = 0;
    }
}

impl Listener {
    fn accept(&self) -> Result<Accepted, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (descriptor, peer) = acceptfrom_with(&self.descriptor, flags)?;
        match &self.endpoint {
            Endpoint::Tcp { local } => {
                let peer = peer.and_then(internet_address).ok_or(Errno::CONNABORTED)?;
                let local = if local.ip().is_unspecified() {
                    internet_address(getsockname(&descriptor)?).ok_or(Errno::CONNABORTED)?
                } else {
                    *local
                };
                Ok(Accepted { descriptor, address: ClientAddress::Tcp { peer, local }, is_unix: false })
            }
            Endpoint::Unix { port, .. } => {
                let caller = socket_peercred(&descriptor)?;
                let (uid, pid) = (caller.uid.as_raw(), caller.pid.as_raw_nonzero().get());
                Ok(Accepted {
                    descriptor,
                    address: ClientAddress::Unix { port: *port, uid, pid },
                    is_unix: true,
                })
            }
        }
    }
}

/// An address of IPv4 or IPv6. A client of IPv4 at a socket of IPv6 is shown as one of IPv4.
fn internet_address(address: SocketAddrAny) -> Option<SocketAddr> {
    let address = SocketAddr::try_from(address).ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

#[cfg(test)]
mod tests;
