//! One client's connection, or a link to another relay: its socket, and the task that reads it and keeps its time.

use super::Hub;
use super::inside::Inside;
use super::peer::PeerEnd;
use crate::door::{Admitted, ended_lease};
use crate::elsewhere::Claim;
use crate::hub::Presence;
use clock::unix_ms;
use link::message::{PresenceChange, Refuse};
use link::{Beat, Code, Heartbeat, Kind, WRITE_LIMIT, websocket, write_frame};
use membership::lease::Cause;
use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tls::MAX_PENDING_BYTES;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use trust::{ClientId, Role};

/// Bytes of one receive.
const READ_BYTES: usize = 256 * 1024;
/// Receives of one turn, so that others come to their turn.
const MAX_RECEIVES: usize = 4;
/// A client that is closed may send so much more.
const MOST_UNHEARD: usize = 1024 * 1024;
/// What is still to be said to a client that is closed may take so long.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);

thread_local! {
    /// Lent for as long as nothing is awaited: an idle connection owns no buffer.
    static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> =
        RefCell::new((vec![0; MAX_PENDING_BYTES + READ_BYTES], Vec::new()));
}

/// What is at the other end.
#[derive(Debug)]
pub(crate) enum Part {
    /// It carries streams.
    Provider,
    /// It opens them.
    Opener,
    /// Another relay: it does both, for those that are connected to it.
    Relay(Box<PeerEnd>),
}

#[derive(Debug)]
pub(crate) struct Connection {
    /// Nil for another relay.
    pub client: ClientId,
    pub part: Part,
    /// The number of the start at the other end.
    pub epoch: u64,
    /// Which of that start's connections it is, if the client says so.
    pub(super) dial: u64,
    /// When it came, as a part of its claim.
    pub(super) at_ms: u64,
    /// When its token was issued: a revocation holds for those from before.
    pub(super) issued_at_s: u64,
    pub(super) socket: TcpStream,
    pub(super) inside: RefCell<Inside>,
    /// The task is to look again.
    pub(super) poke: Notify,
    /// It is to end, and why.
    pub(super) ending: Cell<Option<Code>>,
    /// It was told to go; its streams may end.
    pub(super) drained: Cell<bool>,
    /// It is among those to be flushed.
    pub(super) touched: Cell<bool>,
    /// Of a provider: its program, and since when it has been here, ms since 1970.
    pub(super) came: OnceCell<(Box<str>, u64)>,
}

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The relay ends it, and says so.
    Said(Code),
    /// The client has left, or was not heard.
    Gone(Code),
    /// The connection broke.
    Broken(&'static str),
}

impl End {
    /// For the records: a code of the protocol, or 0.
    pub(super) const fn number(&self) -> u16 {
        match self {
            Self::Said(code) | Self::Gone(code) => code.number(),
            Self::Broken(_) => 0,
        }
    }
}

impl Connection {
    /// Takes in a client, in place of an older start of it; then serves it until it ends.
    pub(crate) async fn serve(hub: Rc<Hub>, admitted: Admitted) {
        let (connection, software) = Self::new(&hub, admitted);
        match connection.barred(&hub) {
            Some(code) => {
                hub.counters.refuse(code);
                connection.say(&hub, code);
            }
            None => {
                connection.enter(&hub, software);
                let end = match connection.turn_by_turn(&hub).await {
                    Ok(end) | Err(end) => end,
                };
                connection.leave(&hub, &end);
            }
        }
        connection.farewell().await;
    }

    fn new(hub: &Hub, admitted: Admitted) -> (Rc<Self>, Box<str>) {
        let Admitted { socket, tls, websocket, rest, claims, epoch, dial, interval_ms, software } = admitted;
        let interval = Duration::from_millis(u64::from(interval_ms));
        let heartbeat = Heartbeat::new(interval, hub.config.ping_misses, fastrand::u64(..), hub.clock.now());
        let inside = Inside {
            out: tls::Outbox::wrapping(websocket.is_some().then_some(websocket::wrap_plain as tls::Wrap)),
            websocket,
            ..Inside::new(tls, rest, heartbeat)
        };
        let part = if claims.role == Role::Provider { Part::Provider } else { Part::Opener };
        let claim = hub.elsewhere.borrow().claim(claims.client, epoch, dial, unix_ms());
        let connection = Self {
            client: claims.client,
            epoch,
            dial,
            at_ms: claim.at_ms,
            issued_at_s: claims.issued_at_s,
            ..Self::with(part, socket, inside)
        };
        (Rc::new(connection), software)
    }

    pub(super) fn with(part: Part, socket: TcpStream, inside: Inside) -> Self {
        Self {
            client: ClientId(uuid::Uuid::nil()),
            part,
            epoch: 0,
            dial: 0,
            at_ms: 0,
            issued_at_s: 0,
            socket,
            inside: RefCell::new(inside),
            poke: Notify::new(),
            ending: Cell::new(None),
            drained: Cell::new(false),
            touched: Cell::new(false),
            came: OnceCell::new(),
        }
    }

    pub(crate) const fn is_provider(&self) -> bool {
        matches!(self.part, Part::Provider)
    }

    /// What a provider's connection is worth beside others of it.
    pub(super) const fn claim(&self) -> Claim {
        Claim { epoch: self.epoch, dial: self.dial, at_ms: self.at_ms }
    }

    /// Why it may not come in, if something has changed since its hello was checked: it had to be told the WELCOME meanwhile.
    fn barred(&self, hub: &Hub) -> Option<Code> {
        if hub.newest_epoch(self.client, self.is_provider()).is_some_and(|newest| newest > self.epoch) {
            return Some(Code::Superseded);
        }
        // A later connection of the same start was quicker: nobody waits for this one any more.
        if self.is_provider() && !hub.elsewhere.borrow().holds(self.client, self.claim()) {
            return Some(Code::Idle);
        }
        self.refusal(hub).map(|cause| ended_lease(cause).0)
    }

    /// Why its lease has ended, if it has.
    pub(super) fn refusal(&self, hub: &Hub) -> Option<Cause> {
        hub.keys.borrow().refusal(self.client, self.issued_at_s)
    }

    pub(super) fn enter(self: &Rc<Self>, hub: &Rc<Hub>, software: Box<str>) {
        let before = hub.clients.borrow_mut().insert(self.client, Rc::clone(self));
        if let Some(before) = before {
            if before.is_provider() {
                hub.providers.set(hub.providers.get() - 1);
            }
            if before.drained.get() {
                // A client that was told to go comes back before its old streams have ended.
                hub.set_aside(&before);
            } else {
                before.end(Code::Superseded);
            }
        }
        if self.is_provider() {
            hub.providers.set(hub.providers.get() + 1);
            self.came.get_or_init(|| (software, unix_ms()));
            self.note_presence(hub);
            hub.tell_peers(PresenceChange::Came, self);
        }
        if hub.draining.get() {
            self.send_away(hub);
        }
    }

    /// That it is here, for the records.
    pub(super) fn note_presence(&self, hub: &Hub) {
        if let Some((software, at_ms)) = self.came.get() {
            let (client, epoch, software, at_ms) = (self.client, self.epoch, software.clone(), *at_ms);
            hub.note(Presence::Came { client, epoch, software, at_ms });
        }
    }

    /// It is to end; its own task does it.
    pub(crate) fn end(&self, code: Code) {
        if self.ending.get().is_none() {
            self.ending.set(Some(code));
            self.poke.notify_one();
        }
    }

    pub(super) async fn turn_by_turn(self: &Rc<Self>, hub: &Rc<Hub>) -> Result<End, End> {
        // Frames may have come behind the hello.
        let mut rest = std::mem::take(&mut self.inside.borrow_mut().partial);
        self.handle(hub, &mut rest)?;
        loop {
            self.flush(hub)?;
            if let Some(code) = self.ending.get() {
                return Ok(End::Said(code));
            }
            let now = hub.clock.now();
            let (blocked, wake_at) = {
                let mut inside = self.inside.borrow_mut();
                let wake_at = match inside.heartbeat.tick(now) {
                    Beat::Wait(until) => until,
                    Beat::Ping => {
                        inside.out.rest();
                        inside.routes.shrink_to(0);
                        write_frame(inside.out.plain(), Kind::Ping, 0, |out| {
                            out.extend_from_slice(&now.as_micros().to_be_bytes());
                        });
                        continue;
                    }
                    Beat::GiveUp => return Err(End::Gone(Code::Idle)),
                };
                match inside.blocked_since {
                    Some(since) if now.since(since) >= WRITE_LIMIT => return Err(End::Gone(Code::Stalled)),
                    Some(since) => (true, wake_at.min(since + WRITE_LIMIT)),
                    None => (false, wake_at),
                }
            };
            tokio::select! {
                ready = self.socket.readable() => {
                    ready.map_err(|_| End::Broken("io"))?;
                    self.receive(hub)?;
                }
                ready = self.socket.writable(), if blocked => ready.map_err(|_| End::Broken("io"))?,
                () = self.poke.notified() => {}
                () = tokio::time::sleep_until(hub.clock.instant(wake_at)) => {}
            }
        }
    }

    /// Takes what the socket has, a bounded number of times.
    fn receive(self: &Rc<Self>, hub: &Rc<Hub>) -> Result<(), End> {
        for _ in 0..MAX_RECEIVES {
            let more = SCRATCH.with_borrow_mut(|(incoming, plain)| {
                let mut inside = self.inside.borrow_mut();
                let pending = inside.tls.take_pending(incoming);
                let room = &mut incoming[pending..];
                let full = room.len();
                let count = match self.socket.try_read(room) {
                    Ok(0) => return Err(End::Broken("closed")),
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let kept = incoming[..pending].to_vec();
                        inside.tls.set_pending(kept);
                        return Ok(false);
                    }
                    Err(_) => return Err(End::Broken("io")),
                };
                inside.heartbeat.heard(hub.clock.now());
                plain.clear();
                plain.append(&mut inside.partial);
                let start = plain.len();
                let Inside { tls, out, .. } = &mut *inside;
                let opened = tls.process(&mut incoming[..pending + count], plain, out.sealed());
                opened.map_err(|_| End::Broken("tls"))?;
                let closed = inside.unwrap(plain, start)? || inside.tls.peer_closed();
                drop(inside);
                self.handle(hub, plain)?;
                if closed { Err(End::Broken("closed")) } else { Ok(count == full) }
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Encrypts and sends what there is, as far as the socket takes it.
    pub(super) fn flush(&self, hub: &Hub) -> Result<(), End> {
        let released = {
            let mut inside = self.inside.borrow_mut();
            let owes = self.write_news(&mut inside)?;
            let mut moved = self.send(&mut inside)?;
            let released = Self::releasable(&mut inside);
            if inside.out.bytes() > 0 && !inside.out.is_blocked() {
                moved |= self.send(&mut inside)?;
            }
            hub.count(&mut inside);
            if inside.out.bytes() > hub.share_bytes() + super::data::HIGH_WATER_BYTES {
                // Its streams were cut before; what fills it now are answers to what it asks without end.
                return Err(End::Gone(Code::Stalled));
            }
            let blocked = inside.out.is_blocked();
            if owes && !blocked {
                self.poke.notify_one();
            }
            if moved || !blocked {
                inside.blocked_since = blocked.then(|| hub.clock.now());
            } else if inside.blocked_since.is_none() {
                inside.blocked_since = Some(hub.clock.now());
            }
            released
        };
        self.release(hub, released);
        Ok(())
    }

    fn send(&self, inside: &mut Inside) -> Result<bool, End> {
        let Inside { tls, out, .. } = inside;
        out.flush(tls, |bytes| self.socket.try_write(bytes)).map_err(|_| End::Broken("io"))
    }

    /// [`Self::flush`] from another connection's turn: what goes wrong is for the own task.
    pub(super) fn flush_from_outside(&self, hub: &Hub) {
        let was_blocked = self.inside.borrow().blocked_since.is_some();
        match self.flush(hub) {
            Ok(()) if !was_blocked && self.inside.borrow().blocked_since.is_some() => self.poke.notify_one(),
            Ok(()) => {}
            Err(End::Said(code) | End::Gone(code)) => self.end(code),
            Err(End::Broken(_)) => self.end(Code::Idle),
        }
    }

    /// Sends what is still to be said.
    pub(super) async fn farewell(&self) {
        self.inside.borrow_mut().close();
        let saying = async {
            loop {
                {
                    let mut inside = self.inside.borrow_mut();
                    let Inside { tls, out, .. } = &mut *inside;
                    let sent = out.flush(tls, |bytes| self.socket.try_write(bytes));
                    if sent.is_err() || !out.is_blocked() {
                        return;
                    }
                }
                if self.socket.writable().await.is_err() {
                    return;
                }
            }
        };
        // A client that takes nothing hears nothing.
        let _ = tokio::time::timeout(FAREWELL_LIMIT, saying).await;
        linger(&self.socket, FAREWELL_LIMIT).await;
    }

    /// What the client hears at the end.
    pub(super) fn say(&self, hub: &Hub, code: Code) {
        let ended = self.refusal(hub).filter(|cause| ended_lease(*cause).0 == code);
        let (cause, retry_after) = match ended {
            Some(ended) => (ended.text(), ended_lease(ended).1),
            None => (cause(code), None),
        };
        Refuse { code, cause: cause.into(), retry_after }.write(0, self.inside.borrow_mut().out.plain());
    }
}

/// Ends this side, and takes what still comes until the peer has ended its own: a socket that is closed over unread bytes is
/// reset, and what was said last is lost with it.
pub(crate) async fn linger(socket: &TcpStream, limit: Duration) {
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
    leaves(socket, limit).await;
}

/// Until the peer has ended its side, or sends too much, or the time is over. What comes is thrown away.
pub(crate) async fn leaves(socket: &TcpStream, limit: Duration) {
    let mut left = MOST_UNHEARD;
    let taking = async {
        while left > 0 {
            if socket.readable().await.is_err() {
                return;
            }
            let taken = SCRATCH.with_borrow_mut(|(incoming, _)| socket.try_read(incoming));
            match taken {
                Ok(0) => return,
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    let _ = tokio::time::timeout(limit, taking).await;
}

/// For people.
fn cause(code: Code) -> &'static str {
    match code {
        Code::Superseded => "a newer start of this client is connected; is its state folder used twice?",
        Code::Draining => "this relay goes away",
        _ => "",
    }
}
