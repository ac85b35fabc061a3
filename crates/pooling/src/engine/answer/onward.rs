//! What of a read from a server goes on to its client, in as few writes as may be.

use crate::connection::ClientId;
use crate::seam::{Flow, Transport};

/// Parts of one write.
const MAX_PARTS: usize = 4;

/// On the way to a client. Without one, nothing goes anywhere.
pub(super) struct Onward<'a, T> {
    transport: &'a mut T,
    client: Option<ClientId>,
    input: &'a [u8],
    /// Where the run of bytes begins that are the client's and have not been put yet.
    run: Option<usize>,
    parts: [&'a [u8]; MAX_PARTS],
    count: usize,
    /// Sent so far.
    pub(super) bytes: u64,
    /// The client does not take them.
    pub(super) is_blocked: bool,
}

impl<'a, T: Transport> Onward<'a, T> {
    pub(super) fn new(transport: &'a mut T, client: Option<ClientId>, input: &'a [u8]) -> Self {
        let parts = [&[][..]; MAX_PARTS];
        Self { transport, client, input, run: None, parts, count: 0, bytes: 0, is_blocked: false }
    }

    /// The bytes from here on are the client's.
    #[inline]
    pub(super) fn begin_run(&mut self, at: usize) {
        if self.client.is_some() {
            self.run.get_or_insert(at);
        }
    }

    /// The bytes from here on are not.
    #[inline]
    pub(super) fn end_run(&mut self, at: usize) {
        if let Some(start) = self.run.take() {
            self.put(&self.input[start..at]);
        }
    }

    /// An answer of the pooler's own, behind what has been put.
    pub(super) fn put(&mut self, bytes: &'a [u8]) {
        if self.count == MAX_PARTS {
            self.flush();
        }
        self.parts[self.count] = bytes;
        self.count += 1;
    }

    /// Something that does not last until the end of the read: it goes at once, behind what has been put.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.flush();
        if let Some(client) = self.client {
            self.bytes += bytes.len() as u64;
            self.is_blocked |= self.transport.send(client.into(), &[bytes]) == Flow::Blocked;
        }
    }

    pub(super) fn flush(&mut self) {
        let count = std::mem::take(&mut self.count);
        if let Some(client) = self.client.filter(|_| count > 0) {
            let parts = &self.parts[..count];
            self.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            self.is_blocked |= self.transport.send(client.into(), parts) == Flow::Blocked;
        }
    }
}
