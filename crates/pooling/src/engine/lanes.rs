//! Classes of work (`[lanes]`): in which lane a client's request waits, and what becomes of that when the lanes change.
//!
//! Without the section there is one lane, and nobody is asked for his.

use super::Engine;
use crate::client::{CachedLane, ClientState};
use crate::connection::{ClientId, PoolId};
use crate::parameters::APPLICATION_NAME;
use crate::server::ServerState;
use crate::snapshot::LaneRow;
use overload::lanes::LaneShare;
use std::sync::Arc;
use std::time::Duration;

const _: () = assert!(settings::pooler::MAX_LANES <= overload::lanes::MAX_LANES, "each lane has its place");

impl Engine {
    /// The lane of a client's next request: by the `application_name` that it has now, its user and its database.
    #[inline]
    pub(super) fn lane_of(&mut self, id: ClientId) -> u8 {
        if self.config.lanes.is_empty() { 0 } else { self.declared_lane_of(id) }
    }

    fn declared_lane_of(&mut self, id: ClientId) -> u8 {
        let Some(client) = self.clients.find_mut(id) else { return 0 };
        let application_name = client.parameters.value(APPLICATION_NAME);
        if client.lane.is_known && is_same(client.lane.application_name.as_ref(), application_name) {
            return client.lane.number;
        }
        let application_name = application_name.cloned();
        let Some(pool) = client.pool else { return 0 };
        let pool = &self.pools[pool.0 as usize];
        let user = client.login_user.as_ref().unwrap_or(&pool.user);
        let name = application_name.as_deref().unwrap_or_default();
        // The first is for whoever is in no other; there are few enough for eight bits.
        let mut others = (1..).zip(self.config.lanes.iter().skip(1));
        let found = others.find(|(_, lane)| lane.matches(name, user, &pool.database));
        let number = found.map_or(0, |(number, _)| number);
        client.lane = CachedLane { number, application_name, is_known: true };
        number
    }

    /// What each lane may have; one plain lane if none is declared.
    pub(super) fn lane_shares(&self) -> Vec<LaneShare> {
        let declared = self.config.lanes.iter();
        declared.map(|lane| LaneShare { weight: lane.weight, share_percent: lane.share_percent }).collect()
    }

    /// A reload has changed the lanes: who waits keeps the place that his coming gives him, in the lane that is his now.
    pub(super) fn change_lanes(&mut self) {
        for client in self.clients.ids() {
            if let Some(client) = self.clients.find_mut(client) {
                client.lane = CachedLane::default();
            }
        }
        let shares = self.lane_shares();
        // Those too that a reload has just removed: their servers are still in use.
        let count = u32::try_from(self.pools.len()).unwrap_or(u32::MAX);
        for pool in (0..count).map(PoolId) {
            for (client, queued_at) in self.pool_mut(pool).line.reshape(&shares) {
                let lane = self.lane_of(client);
                // As many as waited before, so there is room.
                if let Ok(ticket) = self.pool_mut(pool).line.push_back(lane, client, queued_at)
                    && let Some(client) = self.clients.find_mut(client)
                {
                    client.state = ClientState::Waiting(ticket);
                }
            }
        }
        for id in self.servers.ids() {
            let Some(server) = self.servers.find(id) else { continue };
            let (ServerState::Active(client), pool) = (&server.state, server.pool) else { continue };
            let lane = self.lane_of(*client);
            self.pool_mut(pool).line.hold(lane);
            if let Some(server) = self.servers.find_mut(id) {
                server.lane = lane;
            }
        }
    }

    /// Every lane of every pool; none without `[lanes]`.
    #[must_use]
    pub fn lane_rows(&self) -> Vec<LaneRow> {
        let mut rows = Vec::new();
        for &id in self.pool_index.values() {
            let pool = self.pool(id);
            for (lane, standing) in self.config.lanes.iter().zip(pool.line.standing()) {
                rows.push(LaneRow {
                    database: pool.database.clone(),
                    user: pool.user.clone(),
                    lane: Arc::from(lane.name.as_str()),
                    weight: standing.share.weight,
                    share_percent: standing.share.share_percent,
                    guaranteed: standing.share.guaranteed(pool.live()),
                    waiting: standing.waiting,
                    active: standing.held,
                    maxwait: standing
                        .first_queued_at
                        .map_or(Duration::ZERO, |queued_at| self.now.since(queued_at)),
                    served: standing.served,
                });
            }
        }
        // Of one pool, in the order of the file.
        rows.sort_by(|a, b| (&a.database, &a.user).cmp(&(&b.database, &b.user)));
        rows
    }
}

fn is_same(known: Option<&Arc<str>>, now: Option<&Arc<str>>) -> bool {
    match (known, now) {
        (Some(known), Some(now)) => Arc::ptr_eq(known, now) || known == now,
        (None, None) => true,
        _ => false,
    }
}
