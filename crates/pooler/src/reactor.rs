//! The data plane: every logged-in socket and every client in login, on one thread, under one epoll instance.
//!
//! Sockets are registered once, edge-triggered; only a Unix socket is registered anew while bytes are kept for it. The
//! budget of a transaction at one client is two receives, two sends and two waits, and no other system call.

pub(crate) mod clock;
mod dispatch;
pub(crate) mod listener;
mod orphans;
mod secure;
mod socket;
mod sockets;
mod turn;

pub(crate) use turn::{Reactor, Seed};

use pooling::seam::{AttemptId, OpenedServer};
use std::os::fd::OwnedFd;
use tls::TlsSession;

/// A server connection on its way from the login plane into the reactor.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Whose answer it is.
    pub attempt: AttemptId,
    /// What its login told.
    pub server: OpenedServer,
    /// The socket: not blocking, registered nowhere.
    pub descriptor: OwnedFd,
    /// A Unix socket.
    pub is_unix: bool,
    /// Its TLS, if it has any.
    pub tls: Option<TlsSession>,
}
