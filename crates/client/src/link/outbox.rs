//! What is on its way to the relay, and who waits for room.

use crate::error::LinkError;
use ::link::websocket::wrap_masked;
use std::collections::VecDeque;
use std::task::Waker;
use tls::{SendError, TlsSession, Wrap};
use tokio::net::TcpStream;

/// Whoever sends much waits while more than this has not gone out.
pub(crate) const HIGH_WATER_BYTES: usize = 256 * 1024;
/// Beyond this, the answers to what the relay sends are not added any more.
const FLOOD_BYTES: usize = 8 * 1024 * 1024;
/// Below this, those who wait go on.
const LOW_WATER_BYTES: usize = 64 * 1024;
/// So many of them at once: they fill it again. Those who are woken in vain go to the end of the line, and the one that was woken
/// last runs first: waking all would serve the same few again and again.
const MOST_WOKEN: usize = 3;

#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: tls::Outbox,
    waiting: VecDeque<Waker>,
}

impl Outbox {
    /// Frames go inside a WebSocket, if `websocket`.
    pub(crate) fn new(websocket: bool) -> Self {
        let wrap = websocket.then_some(wrap_masked as Wrap);
        Self { bytes: tls::Outbox::wrapping(wrap), waiting: VecDeque::new() }
    }

    /// What belongs to the WebSocket itself.
    pub(crate) fn add_unwrapped(&mut self, tls: &mut TlsSession, bytes: &[u8]) -> Result<(), LinkError> {
        let sealed = self.bytes.seal_unwrapped(tls, bytes);
        sealed.map_err(|error| LinkError::Tls(error.to_string()))
    }

    /// Where frames are added.
    pub(crate) const fn frames(&mut self) -> &mut Vec<u8> {
        self.bytes.plain()
    }

    /// Where TLS adds what it has to say itself.
    pub(crate) const fn sealed(&mut self) -> &mut Vec<u8> {
        self.bytes.sealed()
    }

    /// No honest relay lets so much wait.
    pub(crate) const fn is_flooded(&self) -> bool {
        self.bytes.bytes() >= FLOOD_BYTES
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.bytes.bytes() >= HIGH_WATER_BYTES
    }

    /// The socket takes no more now.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.bytes.is_blocked()
    }

    /// In the order in which they came: so that streams take turns.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            self.waiting.push_back(waker.clone());
        }
    }

    /// Somebody waits: whoever has had a turn goes behind.
    pub(crate) fn has_line(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// There is room for those who wait: the driver has to come by again, in case that none of the woken ones uses it.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.has_line() && self.bytes.bytes() < LOW_WATER_BYTES
    }

    pub(crate) fn wake_all(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    fn wake_next(&mut self) {
        let count = self.waiting.len().min(MOST_WOKEN);
        self.waiting.drain(..count).for_each(Waker::wake);
    }

    /// Gives back what an idle link does not need.
    pub(crate) fn rest(&mut self) {
        self.bytes.rest();
    }

    /// Encrypts and sends as much as the socket takes; whether anything went out.
    pub(crate) fn flush(&mut self, tls: &mut TlsSession, socket: &TcpStream) -> Result<bool, LinkError> {
        let moved = self.bytes.flush(tls, |bytes| socket.try_write(bytes)).map_err(|error| match error {
            SendError::Tls(error) => LinkError::Tls(error.to_string()),
            SendError::Io(error) => LinkError::io("sending", error),
        })?;
        if self.bytes.bytes() < LOW_WATER_BYTES {
            self.wake_next();
        }
        Ok(moved)
    }
}
