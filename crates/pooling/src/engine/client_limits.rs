//! Limits on clients: of a database (`max_db_client_connections`) and of a login user (`max_user_client_connections`).
//!
//! Whoever has been let in counts until it is gone, as under `max_client_conn`. The console is exempt.

use super::Engine;
use crate::client::Client;
use crate::connection::{ClientId, PoolId};
use crate::events::EventKind;
use crate::seam::Transport;
use crate::texts;
use pgwire::startup::Startup;
use std::collections::HashMap;
use std::sync::Arc;

/// How many clients each database and each login user has; names without clients are not kept.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    databases: HashMap<Arc<str>, usize>,
    users: HashMap<Arc<str>, usize>,
}

impl Engine {
    /// True if the database or the user has as many clients as it may have: this one is told so.
    pub(super) fn refuse_if_crowded(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        startup: &Startup,
    ) -> bool {
        let is_full = |count: Option<&usize>, limit| limit > 0 && count.is_some_and(|&count| count >= limit);
        let counts = &self.client_counts;
        let (database, user) = (startup.database.as_str(), startup.user.as_str());
        let setting =
            if is_full(counts.databases.get(database), self.config.client_limit_of_database(database)) {
                "max_db_client_connections"
            } else if is_full(counts.users.get(user), self.config.client_limit_of_user(user)) {
                "max_user_client_connections"
            } else {
                return false;
            };
        self.totals.clients_refused += 1;
        self.record(None, EventKind::ClientRefused);
        let text = format!("client connections exceeded ({setting})");
        let farewell = texts::fatal(texts::TOO_MANY_CONNECTIONS, &text);
        self.dismiss_client(transport, id, &farewell, &text);
        true
    }

    /// A client of this pool has been let in.
    pub(super) fn count_client(&mut self, id: ClientId, pool_id: PoolId, user: &str) {
        let database = self.pool(pool_id).database.clone();
        let user = match self.client_counts.users.get_key_value(user) {
            // All clients of a user share its name.
            Some((user, _)) => user.clone(),
            None => Arc::from(user),
        };
        *self.client_counts.databases.entry(database).or_default() += 1;
        *self.client_counts.users.entry(user.clone()).or_default() += 1;
        if let Some(client) = self.clients.find_mut(id) {
            client.login_user = Some(user);
        }
        self.pool_mut(pool_id).clients += 1;
        self.note_used(pool_id);
        if self.pool(pool_id).clients == 1 {
            // From now on it keeps its minimum.
            self.arm_pool_at(pool_id, self.now);
        }
    }

    /// A client that was counted is gone.
    pub(super) fn uncount_client(&mut self, client: &Client) {
        let Some(pool_id) = client.pool else { return };
        take_one(&mut self.client_counts.databases, &self.pools[pool_id.0 as usize].database);
        if let Some(user) = &client.login_user {
            take_one(&mut self.client_counts.users, user);
        }
        self.pool_mut(pool_id).clients -= 1;
        self.update_need(pool_id);
        self.settle_pool(pool_id);
    }
}

fn take_one(counts: &mut HashMap<Arc<str>, usize>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}
