//! The engine and its sockets: what becomes of each event, letter and accepted connection.

use super::Opened;
use super::listener::Accepted;
use super::socket::{Received, Sent, Socket};
use super::sockets::{Sockets, part};
use super::turn::Readiness;
use crate::control::Ask;
use crate::control::inbox::Letter;
use overload::Moment;
use pgwire::message::frontend;
use pooling::Engine;
use pooling::connection::ConnectionId;

/// Bytes of one receive, and the only read buffer of the data plane.
pub(crate) const READ_BUFFER: usize = 64 * 1024;

/// The part of the reactor that knows no poller.
pub(crate) struct Dispatch {
    pub engine: Engine,
    pub sockets: Sockets,
    buffer: Box<[u8]>,
}

impl Dispatch {
    pub(crate) fn new(engine: Engine, sockets: Sockets) -> Self {
        Self { engine, sockets, buffer: vec![0; READ_BUFFER].into_boxed_slice() }
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
            Letter::ServerOpened(opened) => self.on_opened(*opened),
            Letter::ServerFailed(attempt, failure) => engine.on_server_failed(sockets, attempt, failure),
            Letter::CancelEnded(server) => engine.on_cancel_ended(sockets, server),
            Letter::Verifier(derived) => engine.on_verifier(sockets, derived),
        }
    }

    /// Who asked may be gone; then nobody misses the answer.
    fn on_ask(&mut self, ask: Ask) {
        let (engine, sockets) = (&mut self.engine, &mut self.sockets);
        match ask {
            Ask::Pools(answer) => drop(answer.send(engine.pool_rows())),
            Ask::Clients(answer) => drop(answer.send(engine.client_rows())),
            Ask::Servers(answer) => drop(answer.send(engine.server_rows())),
            Ask::Holders(answer) => drop(answer.send(engine.holder_rows())),
            Ask::Overview(answer) => drop(answer.send(engine.overview())),
            Ask::Config(answer) => drop(answer.send(engine.config().clone())),
            Ask::Reload(config, answer) => {
                sockets.keepalive = config.general.tcp_keepalive;
                engine.reload(sockets, config);
                let _ = answer.send(());
            }
            Ask::ShutDown(how) => engine.shut_down(sockets, how),
        }
    }

    /// Watches the socket first and runs what came with the login then, since no event will come for that.
    fn on_opened(&mut self, opened: Opened) {
        let Opened { attempt, server, descriptor, is_unix } = opened;
        let Some(id) = self.engine.on_server_opened(attempt, &server) else {
            // Nobody wants it any more: a friendly end costs the server no line in its log.
            let mut socket = Socket::new(descriptor, 0, is_unix);
            let mut terminate = Vec::new();
            frontend::terminate(&mut terminate);
            socket.send(&[&terminate]);
            return part(socket);
        };
        match self.sockets.add_server(id, descriptor, is_unix) {
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
}
