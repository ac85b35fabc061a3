//! A new configuration takes effect, on pools that stand still too.

use super::Engine;
use crate::close_cause::CloseCause;
use crate::connection::{ClientId, PoolId, ServerId};
use crate::events::EventKind;
use crate::seam::{Target, Transport};
use crate::server::ServerState;
use crate::stall::StallEnd;
use crate::texts;
use settings::pooler::{PoolMode, PoolerConfig};
use std::collections::HashMap;
use std::sync::Arc;

/// What a server's session was opened and used by: when it changes, what clients have left there means something else.
#[derive(PartialEq)]
struct SessionRules {
    target: Arc<Target>,
    pool_mode: PoolMode,
    translates_statements: bool,
}

impl Engine {
    /// Runs with another configuration from now on. Limits act at once: on who waits already, on servers in use as
    /// soon as they are free, on a pool that has stalled.
    pub fn reload(&mut self, transport: &mut impl Transport, config: Arc<PoolerConfig>) {
        let secrets_changed = self.config.secrets != config.secrets;
        if secrets_changed {
            self.verifiers.clear();
            self.deriving.clear();
        }
        let before: Vec<(PoolId, SessionRules)> =
            self.pool_index.values().map(|&id| (id, self.session_rules(id))).collect();
        let lanes_changed = self.config.lanes != config.lanes;
        self.config = config;
        self.redefine_pools();
        self.forget_attempts();
        self.reset_running_limits();
        if lanes_changed {
            self.change_lanes();
        }
        self.settle_overload_policy(lanes_changed);
        // Once for all pools, of which there may be thousands.
        let mut members = self.members();
        for (id, old) in before {
            let (clients, servers) = members.remove(&id).unwrap_or_default();
            if self.pool(id).removed {
                self.remove_pool(transport, id, clients, servers);
                continue;
            }
            if old != self.session_rules(id) {
                self.retire_servers(transport, servers, CloseCause::ConfigurationChanged);
            }
            self.shrink_pool(transport, id);
            // Expires those who have waited too long by the new limit, and opens what the new size allows.
            self.check_pool(transport, id);
        }
        for id in self.clients.ids() {
            self.arm_client_idle(id);
            self.arm_active(id);
        }
        for id in self.servers.ids() {
            self.renew_lifetime(id);
            self.rearm_server_idle(id);
        }
        self.open_minimum_pools(transport);
        self.record(None, EventKind::Reloaded);
    }

    fn session_rules(&self, id: PoolId) -> SessionRules {
        let pool = self.pool(id);
        SessionRules {
            target: pool.target.clone(),
            pool_mode: pool.settings.pool_mode,
            translates_statements: pool.translates_statements(&self.config.general),
        }
    }

    /// The database is no longer in the configuration.
    fn remove_pool(
        &mut self,
        transport: &mut impl Transport,
        id: PoolId,
        clients: Vec<ClientId>,
        servers: Vec<ServerId>,
    ) {
        let farewell = texts::fatal(texts::ADMIN_SHUTDOWN, "database removed");
        for client in clients {
            self.dismiss_client(transport, client, &farewell, "database removed");
        }
        self.retire_servers(transport, servers, CloseCause::ConfigurationChanged);
        self.end_stall(id, self.now, StallEnd::Removed);
        self.pool_mut(id).settings.min_pool_size = 0;
        let pool = self.pool(id);
        self.pool_index.remove(&(pool.database.clone(), pool.user.clone()));
        self.settle_pool(id);
    }

    /// The clients and servers of each pool.
    fn members(&self) -> HashMap<PoolId, (Vec<ClientId>, Vec<ServerId>)> {
        let mut members: HashMap<PoolId, (Vec<ClientId>, Vec<ServerId>)> = HashMap::new();
        for (id, client) in self.clients.iter() {
            if let Some(pool) = client.pool {
                members.entry(pool).or_default().0.push(id);
            }
        }
        for (id, server) in self.servers.iter() {
            members.entry(server.pool).or_default().1.push(id);
        }
        members
    }

    /// Closes servers: those at rest at once, the others when they are free.
    pub(super) fn retire_servers(
        &mut self,
        transport: &mut impl Transport,
        servers: Vec<ServerId>,
        cause: CloseCause,
    ) {
        for server_id in servers {
            let Some(server) = self.servers.find_mut(server_id) else { continue };
            server.close_needed = Some(cause);
            if matches!(server.state, ServerState::Idle) {
                self.close_server(transport, server_id, cause);
            } else {
                self.end_session_if_retired(transport, server_id);
            }
        }
    }

    /// The pool may be larger than it should be now: idle servers go, the oldest first.
    fn shrink_pool(&mut self, transport: &mut impl Transport, id: PoolId) {
        loop {
            let pool = self.pool(id);
            if pool.live() + pool.logins <= pool.greatest_size() {
                return;
            }
            let Some(&oldest) = pool.idle.front() else { return };
            self.close_server(transport, oldest, CloseCause::PoolShrunk);
        }
    }
}
