//! What is on its way to the relay.

use crate::error::LinkError;
use std::collections::VecDeque;
use std::io;
use std::task::Waker;
use tls::TlsSession;
use tokio::net::TcpStream;

/// Whoever sends much waits while more than this has not gone out.
pub(crate) const HIGH_WATER_BYTES: usize = 256 * 1024;
/// Below this, one that waits goes on.
const LOW_WATER_BYTES: usize = 64 * 1024;
/// Buffers larger than this are given back once they are empty.
const KEPT_BYTES: usize = 4 * 1024;

/// Frames, then ciphertext, then nothing.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Whole frames that are not encrypted yet.
    pub frames: Vec<u8>,
    pub sealed: Vec<u8>,
    sent: usize,
    waiting: VecDeque<Waker>,
}

impl Outbox {
    pub(crate) const fn bytes(&self) -> usize {
        self.frames.len() + self.sealed.len() - self.sent
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.bytes() >= HIGH_WATER_BYTES
    }

    /// The socket takes no more now.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.sent < self.sealed.len()
    }

    /// In the order in which they came: so that streams take turns.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            self.waiting.push_back(waker.clone());
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Encrypts and sends as much as the socket takes; whether anything went out.
    pub(crate) fn flush(&mut self, tls: &mut TlsSession, socket: &TcpStream) -> Result<bool, LinkError> {
        let mut moved = false;
        loop {
            if !self.is_blocked() && !self.frames.is_empty() {
                self.sealed.clear();
                self.sent = 0;
                tls.encrypt(&self.frames, &mut self.sealed)
                    .map_err(|error| LinkError::Tls(error.to_string()))?;
                empty(&mut self.frames);
            }
            if !self.is_blocked() {
                break;
            }
            match socket.try_write(&self.sealed[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(LinkError::io("sending", error)),
            }
        }
        if !self.is_blocked() {
            empty(&mut self.sealed);
            self.sent = 0;
        }
        if self.bytes() < LOW_WATER_BYTES {
            self.wake_all();
        }
        Ok(moved)
    }
}

fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > HIGH_WATER_BYTES {
        buffer.shrink_to(KEPT_BYTES);
    }
}
