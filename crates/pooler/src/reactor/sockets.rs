//! The sockets of all connections, by side and slot, and what the engine may do with them.

use super::orphans::Orphans;
use super::secure::Secure;
use super::socket::{Sent, Socket};
use crate::control::inbox::Inbox;
use crate::login_plane::request::{BudgetOrder, HandOver, PlaneSender, Request, Way};
use crate::tls::TlsContext;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use overload::Moment;
use pgwire::scram::ChannelBinding;
use pooling::connection::{ClientId, ConnectionId, ServerId, SlabId};
use pooling::seam::{
    BudgetRequest, CancelQuery, ConsoleLogin, DeriveVerifier, Flow, LookAtLocks, OpenServer, Transport,
};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use settings::pooler::Keepalive;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use tls::TlsSession;

/// Unread bytes that are taken from a client before it is closed, so that they do not turn the end into a reset.
const DRAIN_BYTES: usize = 16 * 1024;
/// Room for encryption that stays allocated.
const MAX_ROOM_BYTES: usize = 256 * 1024;

/// All sockets of the data plane.
#[derive(Debug)]
pub(crate) struct Sockets {
    clients: Vec<Option<Socket>>,
    servers: Vec<Option<Socket>>,
    /// Clients that have something to do without a new event.
    pub ready_clients: VecDeque<ConnectionId>,
    /// Servers likewise.
    pub ready_servers: VecDeque<ConnectionId>,
    /// Closed ones with bytes left.
    pub orphans: Orphans,
    /// Descriptors given back so far: accepting may go on.
    pub closed: u64,
    /// The clock of this turn.
    pub now: Moment,
    /// For server connections.
    pub keepalive: Keepalive,
    /// TLS of new connections.
    pub tls: TlsContext,
    /// Room for encryption, shared by all.
    room: Room,
    registry: Registry,
    plane: PlaneSender,
    inbox: Arc<Inbox>,
}

/// Where parts are put together and encrypted.
#[derive(Debug, Default)]
struct Room {
    joined: Vec<u8>,
    sealed: Vec<u8>,
}

impl Sockets {
    pub(crate) fn new(
        registry: Registry,
        plane: PlaneSender,
        inbox: Arc<Inbox>,
        keepalive: Keepalive,
        tls: TlsContext,
    ) -> Self {
        Self {
            clients: Vec::new(),
            servers: Vec::new(),
            ready_clients: VecDeque::new(),
            ready_servers: VecDeque::new(),
            orphans: Orphans::default(),
            closed: 0,
            now: Moment::ORIGIN,
            keepalive,
            tls,
            room: Room::default(),
            registry,
            plane,
            inbox,
        }
    }

    /// Adds a client that has been accepted.
    pub(crate) fn add_client(&mut self, id: ClientId, descriptor: OwnedFd, is_unix: bool) -> io::Result<()> {
        self.add(id.into(), Socket::new(descriptor, id.generation(), is_unix))
    }

    /// Adds a server that has logged in.
    pub(crate) fn add_server(
        &mut self,
        id: ServerId,
        descriptor: OwnedFd,
        is_unix: bool,
        tls: Option<TlsSession>,
    ) -> io::Result<()> {
        let mut socket = Socket::new(descriptor, id.generation(), is_unix);
        socket.secure = tls.map(|session| Box::new(Secure::established(session)));
        self.add(id.into(), socket)
    }

    /// The socket, if its identity is still in use.
    #[inline]
    pub(crate) fn find(&mut self, id: ConnectionId) -> Option<&mut Socket> {
        let (entry, generation) = match id {
            ConnectionId::Client(id) => (self.clients.get_mut(id.slot() as usize)?, id.generation()),
            ConnectionId::Server(id) => (self.servers.get_mut(id.slot() as usize)?, id.generation()),
        };
        entry.as_mut().filter(|socket| socket.generation() == generation)
    }

    /// Has the connection looked at in the next pass over the ready list.
    pub(crate) fn make_ready(&mut self, id: ConnectionId) {
        let Some(socket) = self.find(id) else { return };
        if socket.on_ready_list {
            return;
        }
        socket.on_ready_list = true;
        match id {
            ConnectionId::Client(_) => self.ready_clients.push_back(id),
            ConnectionId::Server(_) => self.ready_servers.push_back(id),
        }
    }

    /// Nothing waits in the ready lists.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready_clients.is_empty() && self.ready_servers.is_empty()
    }

    /// Sends what is kept for a peer that can take bytes again.
    pub(crate) fn flush(&mut self, id: ConnectionId) -> Option<Sent> {
        let socket = self.find(id)?;
        if socket.kept_bytes() == 0 {
            return None;
        }
        let sent = socket.flush();
        match sent {
            Sent::All => self.watch_writing(id, false),
            Sent::Kept => {}
            Sent::Failed => self.make_ready(id),
        }
        Some(sent)
    }

    /// Sends what is encrypted already, or needs no encryption.
    pub(crate) fn send_bytes(&mut self, to: ConnectionId, parts: &[&[u8]]) -> Flow {
        let Some(socket) = self.find(to) else { return Flow::Flushed };
        let kept_before = socket.kept_bytes() > 0;
        let sent = socket.send(parts);
        self.after_send(to, kept_before, sent)
    }

    #[inline]
    fn after_send(&mut self, to: ConnectionId, kept_before: bool, sent: Sent) -> Flow {
        match sent {
            Sent::All => Flow::Flushed,
            Sent::Kept => {
                if !kept_before {
                    self.watch_writing(to, true);
                }
                Flow::Blocked
            }
            Sent::Failed => {
                self.make_ready(to);
                Flow::Flushed
            }
        }
    }

    /// Encrypts the parts and sends them.
    fn send_sealed(&mut self, to: ConnectionId, parts: &[&[u8]]) -> Flow {
        let mut room = std::mem::take(&mut self.room);
        room.sealed.clear();
        let Some(secure) = self.find(to).and_then(|socket| socket.secure.as_mut()) else {
            return Flow::Flushed;
        };
        let flow = match secure.seal(parts, &mut room.joined, &mut room.sealed) {
            Ok(true) => self.send_bytes(to, &[&room.sealed]),
            Ok(false) => Flow::Flushed,
            Err(error) => {
                tracing::warn!(%error, "cannot encrypt, the connection is closed");
                if let Some(socket) = self.find(to) {
                    socket.failed = true;
                }
                self.make_ready(to);
                Flow::Flushed
            }
        };
        room.joined.clear();
        room.joined.shrink_to(MAX_ROOM_BYTES);
        room.sealed.clear();
        room.sealed.shrink_to(MAX_ROOM_BYTES);
        self.room = room;
        flow
    }

    /// Version and suite of a connection's TLS; empty without.
    pub(crate) fn tls_of(&mut self, id: ConnectionId) -> String {
        let secure = self.find(id).and_then(|socket| socket.secure.as_ref());
        secure.map(|secure| secure.describe()).unwrap_or_default()
    }

    pub(crate) const fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// A Unix socket wakes its writer whenever the peer reads, so it is watched for that only while bytes are kept.
    /// TCP reports it only after a send that did not fit, so there it costs nothing to watch it always.
    fn watch_writing(&mut self, id: ConnectionId, on: bool) {
        let Some(socket) = self.find(id).filter(|socket| socket.is_unix) else { return };
        let descriptor = socket.descriptor().as_raw_fd();
        let interest = if on { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        if let Err(error) = self.registry.reregister(&mut SourceFd(&descriptor), token(id), interest) {
            tracing::error!(%error, "cannot watch a Unix socket for writing");
            if let Some(socket) = self.find(id) {
                socket.failed = true;
            }
            self.make_ready(id);
        }
    }

    fn add(&mut self, id: ConnectionId, socket: Socket) -> io::Result<()> {
        let interest =
            if socket.is_unix { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        self.registry.register(&mut SourceFd(&socket.descriptor().as_raw_fd()), token(id), interest)?;
        let (table, slot) = match id {
            ConnectionId::Client(id) => (&mut self.clients, id.slot() as usize),
            ConnectionId::Server(id) => (&mut self.servers, id.slot() as usize),
        };
        if table.len() <= slot {
            table.resize_with(slot + 1, || None);
        }
        table[slot] = Some(socket);
        Ok(())
    }

    fn take(&mut self, id: ConnectionId) -> Option<Socket> {
        self.find(id)?;
        match id {
            ConnectionId::Client(id) => self.clients.get_mut(id.slot() as usize)?.take(),
            ConnectionId::Server(id) => self.servers.get_mut(id.slot() as usize)?.take(),
        }
    }

    fn request(&self, request: Request) {
        if let Err(request) = self.plane.try_send(request)
            && let Some(answer) = request.refuse()
        {
            self.inbox.answer(answer);
        }
    }
}

impl Transport for Sockets {
    fn send(&mut self, to: ConnectionId, parts: &[&[u8]]) -> Flow {
        match self.find(to) {
            Some(socket) if socket.secure.is_some() => self.send_sealed(to, parts),
            // The usual way, with one look at the table.
            Some(socket) => {
                let kept_before = socket.kept_bytes() > 0;
                let sent = socket.send(parts);
                self.after_send(to, kept_before, sent)
            }
            None => Flow::Flushed,
        }
    }

    fn set_reading(&mut self, of: ConnectionId, on: bool) {
        let Some(socket) = self.find(of) else { return };
        socket.reading_on = on;
        if !on {
            // Whoever stops reading may stand elsewhere than when the hang-up was told.
            socket.told_read_closed = false;
            socket.told_reset = false;
        }
        // Off: a hang-up that has been seen is to be told. On: bytes may have come in the meantime.
        if socket.read_closed || on && socket.readable {
            self.make_ready(of);
        }
    }

    fn shut_down_write(&mut self, of: ConnectionId) {
        if let Some(socket) = self.find(of) {
            socket.say_farewell();
            socket.shut_down_write();
        }
    }

    fn close(&mut self, of: ConnectionId) {
        let Some(mut socket) = self.take(of) else { return };
        self.closed += 1;
        socket.say_farewell();
        if socket.kept_bytes() > 0 {
            self.orphans.add(of.to_token(), socket, self.now);
        } else if !socket.failed && !socket.overflowed && !socket.read_closed {
            part(socket);
        }
    }

    /// From the system directly: a few bytes for each login, and no generator of our own to seed at the start.
    fn random(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        #[expect(
            clippy::expect_used,
            reason = "without random bytes no login is safe, and the system always has some"
        )]
        let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .expect("the system has random bytes");
        // Up to 256 bytes come whole.
        assert_eq!(filled, bytes.len(), "the system gave too few random bytes");
        bytes
    }

    fn open_server(&mut self, request: OpenServer) {
        self.request(Request::Open(
            request,
            Way { keepalive: self.keepalive, tls: self.tls.servers.clone() },
        ));
    }

    fn cancel_query(&mut self, request: CancelQuery) {
        // Like the session itself, so that a plain one costs no question first.
        let is_plain = self.find(request.server.into()).is_some_and(|socket| socket.secure.is_none());
        let tls = if is_plain { None } else { self.tls.servers.clone() };
        self.request(Request::Cancel(request, tls));
    }

    fn look_at_locks(&mut self, request: LookAtLocks) {
        self.request(Request::Look(
            request,
            Way { keepalive: self.keepalive, tls: self.tls.servers.clone() },
        ));
    }

    fn ask_budget(&mut self, request: BudgetRequest) {
        let way = Way { keepalive: self.keepalive, tls: self.tls.servers.clone() };
        self.request(match request {
            BudgetRequest::Carry { target, order, limit } => {
                Request::Budget(BudgetOrder { target, order, limit }, way)
            }
            BudgetRequest::Leave(address) => Request::LeaveBudget(address),
        });
    }

    fn derive_verifier(&mut self, request: DeriveVerifier) {
        self.request(Request::Derive(request));
    }

    fn hand_to_console(&mut self, client: ClientId, login: ConsoleLogin) {
        let Some(mut socket) = self.take(client.into()) else { return };
        if let Err(error) = self.registry.deregister(&mut SourceFd(&socket.descriptor().as_raw_fd())) {
            tracing::warn!(%error, "cannot hand a session to the console");
            return;
        }
        let tls = socket.secure.take().and_then(|secure| secure.into_session());
        let (descriptor, unsent) = socket.into_parts();
        self.request(Request::Console(HandOver { descriptor, unsent, tls, login }));
    }

    fn start_tls(&mut self, client: ClientId, begun: &[u8]) {
        let accepted = self.tls.clients.clone().map(|tls| {
            let is_direct = !begun.is_empty();
            (tls.accept(is_direct), tls)
        });
        let Some(socket) = self.find(client.into()) else { return };
        match accepted {
            Some((Ok(mut session), tls)) => {
                session.set_pending(begun.to_vec());
                let mut secure = Secure::begin(session, tls.binding(), tls.checks_clients());
                secure.unread = !begun.is_empty();
                socket.readable |= secure.unread;
                socket.secure = Some(Box::new(secure));
            }
            Some((Err(error), _)) => {
                tracing::error!(%error, "cannot start TLS");
                socket.failed = true;
            }
            // Offered by a configuration that has been replaced in between.
            None => socket.failed = true,
        }
        if socket.readable || socket.failed {
            self.make_ready(client.into());
        }
    }

    fn describe_tls(&mut self, client: ClientId) -> String {
        self.tls_of(client.into())
    }

    fn channel_binding(&mut self, client: ClientId) -> Option<ChannelBinding> {
        self.find(client.into())?.secure.as_ref()?.binding()
    }
}

/// The number under which a connection is registered.
pub(crate) fn token(id: ConnectionId) -> Token {
    Token(usize::try_from(id.to_token()).unwrap_or(usize::MAX))
}

/// Ends a connection so that the peer reads everything that was sent: the end first, then what it had sent is taken
/// once, since a close over unread bytes is a reset.
pub(crate) fn part(socket: Socket) {
    let (descriptor, _) = socket.into_parts();
    // Both fail only when the peer is gone.
    let _ = shutdown(&descriptor, Shutdown::Write);
    let mut buffer = [0_u8; DRAIN_BYTES];
    let _ = recv(&descriptor, &mut buffer, RecvFlags::DONTWAIT);
}

#[cfg(test)]
mod tests;
