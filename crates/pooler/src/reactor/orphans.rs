//! Sockets that the engine has closed but whose last bytes the peer has not taken yet.

use super::socket::{Sent, Socket};
use overload::Moment;
use std::collections::VecDeque;
use std::time::Duration;

/// Longest time for the last bytes.
pub(crate) const FLUSH_LIMIT: Duration = Duration::from_secs(5);
/// Orphans at once; the oldest makes room.
pub(crate) const MAX_ORPHANS: usize = 256;

/// In order of their deadlines, since all have the same time.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    queue: VecDeque<Orphan>,
}

#[derive(Debug)]
struct Orphan {
    /// The token under which it is still registered; its generation is in use nowhere else.
    token: u64,
    socket: Socket,
    deadline: Moment,
}

impl Orphans {
    /// Takes over a socket with kept bytes.
    pub(crate) fn add(&mut self, token: u64, socket: Socket, now: Moment) {
        if self.queue.len() >= MAX_ORPHANS {
            self.queue.pop_front();
        }
        self.queue.push_back(Orphan { token, socket, deadline: now + FLUSH_LIMIT });
    }

    /// Something happened at this token. True if it was an orphan that is gone now.
    pub(crate) fn on_event(&mut self, token: u64, writable: bool, failed: bool) -> bool {
        let Some(index) = self.queue.iter().position(|orphan| orphan.token == token) else { return false };
        let over = failed || writable && self.queue[index].socket.flush() != Sent::Kept;
        if over && let Some(orphan) = self.queue.remove(index) {
            super::sockets::part(orphan.socket);
        }
        over
    }

    /// Drops those whose time is over.
    pub(crate) fn on_deadline(&mut self, now: Moment) {
        while self.queue.front().is_some_and(|orphan| orphan.deadline <= now) {
            self.queue.pop_front();
        }
    }

    /// When the oldest is to be dropped.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.queue.front().map(|orphan| orphan.deadline)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// A socket with kept bytes, the peer, and how many bytes were sent to it.
    fn orphan() -> (Socket, UnixStream, usize) {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let mut socket = Socket::new(ours, 0, true);
        let mut length = 0;
        while socket.kept_bytes() == 0 {
            socket.send(&[&[7; 50_000]]);
            length += 50_000;
        }
        (socket, UnixStream::from(theirs), length)
    }

    #[test]
    fn the_last_bytes_of_a_closed_connection_arrive_and_are_followed_by_the_end() {
        let (socket, mut peer, length) = orphan();
        let mut orphans = Orphans::default();
        orphans.add(9, socket, Moment::ORIGIN);
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            peer.read_to_end(&mut received).unwrap();
            received.len()
        });
        while !orphans.is_empty() {
            orphans.on_event(9, true, false);
            std::thread::yield_now();
        }
        assert_eq!(reader.join().unwrap(), length);
    }

    #[test]
    fn a_peer_that_never_reads_is_dropped_at_the_deadline() {
        let (socket, _peer, _) = orphan();
        let mut orphans = Orphans::default();
        orphans.add(9, socket, Moment::ORIGIN);
        let deadline = orphans.next_deadline().unwrap();
        orphans.on_deadline(deadline - Duration::from_micros(1));
        assert_eq!(orphans.queue.len(), 1);
        orphans.on_deadline(deadline);
        assert!(orphans.is_empty());
    }

    #[test]
    fn orphans_are_bounded_and_the_oldest_makes_room() {
        let mut orphans = Orphans::default();
        let mut peers = Vec::new();
        for token in 0..=MAX_ORPHANS as u64 {
            let (socket, peer, _) = orphan();
            peers.push(peer);
            orphans.add(token, socket, Moment::ORIGIN);
        }
        assert_eq!(orphans.queue.len(), MAX_ORPHANS);
        assert!(!orphans.on_event(0, false, true));
        assert!(orphans.on_event(1, false, true));
    }
}
