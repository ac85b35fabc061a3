//! A new configuration takes effect, on pools that stand still too.

use super::Engine;
use crate::close_cause::CloseCause;
use crate::connection::PoolId;
use crate::seam::Transport;
use crate::server::ServerState;
use crate::texts;
use settings::pooler::PoolerConfig;
use std::sync::Arc;

impl Engine {
    /// Runs with another configuration from now on. Limits act at once: on who waits already, on servers in use as
    /// soon as they are free, on a pool that has stalled.
    pub fn reload(&mut self, transport: &mut impl Transport, config: Arc<PoolerConfig>) {
        let secrets_changed = self.config.secrets != config.secrets;
        self.config = config;
        if secrets_changed {
            self.verifiers.clear();
        }
        let before: Vec<(PoolId, Arc<crate::seam::Target>)> =
            self.pool_index.values().map(|&id| (id, self.pool(id).target.clone())).collect();
        self.redefine_pools();
        for (id, old) in before {
            if self.pool(id).removed {
                self.remove_pool(transport, id);
                continue;
            }
            if !Arc::ptr_eq(&old, &self.pool(id).target) {
                self.retire_servers(transport, id, CloseCause::ConfigurationChanged);
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
            self.rearm_server_idle(id);
        }
        self.open_minimum_pools(transport);
    }

    /// The database is no longer in the configuration.
    fn remove_pool(&mut self, transport: &mut impl Transport, id: PoolId) {
        let clients =
            self.clients.iter().filter(|(_, client)| client.pool == Some(id)).map(|(client, _)| client);
        let clients: Vec<_> = clients.collect();
        let farewell = texts::fatal(texts::ADMIN_SHUTDOWN, "database removed");
        for client in clients {
            self.dismiss_client(transport, client, &farewell, "database removed");
        }
        self.retire_servers(transport, id, CloseCause::ConfigurationChanged);
        self.pool_mut(id).settings.min_pool_size = 0;
        self.pool_index.retain(|_, known| *known != id);
        self.free_if_removed(id);
    }

    /// A removed pool without anything left gives its place to others.
    pub(super) fn free_if_removed(&mut self, id: PoolId) {
        let pool = self.pool(id);
        if pool.removed && pool.total() == 0 && pool.clients == 0 && !self.free_pools.contains(&id) {
            self.leave_all_caps(id);
            self.free_pools.push(id);
        }
    }

    /// Closes the servers of a pool: those at rest at once, the others when they are free.
    pub(super) fn retire_servers(&mut self, transport: &mut impl Transport, id: PoolId, cause: CloseCause) {
        let servers: Vec<_> =
            self.servers.iter().filter(|(_, server)| server.pool == id).map(|(server, _)| server).collect();
        for server_id in servers {
            let Some(server) = self.servers.find_mut(server_id) else { continue };
            server.close_needed = Some(cause);
            if matches!(server.state, ServerState::Idle) {
                self.close_server(transport, server_id, cause);
            }
        }
    }

    /// The pool may be larger than it should be now: idle servers go, the oldest first.
    fn shrink_pool(&mut self, transport: &mut impl Transport, id: PoolId) {
        loop {
            let pool = self.pool(id);
            if pool.live() + pool.logins <= pool.settings.pool_size {
                return;
            }
            let Some(&oldest) = pool.idle.front() else { return };
            self.close_server(transport, oldest, CloseCause::PoolShrunk);
        }
    }
}
