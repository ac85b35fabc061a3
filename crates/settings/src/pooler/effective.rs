//! Which of several settings counts for one pool.

use super::model::{ClientDisconnect, Database, PoolMode, PoolerConfig, SessionState};
use std::sync::Arc;
use std::time::Duration;

/// The settings of one pool: the user's before the database's before the general ones.
/// Durations of zero mean "off".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Most server connections of the pool.
    pub pool_size: usize,
    /// Server connections kept open.
    pub min_pool_size: usize,
    /// Extra server connections for clients that have waited for `reserve_pool_timeout`.
    pub reserve_pool_size: usize,
    /// Longest wait for a server.
    pub query_wait_timeout: Duration,
    /// Longest query.
    pub query_timeout: Duration,
    /// Longest silence inside a transaction.
    pub idle_transaction_timeout: Duration,
    /// Longest transaction.
    pub transaction_timeout: Duration,
    /// Longest silence outside a transaction.
    pub client_idle_timeout: Duration,
    /// Age after which an unused server connection is replaced.
    pub server_lifetime: Duration,
    /// What becomes of a running query when its client is gone.
    pub client_disconnect: ClientDisconnect,
    /// What becomes of a client that leaves something in a session.
    pub session_state: SessionState,
    /// When a server goes back to the pool.
    pub pool_mode: PoolMode,
    /// Most server connections of the database; 0 = no limit.
    pub max_db_connections: usize,
    /// Most server connections of the user; 0 = no limit.
    pub max_user_connections: usize,
}

impl PoolerConfig {
    /// The definition that a database name leads to: its own line, or the `*` line.
    #[must_use]
    pub fn find_database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(name).or(self.fallback_database.as_ref())
    }

    /// Most clients of a database; 0 = no limit.
    #[must_use]
    pub fn client_limit_of_database(&self, name: &str) -> usize {
        self.find_database(name)
            .and_then(|database| database.max_db_client_connections)
            .unwrap_or(self.general.max_db_client_connections)
    }

    /// Most clients that log in as a user; 0 = no limit.
    #[must_use]
    pub fn client_limit_of_user(&self, name: &str) -> usize {
        self.users
            .get(name)
            .and_then(|user| user.max_user_client_connections)
            .unwrap_or(self.general.max_user_client_connections)
    }

    /// The settings of the pool of `user` on a database.
    #[must_use]
    pub fn pool_settings(&self, database: &Database, user: &str) -> PoolSettings {
        let general = &self.general;
        let user = self.users.get(user);
        let pool_size =
            user.and_then(|user| user.pool_size).or(database.pool_size).unwrap_or(general.default_pool_size);
        let min_pool_size = database.min_pool_size.unwrap_or(general.min_pool_size);
        PoolSettings {
            pool_size,
            // A user's smaller pool wins over the database's minimum.
            min_pool_size: min_pool_size.min(pool_size),
            reserve_pool_size: user
                .and_then(|user| user.reserve_pool_size)
                .or(database.reserve_pool_size)
                .unwrap_or(general.reserve_pool_size),
            query_wait_timeout: user
                .and_then(|user| user.query_wait_timeout)
                .or(database.query_wait_timeout)
                .unwrap_or(general.query_wait_timeout),
            query_timeout: user
                .and_then(|user| user.query_timeout)
                .or(database.query_timeout)
                .unwrap_or(general.query_timeout),
            idle_transaction_timeout: user
                .and_then(|user| user.idle_transaction_timeout)
                .or(database.idle_transaction_timeout)
                .unwrap_or(general.idle_transaction_timeout),
            transaction_timeout: user
                .and_then(|user| user.transaction_timeout)
                .or(database.transaction_timeout)
                .unwrap_or(general.transaction_timeout),
            client_idle_timeout: user
                .and_then(|user| user.client_idle_timeout)
                .or(database.client_idle_timeout)
                .unwrap_or(general.client_idle_timeout),
            server_lifetime: database.server_lifetime.unwrap_or(general.server_lifetime),
            pool_mode: user
                .and_then(|user| user.pool_mode)
                .or(database.pool_mode)
                .unwrap_or(general.pool_mode),
            session_state: if general.resets_after_transactions() {
                // The operator's own way to leave nothing behind.
                SessionState::Ignore
            } else {
                user.and_then(|user| user.session_state)
                    .or(database.session_state)
                    .unwrap_or(general.session_state)
            },
            client_disconnect: user
                .and_then(|user| user.client_disconnect)
                .or(database.client_disconnect)
                .unwrap_or(general.client_disconnect),
            max_db_connections: database.max_db_connections.unwrap_or(general.max_db_connections),
            max_user_connections: user
                .and_then(|user| user.max_user_connections)
                .unwrap_or(general.max_user_connections),
        }
    }
}

#[cfg(test)]
mod tests;
