//! What a server still owes: the queue of replies that the messages sent to it will bring.
//!
//! At any moment it tells whether the server is at rest, in the middle of a batch, or in a COPY, and whether the next
//! answer belongs to the client or to the pooler itself. Any message that does not fit the queue is a [`Desync`]: the
//! connection is then closed, since a reply that is one behind would go to the wrong client.
//! Source: PostgreSQL documentation, "Message Flow".

mod owed;
mod terms;

pub use terms::{Desync, Noted, Origin, Owes, Received, SendError, Settled, Simulated};

use crate::message::TransactionStatus;
use owed::{Copy, Kind, Owed};
use std::collections::VecDeque;
use std::ops::Range;

/// Most replies owed at once. A client with more in flight is not read until some have come.
pub const MAX_OWED: usize = 65_536;

/// The replies that one server still owes, in order.
#[derive(Debug)]
pub struct ReplyQueue {
    owed: VecDeque<Owed>,
    status: TransactionStatus,
    copy: Copy,
    /// An extended message was sent and no Sync after it.
    open_batch: bool,
    /// The server reported an error and ignores everything up to the next Sync, which has not been sent yet.
    skipping: bool,
    /// Syncs that a COPY which failed may have swallowed: as many ReadyForQuery may come, or fewer. Any other answer tells
    /// that no more of them will.
    perhaps_owed: usize,
    /// Something that a COPY which failed may have swallowed, or that the server carries out: answers may come that nobody
    /// can tell apart.
    is_lost: bool,
    /// Part of the head's answer has come.
    begun: bool,
    /// ReadyForQuery messages owed.
    readies: usize,
    /// Simulated answers among those owed.
    simulated: usize,
    /// Ends of COPY among what is owed.
    copy_ends: usize,
    settled: Settled,
}

impl Default for ReplyQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplyQueue {
    /// For a server that has just logged us in.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            owed: VecDeque::new(),
            status: TransactionStatus::Idle,
            copy: Copy::None,
            open_batch: false,
            skipping: false,
            perhaps_owed: 0,
            is_lost: false,
            begun: false,
            readies: 0,
            simulated: 0,
            copy_ends: 0,
            settled: Settled { confirmed: 0, failed: false, skipped: 0 },
        }
    }

    /// The last transaction status that the server reported.
    #[must_use]
    pub const fn status(&self) -> TransactionStatus {
        self.status
    }

    /// Replies owed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// ReadyForQuery messages owed: how many queries and synced batches are still under way.
    #[must_use]
    pub const fn readies(&self) -> usize {
        self.readies
    }

    /// True if the server ignores what is sent up to the next Sync.
    #[must_use]
    pub const fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// Whose answer comes next.
    #[must_use]
    pub fn head_origin(&self) -> Option<Origin> {
        self.owed.front().map(|owed| owed.origin)
    }

    /// True if no reply is owed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// True if nothing is owed, no batch is open and no transaction either: another client may have the server.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.owed.is_empty() && !self.open_batch && matches!(self.status, TransactionStatus::Idle)
    }

    /// True if the server must not be used by another client although it looks settled: ReadyForQuery may come that
    /// nobody asked for, or answers to what a COPY that failed has perhaps not swallowed.
    #[must_use]
    pub const fn is_doubtful(&self) -> bool {
        self.perhaps_owed > 0 || self.is_lost
    }

    /// What the server is in the middle of.
    #[must_use]
    pub fn owes(&self) -> Owes {
        match self.copy {
            Copy::Both => Owes::Replication,
            // All data has been sent; what is left is the server's work.
            Copy::In if self.copy_ends > 0 => {
                if self.open_batch {
                    Owes::Batch
                } else {
                    Owes::Query
                }
            }
            Copy::In => {
                Owes::CopyIn { extended: self.owed.front().is_some_and(|head| head.kind == Kind::Execute) }
            }
            Copy::Out => Owes::CopyOut,
            Copy::None if self.open_batch => Owes::Batch,
            Copy::None if self.owed.is_empty() => Owes::Nothing(self.status),
            Copy::None => Owes::Query,
        }
    }

    /// True if an extended batch has been begun and no Sync sent after it.
    #[must_use]
    pub const fn has_open_batch(&self) -> bool {
        self.open_batch
    }

    /// Notes a message that goes to the server.
    ///
    /// # Errors
    /// Too many replies owed, or a tag that no client sends in a running session. The message must then not be sent.
    #[inline]
    pub fn sent(&mut self, tag: u8, origin: Origin) -> Result<Noted, SendError> {
        self.note(tag, origin, false)
    }

    /// The same for a Parse, Bind, Describe, Close or Query that changes something once it is answered: [`Self::take_settled`] tells its fate, if it is
    /// owed an answer at all.
    ///
    /// # Errors
    /// As [`Self::sent`].
    pub fn sent_with_effect(&mut self, tag: u8, origin: Origin) -> Result<Noted, SendError> {
        self.note(tag, origin, true)
    }

    /// Notes an answer, with an effect, that the pooler gives itself in place of a message that is not sent.
    ///
    /// # Errors
    /// Too many replies owed.
    pub fn simulate(&mut self, answer: Simulated) -> Result<Noted, SendError> {
        if self.owed.len() >= MAX_OWED {
            return Err(SendError::Full);
        }
        if self.skipping {
            return Ok(Noted::Nothing);
        }
        self.open_batch = true;
        let kind = match answer {
            Simulated::CloseComplete => Kind::Close,
            Simulated::ParseComplete => Kind::Parse,
        };
        self.owed.push_back(Owed { kind, origin: Origin::Client, effect: true, simulated: true });
        self.simulated += 1;
        Ok(Noted::Owed)
    }

    /// True if the next answer is one that the pooler gives itself.
    #[must_use]
    #[inline]
    pub fn is_next_simulated(&self) -> bool {
        self.simulated > 0 && self.owed.front().is_some_and(|owed| owed.simulated)
    }

    /// The simulated answer whose turn has come, if the next one is simulated.
    #[inline]
    pub fn take_simulated(&mut self) -> Option<Simulated> {
        let answer = match self.owed.front()? {
            Owed { simulated: true, kind: Kind::Close, .. } => Simulated::CloseComplete,
            Owed { simulated: true, .. } => Simulated::ParseComplete,
            _ => return None,
        };
        self.simulated -= 1;
        self.owed.pop_front();
        self.settled.confirmed += 1;
        Some(answer)
    }

    /// What has become of messages with an effect since the last call.
    #[inline]
    pub fn take_settled(&mut self) -> Settled {
        std::mem::take(&mut self.settled)
    }

    #[inline]
    fn note(&mut self, tag: u8, origin: Origin, effect: bool) -> Result<Noted, SendError> {
        let kind = match tag {
            b'Q' => Kind::Query,
            b'P' => Kind::Parse,
            b'B' => Kind::Bind,
            b'D' => Kind::Describe,
            b'E' => Kind::Execute,
            b'C' => Kind::Close,
            b'S' => Kind::Sync,
            b'F' => Kind::FunctionCall,
            b'c' | b'f' => Kind::CopyEnd,
            // CopyData and Flush bring nothing.
            b'd' | b'H' => return Ok(Noted::Nothing),
            _ => return Err(SendError::Unknown { tag }),
        };
        if self.owed.len() >= MAX_OWED {
            return Err(SendError::Full);
        }
        match kind {
            Kind::Sync => {
                self.open_batch = false;
                self.skipping = false;
                self.readies += 1;
            }
            // Outside a COPY the server ignores them.
            Kind::CopyEnd if self.owed.is_empty() => return Ok(Noted::Nothing),
            Kind::CopyEnd => self.copy_ends += 1,
            _ if self.skipping => return Ok(Noted::Nothing),
            Kind::Query | Kind::FunctionCall => self.readies += 1,
            _ => self.open_batch = true,
        }
        self.owed.push_back(Owed { kind, origin, effect, simulated: false });
        Ok(Noted::Owed)
    }

    /// Notes a message that came from the server; `first` is the first byte of its body, if any.
    ///
    /// # Errors
    /// The message fits nothing that was sent: the connection must be closed.
    pub fn received(&mut self, tag: u8, first: Option<u8>) -> Result<Received, Desync> {
        if matches!(tag, b'N' | b'A' | b'S') {
            return Ok(Received::Asynchronous);
        }
        self.drop_copy_ends();
        if tag != b'Z' {
            self.perhaps_owed = 0;
            self.begun = true;
        } else if self.perhaps_owed > 0 && !self.awaits_ready() {
            return self.take_swallowed(first);
        }
        let Some(&head) = self.owed.front() else {
            // Errors of a server that closes by itself come unasked.
            return if tag == b'E' {
                Ok(Received::Asynchronous)
            } else {
                Err(Desync { got: tag, expected: "nothing" })
            };
        };
        let simple = matches!(head.kind, Kind::Query | Kind::FunctionCall);
        match (tag, head.kind) {
            (b'1', Kind::Parse) | (b'2', Kind::Bind) | (b'3', Kind::Close) | (b's', Kind::Execute) => {
                self.confirm_head();
                if head.origin == Origin::Injected {
                    return Ok(Received::Answer(Origin::Pooler));
                }
            }
            (b'T' | b'n', Kind::Describe) => self.confirm_head(),
            (b't', Kind::Describe) | (b'V', Kind::FunctionCall) => {}
            (b'T', Kind::Query) => {}
            (b'D' | b'd', Kind::Query | Kind::Execute) | (b'c', Kind::Query | Kind::Execute) => {}
            (b'G', Kind::Query | Kind::Execute) => self.copy = Copy::In,
            (b'H', Kind::Query | Kind::Execute) => self.copy = Copy::Out,
            (b'W', Kind::Query | Kind::Execute) => self.copy = Copy::Both,
            (b'C' | b'I', Kind::Query | Kind::Execute) => self.finish_command(head.kind),
            (b'E', _) => self.fail_command(simple),
            (b'Z', Kind::Query | Kind::Sync | Kind::FunctionCall) => {
                let Some(status) = first.and_then(TransactionStatus::from_byte) else {
                    return Err(Desync { got: tag, expected: "a transaction status" });
                };
                self.confirm_head();
                self.readies -= 1;
                self.status = status;
                self.copy = Copy::None;
                self.begun = false;
                self.drop_copy_ends();
                return Ok(Received::Ready(head.origin, status));
            }
            (_, kind) => return Err(Desync { got: tag, expected: kind.answer() }),
        }
        Ok(Received::Answer(if head.origin == Origin::Injected { Origin::Client } else { head.origin }))
    }

    /// The head is done.
    #[inline]
    fn confirm_head(&mut self) {
        if self.owed.pop_front().is_some_and(|head| head.effect) {
            self.settled.confirmed += 1;
        }
    }

    /// These replies will never come, as far as it can be told.
    fn skip(&mut self, range: Range<usize>) {
        for owed in self.owed.drain(range) {
            self.settled.skipped += u32::from(owed.effect);
            self.readies -= usize::from(owed.kind.brings_ready());
            self.simulated -= usize::from(owed.simulated);
            self.copy_ends -= usize::from(owed.kind == Kind::CopyEnd);
        }
    }

    /// A command of the head is complete. In a COPY from the client the server has ignored each Sync before the end.
    fn finish_command(&mut self, kind: Kind) {
        if self.copy == Copy::In
            && let Some(end) = self.owed.iter().position(|owed| owed.kind == Kind::CopyEnd)
        {
            self.skip(1..end + 1);
            // Its Sync was one of those that were ignored: the batch is open until the client sends another.
            if kind == Kind::Execute && !self.owed.iter().any(|owed| owed.kind == Kind::Sync) {
                self.open_batch = true;
            }
        }
        self.copy = Copy::None;
        if kind == Kind::Execute {
            self.owed.pop_front();
        }
    }

    /// After an error, the simple protocol goes on to its ReadyForQuery and the extended one skips to Sync.
    fn fail_command(&mut self, simple: bool) {
        if self.copy == Copy::In {
            self.forget_syncs_of_copy();
        }
        self.copy = Copy::None;
        if simple {
            return;
        }
        if self.owed.front().is_some_and(|head| head.kind != Kind::Sync)
            && let Some(head) = self.owed.pop_front()
        {
            self.settled.failed |= head.effect;
            self.simulated -= usize::from(head.simulated);
        }
        let skipped = self.owed.iter().take_while(|owed| owed.kind != Kind::Sync).count();
        self.skip(0..skipped);
        self.begun = false;
        self.skipping = self.owed.is_empty();
        // The Sync of its batch was most likely swallowed, and nothing is over before the next one.
        self.open_batch |= self.skipping && self.perhaps_owed > 0;
    }

    /// A COPY from the client fails: nobody can tell which of the Syncs sent before its end the server has read in it,
    /// and so ignored.
    fn forget_syncs_of_copy(&mut self) {
        let end = self.owed.iter().position(|owed| owed.kind == Kind::CopyEnd);
        let end = end.map_or(self.owed.len(), |end| end + 1);
        let swallowed = 1.min(end)..end;
        for owed in self.owed.range(swallowed.clone()) {
            match owed.kind {
                Kind::Sync => self.perhaps_owed += 1,
                Kind::CopyEnd => {}
                // It has no place in a COPY; if that had failed before, it is carried out.
                _ => self.is_lost = true,
            }
        }
        self.skip(swallowed);
    }

    /// True if a ReadyForQuery is what has to come next.
    fn awaits_ready(&self) -> bool {
        self.owed.front().is_some_and(|head| match head.kind {
            Kind::Sync => true,
            Kind::Query | Kind::FunctionCall => self.begun,
            _ => false,
        })
    }

    /// A Sync that a COPY might have swallowed is answered after all.
    fn take_swallowed(&mut self, first: Option<u8>) -> Result<Received, Desync> {
        let Some(status) = first.and_then(TransactionStatus::from_byte) else {
            return Err(Desync { got: b'Z', expected: "a transaction status" });
        };
        self.perhaps_owed -= 1;
        self.status = status;
        if self.skipping {
            self.skipping = false;
            self.open_batch = false;
        }
        Ok(Received::Ready(Origin::Client, status))
    }

    fn drop_copy_ends(&mut self) {
        while self.owed.front().is_some_and(|owed| owed.kind == Kind::CopyEnd) {
            self.owed.pop_front();
            self.copy_ends -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
