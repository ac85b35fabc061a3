//! What one link knows, under its lock.

use super::Shared;
use super::outbox::Outbox;
use crate::error::{LinkError, OpenError};
use crate::meter::{Counter, Meter};
use ::link::message::{Refuse, Reset, Welcome, write_credit};
use ::link::seal::{Answer, Initiator, Sealer, TAG_BYTES, Unsealer};
use ::link::websocket::{self, End, Reader};
use ::link::{Code, Heartbeat, Kind, ReceiveCredit, SendCredit, Sharing, write_frame};
use clock::Clock;
use overload::Moment;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tls::TlsSession;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use trust::ContractId;

/// Contracts that are remembered as shown; more end the oldest way of remembering, and are shown again.
pub(super) const MAX_SHOWN: usize = 4_096;

#[derive(Debug)]
pub(crate) struct State {
    pub tls: TlsSession,
    /// The frames are inside a WebSocket.
    pub websocket: Option<Box<Reader>>,
    /// The start of a frame whose rest has not come.
    pub partial: Vec<u8>,
    pub out: Outbox,
    pub streams: HashMap<u32, StreamState>,
    /// How they share what may be under way.
    pub sharing: Sharing,
    pub next_stream: u32,
    pub shown: HashSet<ContractId>,
    pub heartbeat: Heartbeat,
    pub ping_sent_at: Option<Moment>,
    pub round_trip: Option<Duration>,
    /// No handle is left: it ends with its last stream.
    pub unwanted: bool,
    /// Why it ends.
    pub ending: Option<LinkError>,
    /// Streams that take nothing in until the meter's rate allows it.
    pub resting: Resting,
}

/// What has been said about an open: the answer and when it came, or why not.
pub(crate) type Verdict = Result<Answer, OpenError>;

/// One stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// The opener's handshake, until the provider's answer is here.
    pub opening: Option<(Initiator, oneshot::Sender<Verdict>)>,
    pub send_credit: SendCredit,
    pub receive_credit: ReceiveCredit,
    pub sealer: Option<Sealer>,
    pub unsealer: Option<Unsealer>,
    /// Opened, and not taken; from `taken` on.
    pub received: Vec<u8>,
    pub taken: usize,
    /// Where what is opened goes at once, if it can.
    pub sink: Option<Arc<TcpStream>>,
    /// The other end has said, under the seal, that nothing more comes.
    pub peer_ended: bool,
    pub fin_received: bool,
    pub fin_sent: bool,
    /// It is over, and why.
    pub reset: Option<Code>,
    pub read_waker: Option<Waker>,
    pub write_waker: Option<Waker>,
    pub meter: Arc<Meter>,
    /// What its own bytes are told to.
    pub counter: Option<Arc<dyn Counter>>,
    clock: Clock,
    /// Plain bytes that the other end has sent, and this one.
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

impl State {
    pub(super) fn new(
        tls: TlsSession,
        websocket: Option<Box<Reader>>,
        rest: Vec<u8>,
        welcome: &Welcome,
        now: Moment,
    ) -> Self {
        let interval = Duration::from_millis(u64::from(welcome.ping_interval_ms));
        Self {
            tls,
            partial: rest,
            out: Outbox::new(websocket.is_some()),
            websocket,
            streams: HashMap::new(),
            sharing: Sharing::default(),
            next_stream: 1,
            shown: HashSet::new(),
            heartbeat: Heartbeat::new(interval, welcome.ping_misses, fastrand::u64(..), now),
            ping_sent_at: None,
            round_trip: None,
            unwanted: false,
            ending: None,
            resting: Resting::default(),
        }
    }

    /// Writes a PING.
    pub(super) fn ping(&mut self, now: Moment) {
        self.out.rest();
        write_frame(self.out.frames(), Kind::Ping, 0, |out| {
            out.extend_from_slice(&now.as_micros().to_be_bytes());
        });
        self.ping_sent_at = Some(now);
    }

    /// It is to end; the driver does it.
    pub(crate) fn close(&mut self, code: Code, error: LinkError) {
        if self.ending.is_none() {
            Refuse { code, cause: "".into(), retry_after: None }.write(0, self.out.frames());
            self.ending = Some(error);
        }
    }

    /// Takes what stands in `plain` from `start` on out of the WebSocket, if it is in one; whether the relay has closed that.
    pub(super) fn unwrap(&mut self, plain: &mut Vec<u8>, start: usize) -> Result<bool, LinkError> {
        let Some(websocket) = &mut self.websocket else { return Ok(false) };
        let mut reply = Vec::new();
        let read = websocket.read(plain, start, &mut reply);
        read.map_err(|error| LinkError::WebSocket(error.to_string().into()))?;
        if !reply.is_empty() {
            self.out.add_unwrapped(&mut self.tls, &reply)?;
        }
        Ok(websocket.is_closed())
    }

    /// What is said to a WebSocket at its end.
    pub(super) fn close_websocket(&mut self) {
        if self.websocket.is_some() {
            let mut farewell = Vec::new();
            websocket::close(End::Client, &mut farewell);
            // A connection that cannot encrypt says nothing.
            let _ = self.out.add_unwrapped(&mut self.tls, &farewell);
        }
    }

    /// Encrypts and sends what there is, as far as the socket takes it; whether anything went out.
    pub(super) fn send(&mut self, socket: &TcpStream) -> Result<bool, LinkError> {
        self.out.flush(&mut self.tls, socket)
    }

    /// The same; an error ends the link, which the driver sees to.
    pub(crate) fn flush(&mut self, shared: &Shared) {
        let flushed = self.send(&shared.socket);
        let blocked = self.out.is_blocked();
        if let Err(error) = flushed {
            self.ending.get_or_insert(error);
            shared.poke.notify_one();
        } else if blocked || self.out.is_waited_for() {
            shared.poke.notify_one();
        }
    }

    /// RESET goes out, and the stream is over here.
    pub(crate) fn reset(&mut self, id: u32, code: Code) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.reset.is_none() {
            Reset::because(code).write(id, self.out.frames());
            stream.end(code);
        }
    }

    /// The stream's handle is gone.
    pub(crate) fn forget(&mut self, id: u32) {
        let Some(stream) = self.streams.remove(&id) else { return };
        if stream.reset.is_none() && !(stream.fin_sent && stream.fin_received) {
            Reset::because(Code::Cancelled).write(id, self.out.frames());
        }
    }
}

/// Streams that wait for the meter's rate, each once.
#[derive(Debug, Default)]
pub(crate) struct Resting(Vec<Waker>);

impl Resting {
    /// Wakes `waker` once the rate allows more. The driver keeps the time: it has to be poked.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if !self.0.iter().any(|resting| resting.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    pub(super) fn wake_all(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

impl StreamState {
    pub(super) fn new(shared: &Shared, send_window: u32, now: Moment) -> Self {
        let welcome = &shared.welcome;
        Self {
            opening: None,
            send_credit: SendCredit::new(send_window),
            receive_credit: ReceiveCredit::new(welcome.window_bytes, welcome.greatest_window_bytes, now),
            sealer: None,
            unsealer: None,
            received: Vec::new(),
            taken: 0,
            sink: None,
            peer_ended: false,
            fin_received: false,
            fin_sent: false,
            reset: None,
            read_waker: None,
            write_waker: None,
            meter: Arc::clone(&shared.meter),
            counter: None,
            clock: shared.clock,
            received_bytes: 0,
            sent_bytes: 0,
        }
    }

    /// Ends it in both directions.
    pub(crate) fn end(&mut self, code: Code) {
        self.reset.get_or_insert(code);
        self.received = Vec::new();
        self.taken = 0;
        if let Some((_, verdict)) = self.opening.take() {
            drop(verdict.send(Err(OpenError::refused(code, "the stream was reset"))));
        }
        self.wake();
    }

    pub(crate) fn wake(&mut self) {
        self.wake_reader();
        self.wake_writer();
    }

    pub(crate) fn wake_reader(&mut self) {
        if let Some(waker) = self.read_waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn wake_writer(&mut self) {
        if let Some(waker) = self.write_waker.take() {
            waker.wake();
        }
    }

    /// What has been opened and not taken.
    pub(crate) fn untaken(&self) -> &[u8] {
        &self.received[self.taken..]
    }

    /// So many of [`Self::untaken`] have been passed on; grants what is to be granted.
    pub(crate) fn take(
        &mut self,
        id: u32,
        bytes: usize,
        now: Moment,
        sharing: &mut Sharing,
        frames: &mut Vec<u8>,
    ) {
        self.taken += bytes;
        if self.taken == self.received.len() {
            self.received.clear();
            self.received.shrink_to(0);
            self.taken = 0;
        }
        self.consumed(id, bytes, now, sharing, frames);
    }

    /// So many payload bytes need no room any more.
    pub(crate) fn consumed(
        &mut self,
        id: u32,
        bytes: usize,
        now: Moment,
        sharing: &mut Sharing,
        frames: &mut Vec<u8>,
    ) {
        if let Some(grant) = self.receive_credit.consume(bytes, now, sharing)
            && !self.fin_received
            && self.reset.is_none()
        {
            write_credit(id, grant, frames);
        }
    }

    /// Plain bytes that may be sent now, in messages of the greatest size.
    pub(crate) fn room(&self) -> usize {
        let credit = usize::try_from(self.send_credit.available()).unwrap_or(usize::MAX);
        let messages = credit.div_ceil(::link::MAX_PAYLOAD_BYTES);
        credit.saturating_sub(messages * TAG_BYTES)
    }

    /// Seals `plain`, of at most [`Self::room`] bytes, as DATA. With `ends`, the sealed end and FIN follow.
    pub(crate) fn send(
        &mut self,
        id: u32,
        plain: &[u8],
        ends: bool,
        frames: &mut Vec<u8>,
    ) -> Result<(), Unlocked> {
        let Some(sealer) = &mut self.sealer else { return Err(Unlocked) };
        for part in plain.chunks(::link::seal::MAX_PLAIN_BYTES) {
            self.send_credit.spend(part.len() + TAG_BYTES).map_err(|_| Unlocked)?;
            data(sealer, id, part, frames)?;
        }
        self.sent_bytes += plain.len() as u64;
        self.meter.carried(plain.len(), || self.clock.now());
        if let Some(counter) = &self.counter {
            counter.carried(plain.len() as u64);
        }
        if ends && !self.fin_sent {
            self.fin_sent = true;
            // The end counts for nothing: it must be possible without credit.
            data(sealer, id, &[], frames)?;
            write_frame(frames, Kind::Fin, id, |_| {});
        }
        Ok(())
    }
}

fn data(sealer: &mut Sealer, id: u32, plain: &[u8], frames: &mut Vec<u8>) -> Result<(), Unlocked> {
    let mut sealed = Ok(());
    write_frame(frames, Kind::Data, id, |out| sealed = sealer.seal(plain, out));
    sealed.map_err(|_| Unlocked)
}

/// A stream that cannot be sealed: it is to be reset.
#[derive(Debug)]
pub(crate) struct Unlocked;
