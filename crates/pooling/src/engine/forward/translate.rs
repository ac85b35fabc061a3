//! A client's prepared statements on their way to a server: other names, what the server lacks, what it need not do again.
//!
//! Nothing is sent that builds on what an earlier batch may yet fail to do: such a message waits for the answer
//! ([`Taken::Later`]), which is sure to come, since that batch has its Sync.

mod named;
mod unnamed;

use super::scan::noted;
use crate::connection::ClientId;
use crate::snapshot::PoolCounters;
use crate::statements::sql::{self, Drops};
use crate::statements::{ClientStatements, Effect, Limits, ServerStatements, Shape, Statements};
use pgwire::frame::{HEADER_BYTES, Head};
use pgwire::message::{TransactionStatus, backend, frontend, parse};
use pgwire::replies::{MAX_OWED, Origin, Owes, ReplyQueue, Simulated};

/// Statements that one message may push out of a server.
const MAX_EVICTIONS: usize = 16;
/// Replies that one message may bring.
const MOST_REPLIES: usize = MAX_EVICTIONS + 4;

/// In place of a statement that the client deallocates and the server may not have.
const DEALLOCATE_GONE: &str = "DEALLOCATE holdfast_gone";

/// What has become of one message.
pub(super) enum Taken {
    /// It is noted, and translated if need be.
    Noted,
    /// It is to be kept until it is whole.
    Incomplete,
    /// It has to wait for answers.
    Later,
    /// Not the protocol.
    Broken(String),
    /// The client asks for more than the pooler keeps for one.
    TooMuch(String),
}

/// Everything that the translation of a client's messages touches.
pub(super) struct Translator<'a> {
    pub(super) input: &'a [u8],
    pub(super) client_id: ClientId,
    pub(super) client: &'a mut Option<Box<ClientStatements>>,
    pub(super) server: &'a mut ServerStatements,
    pub(super) statements: &'a mut Statements,
    pub(super) limits: Limits,
    /// What goes to the server instead of the input up to `copied`.
    pub(super) output: &'a mut Vec<u8>,
    pub(super) copied: usize,
    /// What the messages are.
    pub(super) shape: Shape,
    /// What the client is told at once.
    pub(super) answers: Vec<u8>,
    /// The text of a statement that has been bound without being prepared here, if it may leave something in the session.
    pub(super) marked: Option<Box<[u8]>>,
    /// Part of a message of the server's is still to come: nothing can be said to the client before that.
    pub(super) is_inside_message: bool,
}

impl Translator<'_> {
    /// Takes the message that begins at `at`; what is there of it is at least what may be held.
    #[inline]
    pub(super) fn take(
        &mut self,
        head: Head,
        at: usize,
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) -> Taken {
        self.shape.add(match head.tag {
            b'B' => Shape::BIND,
            b'D' => Shape::DESCRIBE,
            b'E' | b'H' => Shape::EXECUTE,
            b'S' => Shape::SYNC,
            _ => Shape::OTHER,
        });
        match head.tag {
            b'E' | b'H' | b'd' | b'c' | b'f' | b'F' => return noted(replies.sent(head.tag, Origin::Client)),
            b'S' => {
                let taken = noted(replies.sent(b'S', Origin::Client));
                if matches!(taken, Taken::Noted) {
                    self.server.note_sync();
                }
                return taken;
            }
            _ => {}
        }
        // The server ignores it, or it is an error whatever it says.
        if replies.is_skipping() || matches!(replies.owes(), Owes::CopyIn { .. }) {
            return noted(replies.sent(head.tag, Origin::Client));
        }
        if head.tag != b'Q' && replies.len() + MOST_REPLIES > MAX_OWED {
            return Taken::Later;
        }
        if replies.readies() == 0 {
            self.server.set_reset_sent(false);
        }
        let input = self.input;
        let end = (at + head.total).min(input.len());
        let message = Message { head, at, end, body: &input[at + HEADER_BYTES..end] };
        match head.tag {
            b'P' => self.parse(&message, replies, counters),
            b'B' => self.bind(&message, replies, counters),
            b'D' | b'C' => self.target(&message, replies, counters),
            b'Q' => self.query(&message, replies),
            tag => noted(replies.sent(tag, Origin::Client)),
        }
    }

    /// The end of the scan: the rest goes on as it is, if anything was changed before it; true if so.
    pub(super) fn finish(self, end: usize, answers: &mut Vec<u8>) -> bool {
        *answers = self.answers;
        let is_changed = self.copied > 0 || !self.output.is_empty();
        if is_changed {
            self.output.extend_from_slice(&self.input[self.copied..end]);
        }
        is_changed
    }

    fn target(
        &mut self,
        message: &Message<'_>,
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) -> Taken {
        if !message.is_whole() {
            return Taken::TooMuch("the name of a prepared statement or portal is too long".to_owned());
        }
        match parse::target(message.body) {
            Ok((b'S', name)) => match (message.head.tag, name) {
                (b'D', b"") => self.use_unnamed(message, replies, counters),
                (b'D', name) => self.describe(message, name, replies, counters),
                (_, b"") => self.close_unnamed(replies),
                (_, name) => self.close(message, name, replies),
            },
            // The server knows what to say to what is malformed.
            Ok(_) | Err(_) => noted(replies.sent(message.head.tag, Origin::Client)),
        }
    }

    fn query(&mut self, message: &Message<'_>, replies: &mut ReplyQueue) -> Taken {
        match sql::drops(message.body.strip_suffix(b"\0").unwrap_or(message.body)) {
            Some(Drops::All) => self.server.set_reset_sent(true),
            // Whether the client has that name is not known before an earlier batch has been carried out, or has not.
            Some(Drops::One(_)) if self.server.is_uncertain() => return Taken::Later,
            Some(Drops::One(name))
                if self.client.as_ref().is_some_and(|client| client.find(&name).is_some()) =>
            {
                if replies.readies() > 0 || self.is_inside_message {
                    return Taken::Later;
                }
                // In a failed transaction it fails, whatever it names.
                if replies.status() != TransactionStatus::Failed {
                    if replies.is_empty() && !replies.has_open_batch() {
                        return self.deallocate(message, &name, replies);
                    }
                    if replies.len() + MOST_REPLIES > MAX_OWED {
                        return Taken::Later;
                    }
                    self.deallocate_by_server(message, &name, replies, |output| {
                        frontend::query(output, DEALLOCATE_GONE);
                    });
                }
            }
            Some(Drops::One(_)) | None => {}
        }
        let has_unnamed = self.client.as_ref().is_some_and(|client| client.has_unnamed());
        let taken = if has_unnamed || self.server.has_pending() {
            match replies.sent_with_effect(b'Q', Origin::Client) {
                Ok(_) => {
                    self.server.note(Effect::UnnamedDropped);
                    Taken::Noted
                }
                error => noted(error),
            }
        } else {
            noted(replies.sent(b'Q', Origin::Client))
        };
        if matches!(taken, Taken::Noted) {
            self.server.note_query();
        }
        taken
    }

    /// The name is the client's alone, so the server need not hear of it. Nothing is owed and the transaction has not
    /// failed, so that this cannot fail either.
    fn deallocate(&mut self, message: &Message<'_>, name: &[u8], replies: &ReplyQueue) -> Taken {
        if let Some(client) = self.client.as_mut() {
            client.remove(name);
            client.forget_unnamed();
        }
        backend::command_complete(&mut self.answers, "DEALLOCATE");
        backend::ready_for_query(&mut self.answers, replies.status());
        self.replace(message, |_| ());
        Taken::Noted
    }

    /// True if names may be about to change in a way that the next message depends on.
    fn must_wait(&self, replies: &ReplyQueue) -> bool {
        self.server.is_uncertain() || self.server.reset_was_sent() && replies.readies() > 0
    }

    /// A message of the pooler's own, ahead of the client's in the same batch. There is room for its answer.
    fn inject(&mut self, tag: u8, effect: Effect, replies: &mut ReplyQueue) {
        let _ = replies.sent_with_effect(tag, Origin::Injected);
        self.server.note(effect);
    }

    /// The pooler answers in the server's place when it is this message's turn. There is room for that.
    fn simulate(&mut self, answer: Simulated, effect: Effect, replies: &mut ReplyQueue) {
        let _ = replies.simulate(answer);
        self.server.note(effect);
    }

    /// What `write` appends goes to the server in place of the message, as far as that has come.
    fn replace(&mut self, message: &Message<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.insert(message, write);
        self.copied = message.end;
    }

    /// What `write` appends goes to the server ahead of the message.
    fn insert(&mut self, message: &Message<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.output.extend_from_slice(&self.input[self.copied..message.at]);
        self.copied = message.at;
        write(self.output);
    }
}

/// One message of the input.
pub(super) struct Message<'a> {
    head: Head,
    /// Where it begins.
    at: usize,
    /// Where it ends, or what has come of it.
    end: usize,
    /// What is there of its body.
    body: &'a [u8],
}

impl Message<'_> {
    const fn is_whole(&self) -> bool {
        self.end - self.at == self.head.total
    }
}
