//! Timers: one lazy heap. A connection has at most one entry, at or before its earliest deadline; a deadline that moves
//! back costs nothing until the entry comes up. Nothing ticks while nothing is due.

mod limits;

use super::Engine;
use crate::client::{ClientState, NEVER};
use crate::close_cause::CloseCause;
use crate::connection::{ClientId, ConnectionId, PoolId, ServerId};
use crate::pool::AddressIndex;
use crate::seam::Transport;
use crate::server::ServerState;
use overload::Moment;
use pgwire::message::TransactionStatus;
use pgwire::replies::Owes;
use settings::pooler::PoolMode;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What a timer looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Connection(ConnectionId),
    Pool(PoolId),
    /// The budget of the server at an address.
    Budget(AddressIndex),
    /// Budgets of servers that nobody goes to any more.
    LeaveBudgets,
    Shutdown,
    Stats,
}

/// Deadlines, soonest first.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Moment, Key)>>,
    /// Entries at which those are thrown out that mean nothing any more, such as of clients that have left.
    purge_at: usize,
    pub(super) stats_armed: bool,
}

/// No purge below so many entries.
const LEAST_PURGE: usize = 1024;

/// A limit that could not act yet is looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Entries handled at once; the rest follows in the next turn.
const MAX_DUE: usize = 256;

impl Engine {
    /// When [`Self::on_deadline`] is due; `None` if nothing is.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        self.timers.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Acts on what is due.
    pub fn on_deadline(&mut self, transport: &mut impl Transport) {
        for _ in 0..MAX_DUE {
            match self.timers.heap.peek() {
                Some(Reverse((at, _))) if *at <= self.now => {}
                _ => return,
            }
            let Some(Reverse((at, key))) = self.timers.heap.pop() else { return };
            match key {
                Key::Connection(ConnectionId::Client(id)) => {
                    match self.clients.find_mut(id) {
                        Some(client) if client.armed_at == at => client.armed_at = NEVER,
                        _ => continue,
                    }
                    if let Some(next) = self.check_client(transport, id) {
                        self.arm_client(id, next);
                    }
                }
                Key::Connection(ConnectionId::Server(id)) => {
                    match self.servers.find_mut(id) {
                        Some(server) if server.armed_at == at => server.armed_at = NEVER,
                        _ => continue,
                    }
                    if let Some(next) = self.check_server(transport, id) {
                        self.arm_server(id, next);
                    }
                }
                Key::Pool(id) => {
                    let Some(pool) = self.pools.get_mut(id.0 as usize) else { continue };
                    if pool.armed_at != at {
                        continue;
                    }
                    pool.armed_at = NEVER;
                    self.check_pool(transport, id);
                }
                Key::Budget(index) => {
                    if self.disarm_budget(at, index) {
                        self.step_budget(transport, index);
                    }
                }
                Key::LeaveBudgets => self.leave_budgets(transport),
                Key::Shutdown => self.shut_down(transport, super::Shutdown::Now),
                Key::Stats => self.log_stats(),
            }
        }
    }

    pub(super) fn arm_client(&mut self, id: ClientId, at: Moment) {
        if let Some(client) = self.clients.find_mut(id)
            && at < client.armed_at
        {
            client.armed_at = at;
            self.push_timer(at, Key::Connection(id.into()));
        }
    }

    pub(super) fn arm_server(&mut self, id: ServerId, at: Moment) {
        if let Some(server) = self.servers.find_mut(id)
            && at < server.armed_at
        {
            server.armed_at = at;
            self.push_timer(at, Key::Connection(id.into()));
        }
    }

    pub(super) fn arm_pool_at(&mut self, id: PoolId, at: Moment) {
        let pool = &mut self.pools[id.0 as usize];
        if at < pool.armed_at {
            pool.armed_at = at;
            self.push_timer(at, Key::Pool(id));
        }
    }

    /// Entries of connections that are gone, or that look elsewhere now, are thrown out when they have doubled the heap:
    /// it stays within a factor of what is alive, whatever the rate of logins.
    pub(super) fn push_timer(&mut self, at: Moment, key: Key) {
        if self.timers.heap.len() >= self.timers.purge_at.max(LEAST_PURGE) {
            let mut heap = std::mem::take(&mut self.timers.heap);
            heap.retain(|Reverse((at, key))| self.is_armed(*at, *key));
            self.timers.purge_at = heap.len() * 2;
            self.timers.heap = heap;
        }
        self.timers.heap.push(Reverse((at, key)));
    }

    fn is_armed(&self, at: Moment, key: Key) -> bool {
        match key {
            Key::Connection(ConnectionId::Client(id)) => {
                self.clients.find(id).is_some_and(|client| client.armed_at == at)
            }
            Key::Connection(ConnectionId::Server(id)) => {
                self.servers.find(id).is_some_and(|server| server.armed_at == at)
            }
            Key::Pool(id) => self.pools.get(id.0 as usize).is_some_and(|pool| pool.armed_at == at),
            Key::Budget(index) => self.is_budget_armed(at, index),
            Key::LeaveBudgets | Key::Shutdown | Key::Stats => true,
        }
    }

    pub(super) fn arm_budget_leave(&mut self) {
        self.push_timer(self.now, Key::LeaveBudgets);
    }

    pub(super) fn arm_shutdown(&mut self, at: Moment) {
        self.timers.heap.push(Reverse((at, Key::Shutdown)));
    }

    pub(super) fn watch_stats(&mut self) {
        if !self.timers.stats_armed && self.config.general.log_stats {
            self.timers.stats_armed = true;
            let at = self.now + self.config.general.stats_period.max(Duration::from_secs(1));
            self.timers.heap.push(Reverse((at, Key::Stats)));
        }
    }

    /// A client has a server, and time runs: only if a limit is set at all.
    pub(super) fn arm_active(&mut self, id: ClientId) {
        let Some(pool) = self.clients.find(id).and_then(|client| client.pool) else { return };
        let settings = &self.pool(pool).settings;
        let limits =
            [settings.query_timeout, settings.transaction_timeout, settings.idle_transaction_timeout];
        if let Some(least) = limits.into_iter().filter(|limit| !limit.is_zero()).min() {
            self.arm_client(id, self.now + least);
        }
    }

    pub(super) fn arm_client_idle(&mut self, id: ClientId) {
        let Some(pool) = self.clients.find(id).and_then(|client| client.pool) else { return };
        let limit = self.pool(pool).settings.client_idle_timeout;
        if !limit.is_zero() {
            self.arm_client(id, self.now + limit);
        }
    }

    /// A client of session mode that keeps its server may be idle now.
    pub(super) fn arm_session_idle(&mut self, id: ClientId) {
        let Some(pool) = self.clients.find(id).and_then(|client| client.pool) else { return };
        let is_pinned = || {
            let Some(client) = self.clients.find(id) else { return false };
            matches!(client.state, ClientState::Active { server, .. }
                if self.servers.find(server).is_some_and(|server| server.pinned))
        };
        if self.pool(pool).settings.pool_mode == PoolMode::Session || is_pinned() {
            self.arm_client_idle(id);
        }
    }

    pub(super) fn arm_partial(&mut self, id: ClientId) {
        let limit = self.config.general.client_message_timeout;
        if !limit.is_zero() {
            self.arm_client(id, self.now + limit);
        }
    }

    pub(super) fn arm_server_idle(&mut self, id: ServerId) {
        let Some(server) = self.servers.find(id) else { return };
        // An entry that comes up too early is moved on when it does.
        if server.armed_at == NEVER {
            self.rearm_server_idle(id);
        }
    }

    /// The same after the limits have changed: an entry may come up too late.
    pub(super) fn rearm_server_idle(&mut self, id: ServerId) {
        if let Some(at) = self.idle_deadline(id) {
            self.arm_server(id, at);
        }
    }

    fn idle_deadline(&self, id: ServerId) -> Option<Moment> {
        let server = self.servers.find(id)?;
        let settings = &self.pool(server.pool).settings;
        let idle = self.config.general.server_idle_timeout;
        let by_idle = (!idle.is_zero()).then(|| server.used_at + idle);
        let by_age = (!settings.server_lifetime.is_zero()).then_some(server.old_at);
        by_idle.into_iter().chain(by_age).min()
    }

    /// Looks at a server; returns when to look again.
    fn check_server(&mut self, transport: &mut impl Transport, id: ServerId) -> Option<Moment> {
        let now = self.now;
        let server = self.servers.find(id)?;
        match server.state {
            // Looked at when it is free again.
            ServerState::Active(_) => None,
            ServerState::Cleaning(_) | ServerState::Closing { .. } => {
                self.give_up_test(transport, id);
                self.check_server_limits(transport, id).map(|at| at.max(now + Duration::from_millis(1)))
            }
            ServerState::Idle => {
                let at = self.idle_deadline(id)?;
                if at > now {
                    return Some(at);
                }
                let pool_id = server.pool;
                let pool = self.pool(pool_id);
                let lifetime = pool.settings.server_lifetime;
                let too_old = !lifetime.is_zero() && now >= server.old_at;
                if !too_old && pool.live() <= pool.minimum() {
                    // One of the minimum: it may be idle.
                    let idle = self.config.general.server_idle_timeout;
                    let at = now + idle;
                    return Some(if lifetime.is_zero() { at } else { at.min(server.old_at) });
                }
                let cause = if too_old { CloseCause::Lifetime } else { CloseCause::IdleTimeout };
                self.close_server(transport, id, cause);
                self.refill(transport, pool_id);
                Some(now + Duration::from_secs(60))
            }
        }
    }

    /// What a live client that holds a server is doing with it, if it is nothing.
    pub(super) fn holder_reason(&self, id: ClientId) -> Option<(&'static str, Moment)> {
        let client = self.clients.find(id)?;
        let ClientState::Active { server, .. } = client.state else { return None };
        let server = self.servers.find(server)?;
        if let Some(since) = client.blocked_since {
            return Some(("client does not read its result", since));
        }
        if let Some(since) = client.partial_since {
            return Some(("half-sent message", since));
        }
        match server.replies.owes() {
            // In session mode it is the client's to keep.
            Owes::Nothing(TransactionStatus::Idle) if !server.pinned => None,
            Owes::Nothing(TransactionStatus::Idle) => {
                Some((server.watch.held().name(), server.query_at.max(client.request_at)))
            }
            Owes::Nothing(_) => Some(("idle in transaction", server.query_at.max(client.request_at))),
            Owes::Batch if server.replies.is_empty() => Some(("batch without Sync", server.query_at)),
            Owes::CopyIn { .. } => Some(("COPY waits for data", server.query_at.max(client.request_at))),
            _ => None,
        }
    }
}
