//! What one server holds, and what is under way to it.

use super::{ClientStatements, Effect, Statement, Statements};
use crate::connection::ClientId;
use hashbrown::HashMap;
use pgwire::replies::Settled;
use settings::pooler::General;
use std::collections::VecDeque;
use std::sync::Arc;

/// How much one server may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Statements (`max_prepared_statements`).
    pub(crate) count: usize,
    /// Bytes of their texts (`max_prepared_statement_bytes`).
    pub(crate) bytes: usize,
    /// Longest text without a name that is kept for a client, and longest name (`waiter_buffer`).
    pub(crate) held_bytes: usize,
}

impl Limits {
    pub(crate) const fn of(general: &General) -> Self {
        Self {
            count: general.max_prepared_statements,
            bytes: general.max_prepared_statement_bytes,
            held_bytes: general.waiter_buffer,
        }
    }
}

/// Bytes of unnamed texts that one server's pending effects may keep. A server answers many before it sends the first of
/// its answers.
const MAX_PENDING_TEXT_BYTES: usize = 4 << 20;

/// The statements of one server. Empty where statements are not translated.
#[derive(Debug, Default)]
pub(crate) struct ServerStatements {
    held: HashMap<u64, Held>,
    /// The hand of a clock goes round here: what it finds used gets another round, the rest may be evicted.
    order: VecDeque<u64>,
    bytes: usize,
    pending: VecDeque<Pending>,
    /// Counts up with each Sync that is sent.
    batch: u32,
    /// Pending effects that change names, and how many of them belong to the present batch.
    changing: usize,
    changing_now: usize,
    /// The same of those that are about the unnamed statement.
    unnamed: usize,
    unnamed_now: usize,
    /// Bytes of the texts that pending effects keep.
    text_bytes: usize,
    /// A Parse or Close without a name has been sent in the present batch: the server knows best.
    unnamed_sent: bool,
    /// Whose unnamed statement the server has; none while that is not certain.
    unnamed_of: Option<(ClientId, u32)>,
    /// A statement that drops all others (DISCARD ALL, DEALLOCATE ALL) has been sent.
    reset_sent: bool,
}

#[derive(Debug)]
struct Held {
    statement: Arc<Statement>,
    used: bool,
}

#[derive(Debug)]
struct Pending {
    effect: Effect,
    batch: u32,
}

impl ServerStatements {
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// True while some message that was noted with an effect is under way.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// True if the server has it, or will have it when the next message of this batch arrives. Counts as a use.
    pub(crate) fn holds(&mut self, statement: &Statement) -> bool {
        let held = self.held.get_mut(&statement.number);
        if let Some(held) = held {
            held.used = true;
            return true;
        }
        false
    }

    /// True if a batch sent earlier may still fail to change the names that the next message builds on.
    pub(crate) const fn is_uncertain(&self) -> bool {
        self.changing > self.changing_now
    }

    pub(crate) const fn unnamed_was_sent(&self) -> bool {
        self.unnamed_sent
    }

    /// True if an unnamed Parse or Close of an earlier batch is under way.
    pub(crate) const fn unnamed_is_uncertain(&self) -> bool {
        self.unnamed > self.unnamed_now
    }

    /// True if another text without a name may be kept until its Parse is answered.
    pub(crate) const fn has_room_for_text(&self, bytes: usize) -> bool {
        self.text_bytes + bytes <= MAX_PENDING_TEXT_BYTES
    }

    /// True if the server has this client's unnamed statement, and not one that it had before.
    pub(crate) fn has_unnamed_of(&self, id: ClientId, client: Option<&ClientStatements>) -> bool {
        self.unnamed_of.is_some_and(|of| client.is_some_and(|client| of == (id, client.unnamed_version())))
    }

    pub(crate) const fn reset_was_sent(&self) -> bool {
        self.reset_sent
    }

    /// A statement that drops all others goes out, or has been answered.
    pub(crate) const fn set_reset_sent(&mut self, sent: bool) {
        self.reset_sent = sent;
    }

    /// A Sync goes out: what comes next is another batch.
    pub(crate) const fn note_sync(&mut self) {
        self.batch = self.batch.wrapping_add(1);
        self.changing_now = 0;
        self.unnamed_now = 0;
        self.unnamed_sent = false;
    }

    /// A simple query goes out: it drops the unnamed statement, and is a batch of its own.
    pub(crate) const fn note_query(&mut self) {
        self.unnamed_of = None;
        self.note_sync();
    }

    /// What has to go before another statement of so many bytes comes in.
    pub(crate) fn room_for(&mut self, bytes: usize, limits: Limits) -> Option<Arc<Statement>> {
        if self.held.len() < limits.count && self.bytes + bytes <= limits.bytes {
            return None;
        }
        // Twice round at most: after one round nothing is marked as used.
        for _ in 0..self.order.len() * 2 {
            let number = self.order.pop_front()?;
            let Some(held) = self.held.get_mut(&number) else { continue };
            if std::mem::take(&mut held.used) {
                self.order.push_back(number);
            } else {
                return Some(held.statement.clone());
            }
        }
        None
    }

    /// Notes what a message that goes out now will change. What the server holds is changed at once, for the messages
    /// that follow in the same batch; it is undone if the server never gets there.
    pub(crate) fn note(&mut self, effect: Effect) {
        match &effect {
            Effect::Prepare { statement, sent: true, .. } | Effect::Inject(statement) => self.hold(statement),
            Effect::Evict(statement) => self.drop_held(statement),
            Effect::Unnamed { .. } | Effect::UnnamedInjected | Effect::UnnamedClosed { .. } => {
                self.unnamed_sent = true;
                self.unnamed_of = None;
            }
            Effect::UnnamedDropped => self.unnamed_of = None,
            Effect::Prepare { sent: false, .. }
            | Effect::Duplicate { .. }
            | Effect::Use { .. }
            | Effect::Close { .. }
            | Effect::Other
            | Effect::Unknown { .. } => {}
        }
        if effect.changes_names() {
            self.changing += 1;
            self.changing_now += 1;
        }
        if effect.is_unnamed() {
            self.unnamed += 1;
            self.unnamed_now += 1;
            self.text_bytes += effect.text_bytes();
        }
        self.pending.push_back(Pending { effect, batch: self.batch });
    }

    /// What the oldest pending message was, if its fate is told next.
    pub(crate) fn oldest(&self) -> Option<&Effect> {
        self.pending.front().map(|pending| &pending.effect)
    }

    /// Takes in what has become of messages. `client` is whoever has the server still, and its statements.
    /// False: something has succeeded that must not, and nobody can tell what the server holds.
    pub(crate) fn settle(
        &mut self,
        settled: Settled,
        mut client: Option<(ClientId, &mut ClientStatements)>,
    ) -> bool {
        let mut is_sound = true;
        for _ in 0..settled.confirmed {
            let Some(effect) = self.pop() else { return is_sound };
            match effect {
                Effect::Unnamed { text, .. } => {
                    if let Some((id, client)) = &mut client {
                        client.set_unnamed(text);
                        self.unnamed_of = Some((*id, client.unnamed_version()));
                    }
                }
                Effect::UnnamedInjected => {
                    self.unnamed_of = client.as_ref().map(|(id, client)| (*id, client.unnamed_version()));
                }
                Effect::UnnamedClosed { of_client } => {
                    if let Some((_, client)) = client.as_mut().filter(|_| of_client) {
                        client.forget_unnamed();
                    }
                }
                Effect::UnnamedDropped => {
                    self.unnamed_of = None;
                    if let Some((_, client)) = &mut client {
                        client.forget_unnamed();
                    }
                }
                Effect::Duplicate { .. } | Effect::Unknown { .. } => is_sound = false,
                Effect::Prepare { .. }
                | Effect::Inject(_)
                | Effect::Evict(_)
                | Effect::Other
                | Effect::Use { .. }
                | Effect::Close { .. } => {}
            }
        }
        let failed = if settled.failed { self.pop() } else { None };
        let skipped: Vec<Effect> = (0..settled.skipped).map_while(|_| self.pop()).collect();
        let mut client = client.map(|(_, client)| client);
        // The latest first: what was changed twice is as it was before.
        for effect in skipped.into_iter().rev() {
            self.undo(effect, client.as_deref_mut());
        }
        match (failed, client) {
            // The old one is dropped before the new one is looked at.
            (Some(Effect::Unnamed { .. }), Some(client)) => client.forget_unnamed(),
            (Some(effect), client) => self.undo(effect, client),
            (None, _) => {}
        }
        is_sound
    }

    /// Every statement of the server's is gone, but for those that are prepared behind what dropped them.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.order.clear();
        self.bytes = 0;
        self.reset_sent = false;
        let mut again: Vec<Arc<Statement>> = Vec::new();
        for pending in &mut self.pending {
            match &pending.effect {
                Effect::Prepare { statement, sent: true, .. } | Effect::Inject(statement) => {
                    again.push(statement.clone());
                }
                // If it is skipped, the statement is gone all the same.
                Effect::Evict(_) => {
                    pending.effect = Effect::Other;
                    self.changing -= 1;
                    self.changing_now -= usize::from(pending.batch == self.batch);
                }
                _ => {}
            }
        }
        for statement in again {
            self.hold(&statement);
        }
    }

    fn pop(&mut self) -> Option<Effect> {
        let Pending { effect, batch } = self.pending.pop_front()?;
        if effect.changes_names() {
            self.changing -= 1;
            self.changing_now -= usize::from(batch == self.batch);
        }
        if effect.is_unnamed() {
            self.unnamed -= 1;
            self.unnamed_now -= usize::from(batch == self.batch);
            self.text_bytes -= effect.text_bytes();
        }
        Some(effect)
    }

    fn undo(&mut self, effect: Effect, client: Option<&mut ClientStatements>) {
        match effect {
            Effect::Prepare { name, statement, sent } => {
                if sent {
                    self.drop_held(&statement);
                }
                if let Some(client) = client {
                    client.remove(&name);
                }
            }
            Effect::Inject(statement) => self.drop_held(&statement),
            Effect::Evict(statement) => self.hold(&statement),
            Effect::Close { name, statement } => {
                if let Some(client) = client {
                    client.insert(name, statement);
                }
            }
            Effect::Unnamed { text, is_current: true } => {
                if let Some(client) = client {
                    client.return_unnamed(text);
                }
            }
            Effect::Duplicate { .. }
            | Effect::Other
            | Effect::Use { .. }
            | Effect::Unknown { .. }
            | Effect::Unnamed { .. }
            | Effect::UnnamedInjected
            | Effect::UnnamedClosed { .. }
            | Effect::UnnamedDropped => {}
        }
    }

    fn hold(&mut self, statement: &Arc<Statement>) {
        let held = Held { statement: statement.clone(), used: true };
        if self.held.insert(statement.number, held).is_none() {
            self.bytes += statement.body.len();
            self.order.push_back(statement.number);
        }
    }

    fn drop_held(&mut self, statement: &Statement) {
        if let Some(at) = self.order.iter().rposition(|&number| number == statement.number) {
            self.order.remove(at);
        }
        self.forget(statement);
    }

    fn forget(&mut self, statement: &Statement) {
        if let Some(held) = self.held.remove(&statement.number) {
            self.bytes -= held.statement.body.len();
        }
    }
}

/// A statement as it is to be used: a fresh one of the same text if the tables have changed.
pub(crate) fn current(statements: &mut Statements, statement: &Arc<Statement>) -> Arc<Statement> {
    if statement.is_stale() { statements.intern(statement.body()) } else { statement.clone() }
}
