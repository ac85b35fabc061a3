//! The engine and its sockets: what becomes of each event, letter and accepted connection.

use super::Opened;
use super::listener::Accepted;
use super::secure::Secure;
use super::socket::{Received, Sent, Socket};
use super::sockets::{Sockets, part};
use super::turn::Readiness;
use crate::control::Ask;
use crate::control::inbox::Letter;
use crate::tls::handshakes::{Handshakes, Step, Stepped};
use overload::Moment;
use pgwire::message::frontend;
use pooling::Engine;
use pooling::connection::ConnectionId;
use tls::{MAX_PENDING_BYTES, TlsError};

/// Bytes of one receive, and the only read buffer of the data plane.
pub(crate) const READ_BUFFER: usize = 64 * 1024;
/// Behind what TLS has pending, a whole record always fits.
const _: () = assert!(READ_BUFFER >= MAX_PENDING_BYTES + 16 * 1024);

/// The part of the reactor that knows no poller.
pub(crate) struct Dispatch {
    pub engine: Engine,
    pub sockets: Sockets,
    buffer: Box<[u8]>,
    /// What has been decrypted.
    plain: Vec<u8>,
    /// What TLS has to say for itself.
    out: Vec<u8>,
    /// Started for the first handshake.
    handshakes: Option<Handshakes>,
}

impl Dispatch {
    pub(crate) fn new(engine: Engine, sockets: Sockets) -> Self {
        let buffer = vec![0; READ_BUFFER].into_boxed_slice();
        Self { engine, sockets, buffer, plain: Vec::new(), out: Vec::new(), handshakes: None }
    }

    pub(crate) fn begin_turn(&mut self, now: Moment) {
        self.sockets.now = now;
        self.engine.advance(now);
    }

    /// Something happened at a connection's socket.
    pub(crate) fn on_event(&mut self, id: ConnectionId, event: Readiness) {
        let Some(socket) = self.sockets.find(id) else {
            // Stale, or the last bytes of one that is closed.
            if self.sockets.orphans.on_event(id.to_token(), event.writable, event.reset) {
                self.sockets.closed += 1;
            }
            return;
        };
        socket.readable |= event.readable;
        socket.read_closed |= event.read_closed;
        socket.reset |= event.reset;
        if event.writable && socket.kept_bytes() > 0 {
            self.flush(id);
        }
        // One buffer a turn: what is on the ready list is looked at there.
        if self.sockets.find(id).is_some_and(|socket| !socket.on_ready_list) {
            self.visit(id);
        }
    }

    /// One pass over what has something to do without a new event; what it adds is for the next turn.
    pub(crate) fn visit_ready(&mut self) {
        for _ in 0..self.sockets.ready_clients.len() {
            let Some(id) = self.sockets.ready_clients.pop_front() else { break };
            self.visit_from_list(id);
        }
        for _ in 0..self.sockets.ready_servers.len() {
            let Some(id) = self.sockets.ready_servers.pop_front() else { break };
            self.visit_from_list(id);
        }
    }

    pub(crate) fn on_deadlines(&mut self) {
        let now = self.sockets.now;
        self.sockets.orphans.on_deadline(now);
        if self.engine.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.engine.on_deadline(&mut self.sockets);
        }
    }

    pub(crate) fn on_accepted(&mut self, accepted: Accepted) {
        let Some(id) = self.engine.accept(&mut self.sockets, accepted.address) else { return };
        if let Err(error) = self.sockets.add_client(id, accepted.descriptor, accepted.is_unix) {
            tracing::warn!(%error, "cannot watch a new client's socket");
            self.engine.on_end(&mut self.sockets, id.into());
        }
    }

    pub(crate) fn on_letter(&mut self, letter: Letter) {
        let (engine, sockets) = (&mut self.engine, &mut self.sockets);
        match letter {
            Letter::Ask(ask) => self.on_ask(ask),
            Letter::Handshake(stepped) => self.on_handshake(*stepped),
            Letter::ServerOpened(opened) => self.on_opened(*opened),
            Letter::ServerFailed(attempt, failure) => engine.on_server_failed(sockets, attempt, failure),
            Letter::Budget(answer) => engine.on_budget(sockets, *answer),
            Letter::CancelEnded(server) => engine.on_cancel_ended(sockets, server),
            Letter::LocksSeen(seen) => engine.on_locks_seen(sockets, *seen),
            Letter::Verifier(derived) => engine.on_verifier(sockets, derived),
        }
    }

    /// Who asked may be gone; then nobody misses the answer.
    fn on_ask(&mut self, ask: Ask) {
        let (engine, sockets) = (&mut self.engine, &mut self.sockets);
        match ask {
            Ask::Pools(answer) => drop(answer.send(engine.pool_rows())),
            Ask::Clients(answer) => {
                let mut rows = engine.client_rows();
                for row in &mut rows {
                    row.tls = sockets.tls_of(ConnectionId::from_token(row.id));
                }
                drop(answer.send(rows));
            }
            Ask::Servers(answer) => {
                let mut rows = engine.server_rows();
                for row in &mut rows {
                    row.tls = sockets.tls_of(ConnectionId::from_token(row.id));
                }
                drop(answer.send(rows));
            }
            Ask::Budgets(answer) => drop(answer.send(engine.budget_rows())),
            Ask::Holders(answer) => drop(answer.send(engine.holder_rows())),
            Ask::Patience(answer) => drop(answer.send(engine.patience_rows())),
            Ask::Events(answer) => drop(answer.send(engine.event_rows())),
            Ask::Lanes(answer) => drop(answer.send(engine.lane_rows())),
            Ask::Locks(answer) => drop(answer.send(engine.lock_rows())),
            Ask::Storms(answer) => drop(answer.send(engine.storm_rows())),
            Ask::Stalls(answer) => drop(answer.send(engine.stall_rows())),
            Ask::Overview(answer) => drop(answer.send(engine.overview())),
            Ask::Config(answer) => drop(answer.send(engine.config().clone())),
            Ask::Reload(config, tls, answer) => {
                sockets.keepalive = config.general.tcp_keepalive;
                let replaces_servers = tls.differs_to_servers(&sockets.tls);
                sockets.tls = tls;
                if replaces_servers {
                    engine.retire_all_servers(sockets);
                }
                engine.reload(sockets, config);
                let _ = answer.send(());
            }
            Ask::ShutDown(how) => engine.shut_down(sockets, how),
        }
    }

    /// Watches the socket first and runs what came with the login then, since no event will come for that.
    fn on_opened(&mut self, opened: Opened) {
        let Opened { attempt, server, descriptor, is_unix, tls } = opened;
        let Some(id) = self.engine.on_server_opened(attempt, &server) else {
            // Nobody wants it any more: a friendly end costs the server no line in its log.
            let mut socket = Socket::new(descriptor, 0, is_unix);
            let mut terminate = Vec::new();
            frontend::terminate(&mut terminate);
            if let Some(mut session) = tls {
                let mut sealed = Vec::new();
                // What cannot be encrypted is not sent; the end comes in any case.
                let _ = session.encrypt(&terminate, &mut sealed);
                terminate = sealed;
                socket.secure = Some(Box::new(Secure::established(session)));
            }
            socket.send(&[&terminate]);
            socket.say_farewell();
            return part(socket);
        };
        match self.sockets.add_server(id, descriptor, is_unix, tls) {
            Ok(()) => self.engine.on_server_installed(&mut self.sockets, id, &server.leftover),
            Err(error) => {
                tracing::warn!(%error, "cannot watch a new server's socket");
                self.engine.on_end(&mut self.sockets, id.into());
            }
        }
    }

    fn flush(&mut self, id: ConnectionId) {
        let Some(before) = self.sockets.find(id).map(|socket| socket.kept_bytes()) else { return };
        match self.sockets.flush(id) {
            Some(Sent::All) => self.engine.on_flushed(&mut self.sockets, id),
            Some(Sent::Kept) if self.sockets.find(id).is_some_and(|socket| socket.kept_bytes() < before) => {
                self.engine.on_progress(id);
            }
            Some(Sent::Kept | Sent::Failed) | None => {}
        }
    }

    fn visit_from_list(&mut self, id: ConnectionId) {
        if let Some(socket) = self.sockets.find(id) {
            socket.on_ready_list = false;
            self.visit(id);
        }
    }

    /// Receives once, or tells what is known about a peer that nobody reads from.
    fn visit(&mut self, id: ConnectionId) {
        let Some(socket) = self.sockets.find(id) else { return };
        if socket.overflowed || socket.failed && !socket.reading_on {
            return self.engine.on_end(&mut self.sockets, id);
        }
        if !socket.reading_on {
            let news = !socket.told_read_closed || socket.reset && !socket.told_reset;
            if socket.read_closed && news {
                let reset = socket.reset;
                socket.told_read_closed = true;
                socket.told_reset = reset;
                self.engine.on_hangup(&mut self.sockets, id, reset);
            }
            return;
        }
        // After a failed send, what the peer said before it left is still worth reading.
        let ending = socket.read_closed || socket.failed;
        if !socket.readable && !ending {
            return;
        }
        if socket.secure.is_some() {
            return self.visit_secure(id, ending);
        }
        match socket.receive(&mut self.buffer) {
            Received::Bytes(count) => {
                // A short read has drained the socket, unless its end was seen before: then the end is still to be read.
                socket.readable = count == self.buffer.len() || ending;
                if socket.readable {
                    self.sockets.make_ready(id);
                }
                self.engine.on_bytes(&mut self.sockets, id, &self.buffer[..count]);
            }
            Received::Nothing if socket.failed => self.engine.on_end(&mut self.sockets, id),
            Received::Nothing => socket.readable = false,
            Received::End => self.engine.on_end(&mut self.sockets, id),
        }
    }

    /// The same for a socket with TLS: what is received goes behind the part of a record that is there already.
    fn visit_secure(&mut self, id: ConnectionId, ending: bool) {
        let Some(socket) = self.sockets.find(id) else { return };
        let Some(mut secure) = socket.secure.take() else { return };
        let unread = std::mem::take(&mut secure.unread);
        let Some(session) = secure.session() else {
            // Its handshake is being worked on. A peer that has gone needs no answer.
            socket.secure = Some(secure);
            if ending {
                self.engine.on_end(&mut self.sockets, id);
            }
            return;
        };
        let pending = if session.peer_closed() { 0 } else { session.take_pending(&mut self.buffer) };
        let received = match session.peer_closed() {
            true => Received::End,
            false => socket.receive(&mut self.buffer[pending..]),
        };
        let total = match received {
            Received::Bytes(count) => {
                socket.readable = pending + count == self.buffer.len() || ending;
                pending + count
            }
            // The end is received once more, after what has come with the order to start.
            Received::Nothing | Received::End if unread => {
                socket.readable = received == Received::End;
                pending
            }
            Received::Nothing if !socket.failed => {
                session.set_pending(self.buffer[..pending].to_vec());
                socket.readable = false;
                socket.secure = Some(secure);
                return;
            }
            Received::Nothing | Received::End => {
                socket.secure = Some(secure);
                return self.engine.on_end(&mut self.sockets, id);
            }
        };
        let is_readable = socket.readable;
        let step = secure.take_for_dear_step();
        let (mut plain, mut out) = (std::mem::take(&mut self.plain), std::mem::take(&mut self.out));
        let result = match (&step, secure.session()) {
            (None, Some(session)) => session.process(&mut self.buffer[..total], &mut plain, &mut out),
            _ => Ok(()),
        };
        secure.settle();
        socket.secure = Some(secure);
        if is_readable {
            self.sockets.make_ready(id);
        }
        match step {
            Some((session, alive)) => {
                let incoming = self.buffer[..total].to_vec();
                self.start_step(id, Step { id, session, incoming, alive });
            }
            None => self.after_step(id, result, &plain, &out),
        }
        plain.clear();
        out.clear();
        (self.plain, self.out) = (plain, out);
    }

    fn start_step(&mut self, id: ConnectionId, step: Step) {
        if self.handshakes.is_none() {
            match Handshakes::start(self.sockets.inbox()) {
                Ok(handshakes) => self.handshakes = Some(handshakes),
                Err(error) => tracing::error!(%error, "cannot start the threads of TLS handshakes"),
            }
        }
        if !self.handshakes.as_ref().is_some_and(|handshakes| handshakes.take(step)) {
            self.engine.on_broken(&mut self.sockets, id, "too many TLS handshakes at once");
        }
    }

    /// A thread has done a step of a handshake.
    fn on_handshake(&mut self, stepped: Stepped) {
        let Stepped { id, session, plain, out, result } = stepped;
        let Some(socket) = self.sockets.find(id) else { return };
        let Some(secure) = &mut socket.secure else { return };
        secure.give_back(session);
        // Whatever came meanwhile has had its event.
        socket.readable = true;
        self.sockets.make_ready(id);
        self.after_step(id, result, &plain, &out);
    }

    /// What TLS has to say goes out first, then what it has decrypted goes in.
    fn after_step(&mut self, id: ConnectionId, result: Result<(), TlsError>, plain: &[u8], out: &[u8]) {
        if !out.is_empty() {
            self.sockets.send_bytes(id, &[out]);
        }
        if let Err(error) = result {
            return self.engine.on_broken(&mut self.sockets, id, &format!("TLS error: {error}"));
        }
        if let Some(socket) = self.sockets.find(id)
            && socket
                .secure
                .as_mut()
                .and_then(|secure| secure.session())
                .is_some_and(|session| session.peer_closed())
        {
            socket.readable = true;
            self.sockets.make_ready(id);
        }
        if !plain.is_empty() {
            self.engine.on_bytes(&mut self.sockets, id, plain);
        }
    }
}
