//! The hand-off: a server for a client, and what a free server does next.

use super::Engine;
use super::request::says_goodbye;
use crate::client::ClientState;
use crate::close_cause::CloseCause;
use crate::connection::{ClientId, PoolId, ServerId};
use crate::pool::Pool;
use crate::seam::Transport;
use crate::server::{Cleaning, ServerState};
use crate::texts;
use overload::Moment;
use std::time::Duration;

/// A test that takes longer is no longer counted on: a login is started beside it.
const TEST_PATIENCE: Duration = Duration::from_millis(100);

impl Engine {
    /// A whole request is in hand: the client gets a free server, or joins the line.
    pub(super) fn ask_for_server(&mut self, transport: &mut impl Transport, id: ClientId, bytes: &[u8]) {
        let Some(pool_id) = self.clients.find(id).and_then(|client| client.pool) else { return };
        self.look_at_running(pool_id);
        // Whoever waits already comes first.
        let pool = self.pool_mut(pool_id);
        let was_empty = pool.line.is_empty();
        let may_run = pool.active < pool.most_running;
        pool.counters.running_holds += u64::from(was_empty && !may_run);
        let is_first = was_empty && may_run;
        if is_first && let Some(server) = self.take_idle(transport, pool_id) {
            self.pool_mut(pool_id).counters.wait.record(Duration::ZERO);
            self.link(transport, id, server, bytes, false);
            return;
        }
        if says_goodbye(bytes) {
            return self.client_gone(transport, id, "client close request");
        }
        let now = self.now;
        let lane = self.lane_of(id);
        self.note_asked(pool_id);
        let Some(client) = self.clients.find_mut(id) else { return };
        client.held = bytes.to_vec();
        client.request_at = now;
        let pool = &mut self.pools[pool_id.0 as usize];
        let Ok(ticket) = pool.line.push_back(lane, id, now) else {
            let error = texts::error(texts::TOO_MANY_CONNECTIONS, "too many clients wait for a server", None);
            return self.refuse_request(transport, id, &error);
        };
        client.state = ClientState::Waiting(ticket);
        self.note_joined(id, pool_id);
        let Some(client) = self.clients.find(id) else { return };
        if client.held.len() >= self.config.general.waiter_buffer {
            transport.set_reading(id.into(), false);
        }
        // Servers at rest are there for those behind the first as well, who waits for the test of one.
        if !is_first {
            self.serve_from_idle(transport, pool_id);
        }
        self.refill(transport, pool_id);
        self.refuse_if_hopeless(transport, pool_id);
        // Every limit counts from when somebody joined: whoever stands behind others needs no earlier look than they do.
        if was_empty {
            self.arm_pool(pool_id);
        }
        self.judge_joined(transport, id);
    }

    /// A server that may be used at once. Those that are too old are closed, those that were idle for long are tested
    /// first and come back by themselves.
    fn take_idle(&mut self, transport: &mut impl Transport, pool_id: PoolId) -> Option<ServerId> {
        let round_robin = self.config.general.server_round_robin;
        let check_delay = self.config.general.server_check_delay;
        let now = self.now;
        loop {
            let pool = self.pool(pool_id);
            let id = *(if round_robin { pool.idle.front() } else { pool.idle.back() })?;
            let server = self.servers.find(id)?;
            if let Some(cause) = server.close_needed {
                self.close_server(transport, id, cause);
            } else if self.is_too_old(server) {
                self.close_server(transport, id, CloseCause::Lifetime);
            } else if server.served && now.since(server.used_at) >= check_delay {
                // One test for each who waits: it brings this server to the head of the line within a round trip.
                self.start_test(transport, id);
                return None;
            } else {
                return Some(id);
            }
        }
    }

    /// Gives a server to a client and sends its request, in one write with whatever its parameters need.
    fn link(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        server_id: ServerId,
        bytes: &[u8],
        from_line: bool,
    ) {
        self.move_server(server_id, ServerState::Active(id));
        let now = self.now;
        let (Some(client), Some(server)) = (self.clients.find_mut(id), self.servers.find_mut(server_id))
        else {
            return;
        };
        client.state = ClientState::Active { server: server_id, streaming: 0 };
        server.assigned_at = now;
        server.transaction_at = now;
        server.used_at = now;
        server.query_at = now;
        server.from_line = from_line;
        server.served = true;
        let pool_id = server.pool;
        self.pools[pool_id.0 as usize].counters.server_assignment_count += 1;
        self.count_if_beyond_limit(pool_id);
        let Some(query) = self.change_parameters(transport, id, server_id) else {
            return self.forward_request(transport, id, server_id, bytes, None);
        };
        let Some(client) = self.clients.find_mut(id) else { return };
        if self.parameters.is_proven(&client.parameters) {
            return self.forward_request(transport, id, server_id, bytes, Some(&query));
        }
        client.state = ClientState::Preparing { server: server_id };
        client.held = bytes.to_vec();
        if client.held.len() >= self.config.general.waiter_buffer {
            transport.set_reading(id.into(), false);
        }
        transport.send(server_id.into(), &[&query]);
        self.arm_active(id);
    }

    /// A server has nothing to do with its last client any more: the next one gets it, in the same turn.
    pub(super) fn release_server(&mut self, transport: &mut impl Transport, id: ServerId) {
        let now = self.now;
        let Some(server) = self.servers.find_mut(id) else { return };
        server.used_at = now;
        let pool_id = server.pool;
        let was_active = matches!(server.state, ServerState::Active(_));
        if server.replies.is_doubtful() {
            return self.close_server(transport, id, CloseCause::Desync);
        }
        if server.said_fatal {
            return self.close_server(transport, id, CloseCause::ServerClosed);
        }
        if server.cancels > 0 || server.tainted {
            let deadline = Some(now + self.config.general.cancel_wait_timeout);
            return self.start_cleaning(transport, id, false, deadline);
        }
        if let Some(cause) = self.reason_to_close(id) {
            return self.close_server(transport, id, cause);
        }
        let pool = self.pool(pool_id);
        let may_run = pool.active - usize::from(was_active) < pool.most_running;
        let next = if may_run { self.next_in_line(pool_id) } else { None };
        let Some((client, queued_at)) = next else {
            self.move_server(id, ServerState::Idle);
            self.arm_server_idle(id);
            self.watch_stats();
            return;
        };
        let pool = self.pool_mut(pool_id);
        pool.counters.wait.record(now.since(queued_at));
        pool.counters.wait_time_us += now.since(queued_at).as_micros() as u64;
        let Some(held) = self.clients.find_mut(client).map(|client| std::mem::take(&mut client.held)) else {
            return self.release_server(transport, id);
        };
        transport.set_reading(client.into(), true);
        self.link(transport, client, id, &held, true);
    }

    /// Why a server that is free now should go rather than serve on.
    fn reason_to_close(&self, id: ServerId) -> Option<CloseCause> {
        let server = self.servers.find(id)?;
        let pool = self.pool(server.pool);
        if let Some(cause) = server.close_needed {
            return Some(cause);
        }
        if self.shutdown.is_some_and(super::Shutdown::is_closing_servers) && pool.line.is_empty() {
            return Some(CloseCause::Shutdown);
        }
        if pool.total() > pool.greatest_size() {
            return Some(CloseCause::PoolShrunk);
        }
        if self.is_too_old(server) {
            return Some(CloseCause::Lifetime);
        }
        if self.should_yield(server.pool) || self.should_give_up(server.pool) {
            return Some(CloseCause::Evicted);
        }
        None
    }

    /// The one place that changes a server's state, and moves it between its pool's lists.
    pub(super) fn move_server(&mut self, id: ServerId, next: ServerState) {
        let lane = if let ServerState::Active(client) = next { self.lane_of(client) } else { 0 };
        let Some(server) = self.servers.find_mut(id) else { return };
        let pool = &mut self.pools[server.pool.0 as usize];
        match server.state {
            ServerState::Active(_) => {
                pool.active -= 1;
                pool.line.release(server.lane);
                pool.pinned -= usize::from(std::mem::take(&mut server.pinned));
                server.watch.clear();
                server.probe = None;
            }
            ServerState::Cleaning(ref cleaning) => {
                pool.cleaning -= 1;
                pool.tests -= usize::from(cleaning.is_test);
            }
            ServerState::Closing { .. } => pool.closing -= 1,
            // The server in use is nearly always the one used last.
            ServerState::Idle => pool.forget_idle(id),
        }
        match next {
            ServerState::Active(_) => {
                pool.active += 1;
                server.lane = lane;
                pool.line.hold(lane);
            }
            ServerState::Cleaning(ref cleaning) => {
                pool.cleaning += 1;
                pool.tests += usize::from(cleaning.is_test);
            }
            ServerState::Closing { .. } => pool.closing += 1,
            ServerState::Idle => pool.idle.push_back(id),
        }
        let frees_a_turn = !matches!(next, ServerState::Active(_) | ServerState::Idle)
            && pool.most_running != usize::MAX
            && !pool.line.is_empty();
        server.state = next;
        let pool_id = server.pool;
        // Servers at rest may be used in its place.
        if frees_a_turn {
            self.arm_pool_at(pool_id, self.now);
        }
    }

    /// Starts the way back to use.
    pub(super) fn start_cleaning(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        thorough: bool,
        deadline: Option<Moment>,
    ) {
        let cleaning = Cleaning { thorough, ..Cleaning::until(deadline) };
        self.move_server(id, ServerState::Cleaning(cleaning));
        if let Some(deadline) = deadline {
            self.arm_server(id, deadline);
        }
        self.advance_cleaning(transport, id);
    }

    /// A round trip of our own, to see whether a server that has rested still answers.
    fn start_test(&mut self, transport: &mut impl Transport, id: ServerId) {
        let deadline = self.now + self.config.general.server_connect_timeout;
        let cleaning = Cleaning { is_test: true, ..Cleaning::until(Some(deadline)) };
        self.start_short_cleaning(transport, id, cleaning, deadline);
    }

    /// Starts what should take no longer than a round trip: so long no login is started in the server's place.
    pub(super) fn start_short_cleaning(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        cleaning: Cleaning,
        deadline: Moment,
    ) {
        self.move_server(id, ServerState::Cleaning(cleaning));
        self.arm_server(id, deadline.min(self.now + TEST_PATIENCE));
        self.advance_cleaning(transport, id);
    }

    /// A test takes too long to be counted on.
    pub(super) fn give_up_test(&mut self, transport: &mut impl Transport, id: ServerId) {
        let Some(server) = self.servers.find_mut(id) else { return };
        let pool_id = server.pool;
        if let ServerState::Cleaning(cleaning) = &mut server.state
            && std::mem::take(&mut cleaning.is_test)
        {
            self.pool_mut(pool_id).tests -= 1;
            self.serve_from_idle(transport, pool_id);
            self.refill(transport, pool_id);
        }
    }

    /// Servers at rest go to those who wait and whom no test will serve, or are tested for them.
    pub(super) fn serve_from_idle(&mut self, transport: &mut impl Transport, pool_id: PoolId) {
        let has_work = |pool: &Pool| {
            pool.line.len() > pool.tests
                && !pool.idle.is_empty()
                && pool.active + pool.tests < pool.most_running
        };
        while has_work(self.pool(pool_id)) {
            if let Some(server) = self.take_idle(transport, pool_id) {
                self.release_server(transport, server);
            }
        }
    }
}

/// True if something that began at `since` and may last `limit` (zero: for ever) is over.
pub(super) fn is_over(now: Moment, since: Moment, limit: Duration) -> bool {
    !limit.is_zero() && now.since(since) >= limit
}
