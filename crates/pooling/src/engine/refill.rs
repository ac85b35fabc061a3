//! Opening servers: as many at once as are needed, within the pool's size, the caps, and the pace of the address.

use super::Engine;
use crate::connection::{PoolId, ServerId};
use crate::events::EventKind;
use crate::pool::{AddressIndex, Greeting};
use crate::seam::{AttemptId, OpenFailure, OpenServer, OpenedServer, Target, Transport};
use crate::server::{Server, ServerOrigin};
use crate::texts;
use overload::Moment;
use overload::recovery::Admission;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

/// An attempt under way.
#[derive(Debug)]
pub(super) struct Attempt {
    pool: PoolId,
    /// Where it goes, whatever a reload makes of its pool meanwhile.
    address: AddressIndex,
    started_at: Moment,
    target: Arc<Target>,
}

impl Engine {
    /// Starts as many logins as are wanted and allowed; what is not allowed now is looked at again when it is.
    pub(super) fn refill(&mut self, transport: &mut impl Transport, id: PoolId) {
        if self.shutdown.is_some_and(super::Shutdown::is_closing_servers) && self.pool(id).line.is_empty() {
            return;
        }
        let now = self.now;
        self.note_overdue(id);
        self.forget_old_pile(id);
        let pool = self.pool(id);
        let wanted = pool.wanted();
        if wanted == 0 {
            self.update_need(id);
            return;
        }
        let room = match pool.room() {
            0 => 0,
            room => room.min(self.cap_room(id)).min(self.scope_room(id)),
        };
        if room < wanted {
            self.want_places(id);
        }
        if room == 0 {
            if self.pool(id).has_waiters() && self.pool(id).room() > 0 {
                self.make_room(transport, id);
            }
            self.update_need(id);
            return;
        }
        let mut count = wanted.min(room);
        match self.pool(id).recovery.admits(now) {
            Admission::Free => {}
            Admission::Probe => count = count.min(1),
            Admission::RestUntil(at) => {
                self.update_need(id);
                return self.arm_pool_at(id, at);
            }
        }
        let address = self.pool(id).address;
        let pacer = self.pacer(address);
        let allowed = pacer.may_start(now, count);
        if allowed > 0 {
            pacer.started(now, allowed);
        }
        if allowed < count {
            match pacer.next_start_at(now) {
                Some(at) => self.arm_pool_at(id, at.max(now + Duration::from_millis(1))),
                None => self.note_hungry(id),
            }
        }
        for _ in 0..allowed {
            self.open_server(transport, id);
        }
        self.update_need(id);
    }

    fn open_server(&mut self, transport: &mut impl Transport, id: PoolId) {
        let now = self.now;
        let attempt = AttemptId(self.next_attempt);
        self.next_attempt += 1;
        self.enter_caps(id);
        self.budget_began(id);
        let limit = self.config.general.server_connect_timeout;
        let pool = self.pool_mut(id);
        if pool.total() >= pool.settings.pool_size {
            info!(database = %pool.database, user = %pool.user, "{}", texts::RESERVE_TAKEN);
            pool.counters.reserve_logins += 1;
        }
        pool.logins += 1;
        pool.recovery.started(now);
        let target = pool.target.clone();
        let address = pool.address;
        self.hold_again(address);
        self.attempts.insert(attempt, Attempt { pool: id, address, started_at: now, target: target.clone() });
        transport.open_server(OpenServer { attempt, pool: id, target, limit });
    }

    /// A server has logged in. `None`: it is not wanted any more, close it. Otherwise install its socket under this
    /// identity and call [`Self::on_server_installed`].
    pub fn on_server_opened(&mut self, attempt: AttemptId, opened: &OpenedServer) -> Option<ServerId> {
        let now = self.now;
        let Attempt { pool: id, address, started_at, target } = self.attempts.remove(&attempt)?;
        self.pacer(address).finished(now, started_at);
        let origin = ServerOrigin { address, target: target.clone() };
        self.budget_opened(&origin, opened.process_id);
        let reported = opened.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let tracked = self.parameters.reported(reported);
        let pool = self.pool_mut(id);
        pool.logins -= 1;
        if pool.removed || !Arc::ptr_eq(&pool.target, &target) {
            self.leave_caps(id);
            self.budget_ended(&origin, opened.process_id, false);
            self.fill_freed_place_soon(id);
            self.feed_hungry_soon(address);
            self.release_address(address);
            return None;
        }
        pool.recovery.succeeded(now, started_at);
        let failure = pool.failure.take();
        pool.counters.server_opens += 1;
        pool.counters.login.record(opened.login_time);
        match &pool.greeting {
            Some(greeting) if greeting.parameters == opened.parameters => {}
            _ => {
                let parameters = opened.parameters.clone();
                pool.greeting = Some(Greeting { parameters, tracked: tracked.clone() });
            }
        }
        info!(database = %pool.database, user = %pool.user, process_id = opened.process_id, "new connection to server");
        if let Some(failure) = failure {
            self.record(Some(id), EventKind::ServerBack { after: now.since(failure.since) });
        }
        // Its place at the address is the server's from now on.
        let mut server = Server::new(id, origin.clone(), opened, tracked, now);
        server.translates_statements = self.pool(id).translates_statements(&self.config.general);
        self.begin_lifetime(&mut server);
        let inserted = self.servers.insert(server);
        if inserted.is_none() {
            self.leave_caps(id);
            self.budget_ended(&origin, opened.process_id, false);
            self.release_address(address);
        }
        inserted
    }

    /// The socket of a new server is in place.
    pub fn on_server_installed(&mut self, transport: &mut impl Transport, id: ServerId, leftover: &[u8]) {
        if !leftover.is_empty() {
            self.on_server_bytes(transport, id, leftover);
        }
        let Some(server) = self.servers.find(id) else { return };
        let pool = server.pool;
        let address = self.pool(pool).address;
        // In this order: until it is free it counts nowhere, and whoever is let in may ask at once.
        self.release_server(transport, id);
        self.welcome_all(transport, pool);
        self.feed_hungry(transport, address);
    }

    /// An attempt has failed.
    pub fn on_server_failed(
        &mut self,
        transport: &mut impl Transport,
        attempt: AttemptId,
        failure: OpenFailure,
    ) {
        let now = self.now;
        let Some(Attempt { pool: id, address, started_at, target }) = self.attempts.remove(&attempt) else {
            return;
        };
        let [a, b, c, d, e, f, g, h, ..] = transport.random();
        let jitter = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        self.pacer(address).failed(now, started_at, failure.cause, jitter);
        self.leave_caps(id);
        self.budget_failed(address, &target, &failure);
        let pool = self.pool_mut(id);
        pool.logins -= 1;
        warn!(
            database = %pool.database, user = %pool.user, cause = failure.cause.label(),
            "closing because: {}", failure.log_text
        );
        self.record(Some(id), EventKind::LoginFailed { cause: failure.cause });
        let pool = self.pool_mut(id);
        // What an old definition of the database led to says nothing about the new one.
        if Arc::ptr_eq(&pool.target, &target) {
            if !failure.cause.concerns_whole_server() {
                pool.recovery.failed(now, started_at, failure.cause, jitter);
            }
            pool.note_failure(now, failure);
            self.refuse_if_failing(transport, id);
        }
        self.fill_freed_place(transport, id);
        self.feed_hungry(transport, address);
        self.release_address(address);
    }

    /// No server is there and none will come soon: those who wait hear why, at once. A permanent error tells at the
    /// first attempt; a passing one may last `server_login_retry`, so that a restart of the database is waited out.
    fn refuse_if_failing(&mut self, transport: &mut impl Transport, id: PoolId) {
        let retry = self.config.general.server_login_retry;
        let now = self.now;
        let pool = self.pool(id);
        if pool.live() > 0 || pool.logins > 0 {
            return;
        }
        let Some(failure) = &pool.failure else { return };
        if !failure.last.cause.is_permanent() && now.since(failure.since) < retry {
            return;
        }
        let (sqlstate, text) = match &failure.last.sqlstate {
            Some(sqlstate) => (sqlstate.clone(), failure.last.client_text.clone()),
            None => {
                let cached = &failure.last.client_text;
                let text =
                    format!("server login has been failing, cached error: {cached} (server_login_retry)");
                (texts::CANNOT_CONNECT.to_owned(), text)
            }
        };
        let wait_ms = failure.last.cause.greatest_wait().as_millis();
        let hint = format!("The pooler asks the server again by itself; retry after {wait_ms} ms.");
        let error = texts::error(&sqlstate, &text, Some(&hint));
        let farewell = texts::fatal(&sqlstate, &text);
        if self.pool(id).has_waiters() {
            self.record(Some(id), EventKind::RequestRefused);
        }
        self.refusing = true;
        // As many as wait now: whoever queues again with a pipelined request is not refused twice in one go.
        for _ in 0..self.pool(id).line.len() {
            let pool = self.pool_mut(id);
            let Some((client, _)) = pool.line.pop_front() else { break };
            pool.counters.refusals += 1;
            self.refuse_request(transport, client, &error);
        }
        for _ in 0..self.pool(id).welcomes.len() {
            let pool = self.pool_mut(id);
            let Some((client, _)) = pool.welcomes.pop_front() else { break };
            pool.counters.refusals += 1;
            self.dismiss_client(transport, client, &farewell, &text);
        }
        self.refusing = false;
    }

    /// A client has just begun to wait: if the pool rests after failures, it hears so at once. The next request of one
    /// that is being refused has to wait for the end of that: a long pipeline must not be a deep stack.
    pub(super) fn refuse_if_hopeless(&mut self, transport: &mut impl Transport, id: PoolId) {
        if self.pool(id).failure.is_none() {
            return;
        }
        if self.refusing {
            self.arm_pool_at(id, self.now);
        } else {
            self.refuse_if_failing(transport, id);
        }
    }

    /// Looks at a pool whose timer is due: who has waited too long, and whether servers may be opened again.
    pub(super) fn check_pool(&mut self, transport: &mut impl Transport, id: PoolId) {
        if self.pool(id).is_free || self.forget_if_unused(id) {
            return;
        }
        let limit = self.pool(id).settings.query_wait_timeout;
        let now = self.now;
        let lacks_budget = self.waits_for_budget(id);
        let detail = match &self.pool(id).failure {
            _ if lacks_budget => {
                "All connections that server_budget allows to the database server are in use.".to_owned()
            }
            Some(failure) => format!("The last attempt to open one failed: {}.", failure.last.client_text),
            None => format!("No server connection became free within {} s.", limit.as_secs_f64()),
        };
        let farewell = texts::fatal_with_detail(texts::QUERY_WAIT_TIMEOUT, "query_wait_timeout", &detail);
        loop {
            let pool = self.pool_mut(id);
            let expired = pool.line.pop_expired(now, limit).or_else(|| pool.welcomes.pop_expired(now, limit));
            let Some((client, _)) = expired else { break };
            pool.counters.wait_timeouts += 1;
            self.record(Some(id), EventKind::WaitTimedOut);
            self.dismiss_client(transport, client, &farewell, "query_wait_timeout");
        }
        self.watch_stall(id);
        self.notify_waiters(transport, id);
        self.look_at_running(id);
        self.serve_from_idle(transport, id);
        self.look_at_locks_if_due(transport, id);
        self.refill(transport, id);
        self.refuse_if_hopeless(transport, id);
        self.arm_pool(id);
    }

    /// Sets the pool's timer to the first deadline in its lines.
    pub(super) fn arm_pool(&mut self, id: PoolId) {
        let pool = self.pool(id);
        let limit = pool.settings.query_wait_timeout;
        let next = [
            pool.line.next_deadline(limit),
            pool.welcomes.next_deadline(limit),
            self.next_wait_notice(id),
            self.look_to_arm(id),
            self.next_stall_look(id),
        ];
        if let Some(at) = next.into_iter().flatten().min() {
            self.arm_pool_at(id, at);
        }
        self.arm_unused(id);
    }
}
