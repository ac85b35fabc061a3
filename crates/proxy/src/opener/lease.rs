//! What a stream holds while it is there, and what becomes of it with its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use client::Counter;
use overload::Moment;
use selection::Pick;
use tokio::sync::mpsc;
use trust::api::Exit;
use uuid::Uuid;

use super::Opener;
use crate::abuse::Record;
use crate::accounts::Account;
use crate::control::Control;
use crate::exits::Exits;
use crate::purse::Block;
use crate::refusal::Refusal;
use clock::unix_ms;

/// A place among the account's streams.
pub(super) struct Admission(Arc<Account>);

impl Admission {
    pub(super) fn new(account: &Arc<Account>, target: &str, now: Moment) -> Result<Self, Refusal> {
        account.gate().open(target, now)?;
        Ok(Self(Arc::clone(account)))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.gate().close();
    }
}

/// Counts a stream's bytes against what pays for them.
#[derive(Debug)]
pub(super) struct StreamCounter {
    block: Arc<Block>,
    account: Arc<Account>,
    top_ups: mpsc::Sender<Arc<Account>>,
    bytes: AtomicU64,
}

impl StreamCounter {
    pub(super) fn new(
        block: Arc<Block>,
        account: &Arc<Account>,
        top_ups: mpsc::Sender<Arc<Account>>,
    ) -> Self {
        Self { block, account: Arc::clone(account), top_ups, bytes: AtomicU64::new(0) }
    }
}

impl Counter for StreamCounter {
    fn carried(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.block.moved(bytes) {
            // If too many wait already, the next open asks.
            let _ = self.top_ups.try_send(Arc::clone(&self.account));
        }
    }
}

/// What ends with a stream.
pub(crate) struct Lease {
    /// Country and provider, as customers are told.
    exit: Box<str>,
    /// Dropped with it.
    _held: Box<dyn Send + Sync>,
}

struct Held<E: Exits, C: Control> {
    opener: Arc<Opener<E, C>>,
    admission: Admission,
    pick: Pick,
    block: Arc<Block>,
    port: u16,
    target: Option<String>,
    opened_at_ms: u64,
}

impl Lease {
    pub(super) fn new<E: Exits, C: Control>(
        opener: Arc<Opener<E, C>>,
        admission: Admission,
        pick: Pick,
        block: Arc<Block>,
        (port, target): (u16, Option<String>),
    ) -> Self {
        block.stream_opened();
        let exit = format!("{}/{}", pick.candidate.country, pick.candidate.provider.simple());
        let opened_at_ms = unix_ms();
        let held = Held { opener, admission, pick, block, port, target, opened_at_ms };
        Self { exit: exit.into(), _held: Box::new(held) }
    }

    /// Country and provider.
    pub(crate) fn exit(&self) -> &str {
        &self.exit
    }
}

impl<E: Exits, C: Control> Drop for Held<E, C> {
    fn drop(&mut self) {
        let Self { opener, admission, pick, block, .. } = self;
        opener.directory.closed(pick);
        let account = &admission.0;
        if block.stream_closed() {
            opener.retire(account, block);
        }
        let exit = Exit {
            exit: Uuid::now_v7(),
            proxy_account: account.name.to_string(),
            provider: pick.candidate.provider,
            port: self.port,
            opened_at_ms: self.opened_at_ms,
            closed_at_ms: unix_ms(),
        };
        opener.records.hand_in(Record { exit, target: self.target.take() });
    }
}
