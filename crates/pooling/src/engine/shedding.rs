//! Overload (`overload_policy`): who of those who wait is told to go, and who is next while the line stands.
//!
//! Asked when a client joins the line, when a server is free for somebody who waits, and when a timer of a waiter is due; never
//! for a request that finds a free server. With `observe` everything is decided and counted, and nothing done; with `off`
//! nothing is even looked at.

use super::Engine;
use super::show::application_name;
use crate::client::ClientState;
use crate::connection::{ClientId, PoolId};
use crate::events::EventKind;
use crate::guard::{Caller, Guard};
use crate::pool::Pool;
use crate::seam::Transport;
use crate::snapshot::{OverloadRow, PatienceRow};
use crate::texts;
use overload::Moment;
use overload::patience::{Patience, PatienceSource, postgres_time};
use overload::shedding::{ShedCause, Verdict};
use settings::pooler::GuardPolicy;
use std::time::Duration;
use tracing::{info, warn};

const STATEMENT_TIMEOUT: &str = "statement_timeout";

impl Engine {
    /// A client has taken its place at the end of the line.
    pub(super) fn note_joined(&mut self, id: ClientId, pool_id: PoolId) {
        if self.config.general.overload_policy == GuardPolicy::Off {
            return;
        }
        let now = self.now;
        let patience = self.patience_of(id, pool_id);
        let Some(client) = self.clients.find_mut(id) else { return };
        client.patience.known = patience;
        client.patience.is_judged = false;
        client.patience.is_counted = false;
        let ClientState::Waiting(ticket) = client.state else { return };
        let pool = &mut self.pools[pool_id.0 as usize];
        let (waiting, lane) = (pool.line.len(), ticket.lane());
        let waiting_in_lane = pool.line.len_of(lane);
        if waiting == 1 {
            pool.guard.pace.began(now);
        }
        let guard = pool.guard.lane_mut(lane);
        if waiting_in_lane == 1 {
            guard.shedding.began(now);
        }
        if let Some(patience) = patience {
            if guard.shedding.overloaded_since().is_some() {
                let line = &pool.line;
                guard.newest.push(ticket, waiting_in_lane, |ticket| line.entry(*ticket).is_some());
            }
            pool.guard.patience[patience.source() as usize] = Some(patience.limit());
        }
        self.observe_line(pool_id, lane);
    }

    /// The first look at a client that has joined the line, once everything has been tried to serve it.
    pub(super) fn judge_joined(&mut self, transport: &mut impl Transport, id: ClientId) {
        let Some(client) = self.clients.find(id) else { return };
        if self.config.general.overload_policy == GuardPolicy::Off || client.patience.known.is_none() {
            return;
        }
        if self.refusing {
            // It comes from a request that is being refused: a long pipeline must not be a deep stack.
            self.arm_client(id, self.now);
        } else if let Some(at) = self.check_waiter(transport, id) {
            self.arm_client(id, at);
        }
    }

    /// Looks at a client that waits; returns when to look again.
    pub(super) fn check_waiter(&mut self, transport: &mut impl Transport, id: ClientId) -> Option<Moment> {
        if self.config.general.overload_policy == GuardPolicy::Off {
            return None;
        }
        let now = self.now;
        let client = self.clients.find_mut(id)?;
        let (ClientState::Waiting(ticket), Some(pool_id)) = (&client.state, client.pool) else { return None };
        let pool = &mut self.pools[pool_id.0 as usize];
        let (_, queued_at) = pool.line.entry(*ticket)?;
        let patience = client.patience.known?;
        let (lane, servers) = (ticket.lane(), pool.serving());
        let ahead = pool.line.len_of(lane).saturating_sub(1);
        let shedding = &pool.guard.lane_mut(lane).shedding;
        let verdict = if std::mem::replace(&mut client.patience.is_judged, true) {
            shedding.look(Some(patience), queued_at, now)
        } else {
            shedding.judge(Some(patience), ahead, servers, now)
        };
        match verdict {
            Verdict::Wait(at) => at,
            Verdict::Shed(cause) => {
                self.shed(transport, id, pool_id, cause, patience);
                None
            }
        }
    }

    /// Takes out of the line whoever gets the server that is free now, with the moment it was queued.
    #[inline]
    pub(super) fn next_in_line(&mut self, pool_id: PoolId) -> Option<(ClientId, Moment)> {
        let pool = &mut self.pools[pool_id.0 as usize];
        if self.config.general.overload_policy == GuardPolicy::Off {
            return pool.line.pop_next(pool.live());
        }
        if pool.line.is_empty() {
            if !pool.guard.is_relaxed() {
                self.relax(pool_id);
            }
            return None;
        }
        self.next_of_guarded(pool_id)
    }

    fn next_of_guarded(&mut self, pool_id: PoolId) -> Option<(ClientId, Moment)> {
        let now = self.now;
        let pool = &mut self.pools[pool_id.0 as usize];
        let servers = pool.serving();
        let lane = pool.line.next_lane(pool.live())?;
        pool.guard.pace.freed(servers, now);
        let service = pool.guard.pace.service();
        pool.guard.lane_mut(lane).shedding.freed(servers, service, now);
        if !pool.guard.is_relaxed() {
            self.relax(pool_id);
        }
        self.observe_line(pool_id, lane);
        let (id, queued_at) = self.take_from_lane(pool_id, lane)?;
        self.learn_from_stay(id, pool_id, now.since(queued_at));
        Some((id, queued_at))
    }

    /// The oldest of a lane, or the newest while it stands. Those who cannot be told to go take turns with the others then:
    /// neither are to starve.
    fn take_from_lane(&mut self, pool_id: PoolId, lane: u8) -> Option<(ClientId, Moment)> {
        let pool = &mut self.pools[pool_id.0 as usize];
        let guard = pool.guard.lane_mut(lane);
        let is_on = self.config.general.overload_policy == GuardPolicy::On;
        if !is_on || guard.shedding.overloaded_since().is_none() {
            return pool.line.pop_front_of(lane);
        }
        let (&oldest, _) = pool.line.iter_of(lane).next()?;
        let is_known = self.clients.find(oldest).is_some_and(|client| client.patience.known.is_some());
        guard.took_oldest = !is_known && !guard.took_oldest;
        if !guard.took_oldest {
            let line = &pool.line;
            let newest = guard.newest.pop(|ticket| line.entry(*ticket).is_some());
            if let Some(ticket) = newest
                && let Some((&id, queued_at)) = pool.line.entry(ticket)
            {
                pool.line.remove(ticket);
                return Some((id, queued_at));
            }
        }
        pool.line.pop_front_of(lane)
    }

    /// The head of a lane is looked at: the lane may stand since now.
    fn observe_line(&mut self, pool_id: PoolId, lane: u8) {
        let now = self.now;
        let pool = &mut self.pools[pool_id.0 as usize];
        let Some((&oldest, queued_at)) = pool.line.iter_of(lane).next() else { return };
        let patience = self.clients.find(oldest).and_then(|client| client.patience.known);
        if pool.guard.lane_mut(lane).shedding.observe(queued_at, patience, now) {
            self.begin_overload(pool_id, lane);
        }
    }

    /// A lane stands: from now on its newest is served first, and everyone in it is looked at again.
    fn begin_overload(&mut self, pool_id: PoolId, lane: u8) {
        self.record(Some(pool_id), EventKind::Overloaded);
        let pool = &mut self.pools[pool_id.0 as usize];
        let waiting = pool.line.len_of(lane);
        warn!(
            database = %pool.database, user = %pool.user, waiting, lane,
            policy = self.config.general.overload_policy.as_str(), "the pool is overloaded: its line stands"
        );
        let guard = pool.guard.lane_mut(lane);
        let mut known = Vec::with_capacity(waiting);
        for (&id, _) in pool.line.iter_of(lane) {
            if let Some(client) = self.clients.find(id)
                && client.patience.known.is_some()
                && let ClientState::Waiting(ticket) = client.state
            {
                guard.newest.push(ticket, usize::MAX, |_| true);
                known.push(id);
            }
        }
        for id in known {
            self.arm_client(id, self.now);
        }
    }

    /// A server is free, and nobody waits in some lanes: those do not stand.
    fn relax(&mut self, pool_id: PoolId) {
        let now = self.now;
        let pool = &mut self.pools[pool_id.0 as usize];
        let before = pool.guard.overloaded_since();
        for lane in (0..pool.guard.lane_count()).filter(|&lane| pool.line.len_of(lane) == 0) {
            let guard = pool.guard.lane_mut(lane);
            guard.shedding.relaxed();
            guard.newest.clear();
        }
        if let Some(since) = before
            && pool.guard.overloaded_since().is_none()
        {
            let after = now.since(since);
            info!(database = %pool.database, user = %pool.user, ?after, "the pool is no longer overloaded");
            self.record(Some(pool_id), EventKind::OverloadEnded { after });
        }
    }

    /// This wait ends here, or would.
    fn shed(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        pool_id: PoolId,
        cause: ShedCause,
        patience: Patience,
    ) {
        let now = self.now;
        let is_on = self.config.general.overload_policy == GuardPolicy::On;
        let pool = &mut self.pools[pool_id.0 as usize];
        let Some(client) = self.clients.find_mut(id) else { return };
        let ClientState::Waiting(ticket) = client.state else { return };
        if !is_on {
            if !std::mem::replace(&mut client.patience.is_counted, true) {
                pool.counters.would_shed[cause as usize] += 1;
            }
            return;
        }
        let Some((_, queued_at)) = pool.line.entry(ticket) else { return };
        pool.line.remove(ticket);
        pool.counters.shed[cause as usize] += 1;
        let [a, b, c, d, e, f, g, h, ..] = transport.random();
        let jitter = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let (ahead, servers) = (pool.line.len_of(ticket.lane()), pool.serving());
        let shedding = &pool.guard.lane_mut(ticket.lane()).shedding;
        let retry_after = shedding.retry_after(patience, ahead, servers, now, jitter);
        self.update_need(pool_id);
        self.record(Some(pool_id), EventKind::Shed { cause });
        let error = texts::overloaded(cause, patience, now.since(queued_at), retry_after);
        self.refusing = true;
        self.refuse_request(transport, id, &error);
        self.refusing = false;
    }

    /// How long this client waits, as far as that is known.
    fn patience_of(&self, id: ClientId, pool_id: PoolId) -> Option<Patience> {
        let client = self.clients.find(id)?;
        match client.patience.declared_ms {
            Some(0) => return None,
            Some(ms) => {
                return Some(Patience::new(Duration::from_millis(u64::from(ms)), PatienceSource::Declared));
            }
            None => {}
        }
        let timeout = client.parameters.further_value(STATEMENT_TIMEOUT);
        if let Some(limit) = timeout.and_then(|text| postgres_time(text)).filter(|limit| !limit.is_zero()) {
            return Some(Patience::new(limit, PatienceSource::StatementTimeout));
        }
        if self.learnt.is_empty() {
            return None;
        }
        let learnt = self.learnt.patience(&self.caller(id, pool_id)?, self.now)?;
        Some(Patience::new(learnt, PatienceSource::Learnt))
    }

    fn caller(&self, id: ClientId, pool_id: PoolId) -> Option<Caller> {
        let (database, user) = self.names(Some(pool_id));
        Some((database, user, application_name(&self.clients.find(id)?.parameters)))
    }

    /// A client is about to leave the line by itself.
    pub(super) fn learn_from_departure(&mut self, id: ClientId) {
        if self.config.general.overload_policy == GuardPolicy::Off {
            return;
        }
        let Some(client) = self.clients.find(id) else { return };
        let (ClientState::Waiting(ticket), Some(pool_id)) = (&client.state, client.pool) else { return };
        let Some((_, queued_at)) = self.pool(pool_id).line.entry(*ticket) else { return };
        if client.patience.declared_ms.is_none()
            && let Some(caller) = self.caller(id, pool_id)
        {
            self.learnt.gave_up(&caller, self.now.since(queued_at), self.now);
        }
    }

    /// A client was still there when its turn came.
    fn learn_from_stay(&mut self, id: ClientId, pool_id: PoolId, waited: Duration) {
        let known = self.clients.find(id).and_then(|client| client.patience.known);
        if known.is_some_and(|known| known.source() == PatienceSource::Learnt && waited > known.limit())
            && let Some(caller) = self.caller(id, pool_id)
        {
            self.learnt.stayed(&caller, waited, self.now);
        }
    }

    /// A pool's line as SHOW OVERLOAD has it.
    pub(super) fn overload_row(&self, pool: &Pool) -> OverloadRow {
        let now = self.now;
        let lanes = (0..).zip(pool.guard.lanes());
        let predicted = lanes.filter_map(|(lane, guard)| {
            guard.shedding.pace().predicted_wait(pool.line.len_of(lane), pool.serving(), now)
        });
        OverloadRow {
            policy: self.config.general.overload_policy.as_str(),
            overloaded: pool.guard.overloaded_since().map(|since| now.since(since)),
            service: pool.guard.pace.service(),
            predicted_wait: predicted.max(),
            patience: pool.guard.patience,
        }
    }

    /// What has been learnt of callers who have not declared their patience.
    #[must_use]
    pub fn patience_rows(&self) -> Vec<PatienceRow> {
        let known = self.learnt.known(self.now);
        let mut rows: Vec<PatienceRow> = known
            .map(|((database, user, application_name), patience, samples)| PatienceRow {
                database: database.clone(),
                user: user.clone(),
                application_name: application_name.clone(),
                patience,
                samples,
            })
            .collect();
        rows.sort_by(|a, b| {
            (&a.database, &a.user, &a.application_name).cmp(&(&b.database, &b.user, &b.application_name))
        });
        rows
    }

    /// After a reload: with `off` nothing of it is left, and nothing of lanes that are others now.
    pub(super) fn settle_overload_policy(&mut self, lanes_changed: bool) {
        let is_off = self.config.general.overload_policy == GuardPolicy::Off;
        if is_off {
            self.learnt.clear();
        }
        if is_off || lanes_changed {
            for pool in &mut self.pools {
                pool.guard = Guard::default();
            }
        }
    }
}
