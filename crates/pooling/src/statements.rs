//! Prepared statements that outlive a transaction: what clients call them, what servers hold, and how the two meet.
//!
//! A client's names are its own. A server knows a text by a name of the pooler's, so that clients with the same text share
//! it, and never more than [`Limits`] allow. Messages are translated on their way to the server (`engine/forward`); what
//! they change is noted as an [`Effect`] and holds once the server has confirmed it: an effect that the server ignored,
//! since something before it failed, is undone.

mod again;
mod client;
mod effect;
mod server;
pub(crate) mod sql;

pub(crate) use again::{Again, Shape};
pub(crate) use client::{ClientStatements, MAX_STATEMENT_BYTES_OF_A_CLIENT, MAX_STATEMENTS_OF_A_CLIENT};
pub(crate) use effect::Effect;
pub(crate) use server::{Limits, ServerStatements, current};

use crate::markers::markers;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names of the pooler's begin so; a client's own name that does is never sent as it is.
pub(crate) const PREFIX: &[u8] = b"holdfast_";

/// The longest text of a named statement, with the types of its parameters. It is held until it is whole.
pub(crate) const MAX_STATEMENT_BYTES: usize = 1 << 20;

/// Texts that are kept before unused ones are looked for.
const FIRST_PURGE: usize = 1024;

/// A statement that some client has prepared, or that some server holds.
#[derive(Debug)]
pub(crate) struct Statement {
    number: u64,
    /// Its name at servers.
    name: Box<[u8]>,
    /// What follows the name in Parse: the text and the types of the parameters.
    body: Box<[u8]>,
    /// A server has said that its plan no longer fits the tables: it is to be prepared anew, under another name.
    stale: AtomicBool,
    /// It may leave something in the session of its server.
    leaves_marks: bool,
}

impl Statement {
    /// Its name at servers.
    pub(crate) const fn name(&self) -> &[u8] {
        &self.name
    }

    /// What follows the name in Parse.
    pub(crate) const fn body(&self) -> &[u8] {
        &self.body
    }

    /// The text alone.
    pub(crate) fn text(&self) -> &[u8] {
        text_of(&self.body)
    }

    pub(crate) const fn leaves_marks(&self) -> bool {
        self.leaves_marks
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }
}

/// The text in what follows the name in Parse.
pub(crate) fn text_of(body: &[u8]) -> &[u8] {
    body.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// All statements, each text once.
#[derive(Debug)]
pub(crate) struct Statements {
    hasher: hashbrown::DefaultHashBuilder,
    known: HashTable<Arc<Statement>>,
    next: u64,
    purge_at: usize,
}

impl Default for Statements {
    fn default() -> Self {
        Self {
            hasher: hashbrown::DefaultHashBuilder::default(),
            known: HashTable::new(),
            next: 1,
            purge_at: FIRST_PURGE,
        }
    }
}

impl Statements {
    /// The statement of a text; made if it is new.
    pub(crate) fn intern(&mut self, body: &[u8]) -> Arc<Statement> {
        let hash = self.hasher.hash_one(body);
        if let Some(known) = self.known.find(hash, |known| *known.body == *body) {
            return known.clone();
        }
        if self.known.len() >= self.purge_at {
            // At least half of them are new since the last time, so that this costs each a constant share.
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.purge_at = (self.known.len() * 2).max(FIRST_PURGE);
        }
        let number = self.next;
        self.next += 1;
        let mut name = PREFIX.to_vec();
        name.extend_from_slice(format!("{number:x}").as_bytes());
        let statement = Arc::new(Statement {
            number,
            name: name.into(),
            body: body.into(),
            stale: AtomicBool::new(false),
            leaves_marks: !markers(text_of(body)).is_empty(),
        });
        self.known.insert_unique(hash, statement.clone(), |known| self.hasher.hash_one(&*known.body));
        statement
    }

    /// The statement no longer fits the tables: whoever uses it next gets a fresh one of the same text.
    pub(crate) fn retire(&mut self, statement: &Arc<Statement>) {
        if statement.stale.swap(true, Ordering::Relaxed) {
            return;
        }
        let hash = self.hasher.hash_one(&*statement.body);
        if let Ok(entry) = self.known.find_entry(hash, |known| Arc::ptr_eq(known, statement)) {
            entry.remove();
        }
    }
}
