//! One connection's socket: what is kept for it, and what is known of its state. 40 bytes while it is idle without TLS.

use super::secure::Secure;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg, shutdown};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes kept for a peer that does not read; a connection that is owed more has failed. The engine stops reading from
/// the source at the first kept byte: what is kept is at most what a waiter may hold (1 MB), a read buffer, and a few
/// messages of our own.
pub(crate) const MAX_KEPT_BYTES: usize = 2 << 20;
/// Parts of one `sendmsg`; more are sent by another.
const MAX_PARTS: usize = 16;
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// What became of a send or a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The peer's side took everything.
    All,
    /// Some bytes are kept.
    Kept,
    /// The connection has failed, now or earlier; the bytes are gone.
    Failed,
}

/// What a receive gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// That many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// End of stream, or an error that means it.
    End,
}

/// A socket with its state.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    generation: u32,
    kept: Option<Box<Kept>>,
    /// TLS. What is sent and received here is what goes over the wire.
    pub secure: Option<Box<Secure>>,
    /// Something may be there to read.
    pub readable: bool,
    /// The engine wants bytes.
    pub reading_on: bool,
    /// RDHUP, HUP or ERR has been seen: a short read is no longer the end.
    pub read_closed: bool,
    /// HUP or ERR has been seen.
    pub reset: bool,
    /// The engine has been told of `read_closed` while reading was off.
    pub told_read_closed: bool,
    /// The engine has been told of `reset` while reading was off.
    pub told_reset: bool,
    /// Waits in the ready list.
    pub on_ready_list: bool,
    /// A Unix socket: watched for writing only while bytes are kept.
    pub is_unix: bool,
    /// A send failed: what has come may still be read, then it ends.
    pub failed: bool,
    /// More than [`MAX_KEPT_BYTES`] would have been kept: it ends at once.
    pub overflowed: bool,
    shut_down_once_flushed: bool,
}

#[derive(Debug)]
struct Kept {
    bytes: Vec<u8>,
    sent: usize,
}

impl Socket {
    pub(crate) const fn new(descriptor: OwnedFd, generation: u32, is_unix: bool) -> Self {
        Self {
            descriptor,
            generation,
            kept: None,
            secure: None,
            readable: false,
            reading_on: true,
            read_closed: false,
            reset: false,
            told_read_closed: false,
            told_reset: false,
            on_ready_list: false,
            is_unix,
            failed: false,
            overflowed: false,
            shut_down_once_flushed: false,
        }
    }

    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Bytes that wait for the peer.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes.len() - kept.sent)
    }

    /// Sends the parts as one write, as far as the peer takes them, and keeps the rest.
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> Sent {
        if self.failed || self.overflowed {
            return Sent::Failed;
        }
        let taken = if self.kept.is_some() {
            0
        } else {
            match self.send_now(parts) {
                Ok(taken) => taken,
                Err(_) => return self.fail(),
            }
        };
        self.keep(parts, taken)
    }

    /// Sends what is kept, by one write.
    pub(crate) fn flush(&mut self) -> Sent {
        let Some(kept) = &mut self.kept else { return if self.failed { Sent::Failed } else { Sent::All } };
        match retry(|| send(&self.descriptor, &kept.bytes[kept.sent..], SEND_FLAGS)) {
            Ok(taken) => kept.sent += taken,
            Err(Errno::AGAIN) => return Sent::Kept,
            Err(_) => return self.fail(),
        }
        if kept.sent < kept.bytes.len() {
            return Sent::Kept;
        }
        self.kept = None;
        if self.shut_down_once_flushed {
            self.shut_down_write();
        }
        Sent::All
    }

    /// Receives once.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Received {
        match retry(|| recv(&self.descriptor, &mut *buffer, RecvFlags::DONTWAIT)) {
            Ok((0, _)) => Received::End,
            Ok((count, _)) => Received::Bytes(count),
            Err(Errno::AGAIN) => Received::Nothing,
            Err(_) => Received::End,
        }
    }

    /// Tells the peer that nothing more comes, once everything kept has left.
    pub(crate) fn shut_down_write(&mut self) {
        if self.kept.is_some() {
            self.shut_down_once_flushed = true;
        } else if !self.failed {
            // It fails only when the peer is gone, which the poller tells as well.
            let _ = shutdown(&self.descriptor, Shutdown::Write);
        }
    }

    /// Tells the peer, where there is TLS, that nothing more comes; once.
    pub(crate) fn say_farewell(&mut self) {
        if self.read_closed || self.failed {
            return;
        }
        let farewell = self.secure.as_mut().map(|secure| secure.farewell()).unwrap_or_default();
        if !farewell.is_empty() {
            self.send(&[&farewell]);
        }
    }

    /// Gives up the descriptor and what is kept.
    pub(crate) fn into_parts(mut self) -> (OwnedFd, Vec<u8>) {
        let kept = self.kept.take().map_or_else(Vec::new, |mut kept| kept.bytes.split_off(kept.sent));
        (self.descriptor, kept)
    }

    /// One write for one part, one gathered write for several. How many bytes were taken.
    fn send_now(&self, parts: &[&[u8]]) -> Result<usize, Errno> {
        let mut taken = 0;
        for group in parts.chunks(MAX_PARTS) {
            let length: usize = group.iter().map(|part| part.len()).sum();
            if length == 0 {
                continue;
            }
            let result = if let [part] = group {
                retry(|| send(&self.descriptor, part, SEND_FLAGS))
            } else {
                let mut slices = [IoSlice::new(&[]); MAX_PARTS];
                for (slice, part) in slices.iter_mut().zip(group) {
                    *slice = IoSlice::new(part);
                }
                let slices = &slices[..group.len()];
                retry(|| sendmsg(&self.descriptor, slices, &mut SendAncillaryBuffer::default(), SEND_FLAGS))
            };
            match result {
                Ok(count) => {
                    taken += count;
                    if count < length {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    fn keep(&mut self, parts: &[&[u8]], mut taken: usize) -> Sent {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if taken == length {
            return if self.kept.is_some() { Sent::Kept } else { Sent::All };
        }
        if self.kept_bytes() + length - taken > MAX_KEPT_BYTES {
            self.kept = None;
            self.overflowed = true;
            return Sent::Failed;
        }
        let kept = self.kept.get_or_insert_with(|| Box::new(Kept { bytes: Vec::new(), sent: 0 }));
        if kept.sent > 0 {
            kept.bytes.drain(..kept.sent);
            kept.sent = 0;
        }
        kept.bytes.reserve(length - taken);
        for part in parts {
            let skipped = taken.min(part.len());
            taken -= skipped;
            kept.bytes.extend_from_slice(&part[skipped..]);
        }
        Sent::Kept
    }

    fn fail(&mut self) -> Sent {
        self.kept = None;
        self.failed = true;
        Sent::Failed
    }
}

/// A signal may interrupt any call; none of ours blocks, so that a second attempt is enough in practice.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    const MAX_INTERRUPTIONS: usize = 8;
    let mut result = call();
    for _ in 0..MAX_INTERRUPTIONS {
        if !matches!(result, Err(Errno::INTR)) {
            break;
        }
        result = call();
    }
    result
}

#[cfg(test)]
mod tests;
