//! Statements with a name.

use super::{MAX_EVICTIONS, Message, Taken, Translator};
use crate::engine::forward::scan::noted;
use crate::snapshot::PoolCounters;
use crate::statements::{
    Effect, MAX_STATEMENT_BYTES, MAX_STATEMENT_BYTES_OF_A_CLIENT, MAX_STATEMENTS_OF_A_CLIENT, PREFIX,
    Statement, current,
};
use pgwire::message::{TransactionStatus, frontend, parse, tag};
use pgwire::replies::{Origin, ReplyQueue, Simulated};
use std::sync::Arc;

/// Stands for a name of a client's that looks like one of the pooler's. No statement is ever called so.
const NOBODY: &[u8] = b"holdfast_?";

/// What an error says of such a name, in bytes: the message is sent without it, so that nothing else bounds how many of them
/// a client can have in flight.
const MAX_NAME_TOLD: usize = 256;

/// A statement of no text, made for what needs one that exists: a name that is in use, or a name to deallocate.
pub(super) const GONE: &[u8] = b"holdfast_gone";
/// An empty text without parameters.
pub(super) const NO_TEXT: &[u8] = b"\0\0\0";

impl Translator<'_> {
    pub(super) fn parse(
        &mut self,
        message: &Message<'_>,
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) -> Taken {
        let (name, rest) = match parse::prepare(message.body) {
            Ok(parts) => parts,
            Err(error) => return self.unnamable(message, error, replies),
        };
        if name.is_empty() {
            return self.parse_unnamed(message, rest, replies, counters);
        }
        if message.head.total > MAX_STATEMENT_BYTES {
            return Taken::TooMuch(format!(
                "a named prepared statement is longer than {MAX_STATEMENT_BYTES} bytes"
            ));
        }
        if !message.is_whole() {
            return Taken::Incomplete;
        }
        // Whether it succeeds depends on the transaction, and whether its name is free on the batches before.
        if replies.readies() > 0 {
            return Taken::Later;
        }
        let client = self.client.get_or_insert_default();
        if let Some((name, _)) = client.find(name) {
            // What is wrong with the text comes first, and that the name is in use last: only the server can tell.
            let name = name.clone();
            self.provide_gone(message, Effect::Other, replies);
            self.replace(message, |output| frontend::parse(output, GONE, rest));
            counters.server_parse_count += 1;
            return self.noted(tag::PARSE, Effect::Duplicate { name }, replies);
        }
        if client.is_full_for(name.len() + rest.len()) {
            return Taken::TooMuch(format!(
                "more than {MAX_STATEMENTS_OF_A_CLIENT} prepared statements, or {MAX_STATEMENT_BYTES_OF_A_CLIENT} bytes \
                 of them, in one session"
            ));
        }
        let name: Arc<[u8]> = name.into();
        let statement = self.statements.intern(rest);
        client.insert(name.clone(), statement.clone());
        let has_failed = replies.status() == TransactionStatus::Failed;
        let held = self.server.holds(&statement);
        if held && !has_failed {
            self.replace(message, |_| ());
            self.simulate(
                Simulated::ParseComplete,
                Effect::Prepare { name, statement, sent: false },
                replies,
            );
            return Taken::Noted;
        }
        if held {
            // In a failed transaction only the server can tell whether this text is allowed.
            self.evict(message, &statement, replies);
        } else {
            self.make_room(message, &statement, replies);
        }
        self.replace(message, |output| frontend::parse(output, statement.name(), rest));
        counters.server_parse_count += 1;
        self.noted(tag::PARSE, Effect::Prepare { name, statement, sent: true }, replies)
    }

    pub(super) fn bind(
        &mut self,
        message: &Message<'_>,
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) -> Taken {
        let parse::Bind { portal, statement: name, rest } = match parse::bind(message.body) {
            Ok(parts) => parts,
            Err(error) => return self.unnamable(message, error, replies),
        };
        if name.is_empty() {
            return self.use_unnamed(message, replies, counters);
        }
        self.use_named(message, name, replies, counters, |output, server_name, length| {
            output.push(tag::BIND);
            output.extend_from_slice(&length.to_be_bytes());
            output.extend_from_slice(portal);
            output.push(0);
            output.extend_from_slice(server_name);
            output.push(0);
            output.extend_from_slice(rest);
        })
    }

    pub(super) fn describe(
        &mut self,
        message: &Message<'_>,
        name: &[u8],
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) -> Taken {
        self.use_named(message, name, replies, counters, |output, server_name, length| {
            output.push(tag::DESCRIBE);
            output.extend_from_slice(&length.to_be_bytes());
            output.push(b'S');
            output.extend_from_slice(server_name);
            output.push(0);
        })
    }

    /// The end of a name has not come: of a whole message the server says what is wrong, of a long one more may come.
    fn unnamable(
        &self,
        message: &Message<'_>,
        error: parse::MalformedMessage,
        replies: &mut ReplyQueue,
    ) -> Taken {
        if message.is_whole() {
            noted(replies.sent(message.head.tag, Origin::Client))
        } else if message.body.len() < self.limits.held_bytes {
            Taken::Incomplete
        } else {
            Taken::Broken(error.to_string())
        }
    }

    /// A message that names a statement. `write` appends it with the server's name and the length that comes of that.
    fn use_named(
        &mut self,
        message: &Message<'_>,
        name: &[u8],
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
        write: impl FnOnce(&mut Vec<u8>, &[u8], u32),
    ) -> Taken {
        if self.must_wait(replies) {
            return Taken::Later;
        }
        let length = |server_name: &[u8]| {
            let total = message.head.total - 1 - name.len() + server_name.len();
            u32::try_from(total).unwrap_or(u32::MAX)
        };
        let found = self.client.as_ref().and_then(|client| client.find(name));
        let Some((key, known)) = found else {
            if !name.starts_with(PREFIX) {
                // Nobody has it, which the server will say.
                return noted(replies.sent(message.head.tag, Origin::Client));
            }
            self.replace(message, |output| write(output, NOBODY, length(NOBODY)));
            let name = name.get(..MAX_NAME_TOLD).unwrap_or(name);
            return self.noted(message.head.tag, Effect::Unknown { name: name.into() }, replies);
        };
        let key = key.clone();
        let statement = current(self.statements, known);
        if !Arc::ptr_eq(&statement, known)
            && let Some(client) = self.client.as_mut()
        {
            client.insert(key.clone(), statement.clone());
        }
        if message.head.tag == tag::BIND && statement.leaves_marks() {
            self.marked = Some(statement.text().into());
        }
        self.provide(message, &statement, replies, counters);
        self.replace(message, |output| write(output, statement.name(), length(statement.name())));
        self.noted(message.head.tag, Effect::Use { name: key, statement }, replies)
    }

    pub(super) fn close(&mut self, message: &Message<'_>, name: &[u8], replies: &mut ReplyQueue) -> Taken {
        if self.must_wait(replies) {
            return Taken::Later;
        }
        let removed = self.client.as_mut().and_then(|client| client.remove(name));
        let Some((name, statement)) = removed else {
            if name.starts_with(PREFIX) {
                self.replace(message, |output| frontend::close_statement(output, NOBODY));
            }
            // No error in PostgreSQL.
            return noted(replies.sent(tag::CLOSE, Origin::Client));
        };
        self.replace(message, |_| ());
        self.simulate(Simulated::CloseComplete, Effect::Close { name, statement }, replies);
        Taken::Noted
    }

    /// Has the server prepare a statement that it lacks.
    pub(super) fn provide(
        &mut self,
        message: &Message<'_>,
        statement: &Arc<Statement>,
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) {
        if self.server.holds(statement) {
            return;
        }
        self.make_room(message, statement, replies);
        self.insert(message, |output| frontend::parse(output, statement.name(), statement.body()));
        counters.server_parse_count += 1;
        self.inject(tag::PARSE, Effect::Inject(statement.clone()), replies);
    }

    /// Has the server prepare [`GONE`], which works even in a failed transaction since it has no text.
    pub(super) fn provide_gone(&mut self, message: &Message<'_>, effect: Effect, replies: &mut ReplyQueue) {
        self.insert(message, |output| {
            frontend::close_statement(output, GONE);
            frontend::parse(output, GONE, NO_TEXT);
        });
        self.inject(tag::CLOSE, Effect::Other, replies);
        self.inject(tag::PARSE, effect, replies);
    }

    fn make_room(&mut self, message: &Message<'_>, statement: &Statement, replies: &mut ReplyQueue) {
        for _ in 0..MAX_EVICTIONS {
            let Some(victim) = self.server.room_for(statement.body().len(), self.limits) else { return };
            self.evict(message, &victim, replies);
        }
    }

    fn evict(&mut self, message: &Message<'_>, victim: &Arc<Statement>, replies: &mut ReplyQueue) {
        self.insert(message, |output| frontend::close_statement(output, victim.name()));
        self.inject(tag::CLOSE, Effect::Evict(victim.clone()), replies);
    }

    /// Notes a message that goes to the server, with what it changes.
    pub(super) fn noted(&mut self, tag: u8, effect: Effect, replies: &mut ReplyQueue) -> Taken {
        let taken = noted(replies.sent_with_effect(tag, Origin::Client));
        if matches!(taken, Taken::Noted) {
            self.server.note(effect);
        }
        taken
    }
}
