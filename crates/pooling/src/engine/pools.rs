//! Which pools there are, and where their servers are opened.

use super::{Engine, MAX_POOLS};
use crate::connection::PoolId;
use crate::pool::Pool;
use crate::seam::{ServerSecret, Target, Transport};
use crate::texts;
use pgwire::scram::ScramKeys;
use settings::pooler::{Database, PoolerConfig};
use std::sync::Arc;
use tracing::info;

impl Engine {
    /// The pool of a (database, user); made if the configuration knows the database.
    pub(super) fn find_or_make_pool(&mut self, database: &str, user: &str) -> Result<PoolId, String> {
        let Some(definition) = self.config.find_database(database).cloned() else {
            return Err(format!("no such database: {database}"));
        };
        // All clients of a database with a user of its own share one pool, whoever they are.
        let user = definition.user.as_deref().unwrap_or(user);
        let key = (Arc::from(database), Arc::from(user));
        if let Some(&id) = self.pool_index.get(&key) {
            return Ok(id);
        }
        if self.pool_index.len() >= MAX_POOLS && !self.forget_longest_unused() {
            return Err(format!("too many pools: no room for database \"{database}\""));
        }
        let target = Arc::new(target(&self.config, &definition, database, user, None));
        let address = self.hold_address(&target.address);
        let settings = self.config.pool_settings(&definition, user);
        let is_automatic = !self.config.databases.contains_key(database);
        if is_automatic {
            info!(database, "{}", texts::AUTOMATIC_DATABASE);
        }
        let (database, user) = key.clone();
        let mut pool = Pool::new(database, user, target, address, settings);
        pool.is_automatic = is_automatic;
        pool.is_prewarmed = !is_automatic && definition.user.is_some();
        pool.line.reshape(&self.lane_shares());
        let id = match self.free_pools.pop() {
            Some(id) => {
                self.pools[id.0 as usize] = pool;
                id
            }
            None => {
                // MAX_POOLS is far below what the index holds.
                let id = PoolId(u32::try_from(self.pools.len()).unwrap_or(u32::MAX));
                self.pools.push(pool);
                id
            }
        };
        self.pool_index.insert(key, id);
        self.join_caps(id);
        Ok(id)
    }

    /// A client has proved who it is by SCRAM: with the same verifier stored, the server will believe us too.
    pub(super) fn learn_keys(&mut self, id: PoolId, keys: ScramKeys) {
        let pool = &mut self.pools[id.0 as usize];
        if pool.learnt.as_ref() == Some(&keys) {
            return;
        }
        pool.learnt = Some(keys);
        let usable = matches!(pool.target.secret, ServerSecret::None | ServerSecret::Learnt(_))
            || matches!(
                &pool.target.secret,
                ServerSecret::Configured(settings::pooler::Secret::ScramVerifier(_))
            );
        if usable {
            let (database, user) = (pool.database.clone(), pool.user.clone());
            let learnt = pool.learnt.clone();
            if let Some(definition) = self.config.find_database(&database).cloned() {
                let target = target(&self.config, &definition, &database, &user, learnt);
                self.pool_mut(id).target = Arc::new(target);
            }
        }
    }

    /// Opens the minimum of each database whose line names its user: those pools need no client to be known.
    pub(super) fn open_minimum_pools(&mut self, transport: &mut impl Transport) {
        let known: Vec<(String, String)> = self
            .config
            .databases
            .iter()
            .filter_map(|(name, definition)| Some((name.clone(), definition.user.clone()?)))
            .collect();
        for (database, user) in known {
            if let Ok(id) = self.find_or_make_pool(&database, &user) {
                self.refill(transport, id);
            }
        }
    }

    /// Takes a changed configuration into every pool: settings at once, a changed target by replacing its servers.
    pub(super) fn redefine_pools(&mut self) {
        let now = self.now;
        self.set_login_limits();
        let ids: Vec<PoolId> = self.pool_index.values().copied().collect();
        for id in ids {
            let pool = self.pool(id);
            let (database, user, learnt) = (pool.database.clone(), pool.user.clone(), pool.learnt.clone());
            let Some(definition) = self.config.find_database(&database).cloned() else {
                self.pool_mut(id).removed = true;
                continue;
            };
            let new = target(&self.config, &definition, &database, &user, learnt);
            let address = self.hold_address(&new.address);
            let settings = self.config.pool_settings(&definition, &user);
            let is_automatic = !self.config.databases.contains_key(&*database);
            let pool = self.pool_mut(id);
            pool.removed = false;
            pool.settings = settings;
            pool.is_automatic = is_automatic;
            pool.is_prewarmed = !is_automatic && definition.user.is_some();
            // The new one is held, and the old one let go, whether they differ or not.
            let old = std::mem::replace(&mut pool.address, address);
            if *pool.target != new {
                pool.target = Arc::new(new);
                pool.failure = None;
                pool.recovery.reset(now);
            }
            self.release_address(old);
            self.join_caps(id);
        }
    }
}

/// Where and as whom the servers of a pool are opened.
fn target(
    config: &PoolerConfig,
    definition: &Database,
    database: &str,
    user: &str,
    learnt: Option<ScramKeys>,
) -> Target {
    use settings::pooler::Secret;
    let server_user = definition.user.as_deref().unwrap_or(user);
    let configured = definition.password.clone().or_else(|| config.secrets.get(server_user).cloned());
    let secret = match (configured, learnt) {
        // A verifier proves nothing to a server; the keys behind it do.
        (Some(Secret::ScramVerifier(_)) | None, Some(keys)) if definition.user.is_none() => {
            ServerSecret::Learnt(keys)
        }
        (Some(secret), _) => ServerSecret::Configured(secret),
        (None, _) => ServerSecret::None,
    };
    let parameters = [
        ("client_encoding", &definition.client_encoding),
        ("datestyle", &definition.datestyle),
        ("timezone", &definition.timezone),
    ];
    Target {
        address: definition.address.clone(),
        database: definition.dbname.clone().unwrap_or_else(|| database.to_owned()),
        user: server_user.to_owned(),
        secret,
        parameters: parameters
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect(),
        connect_query: definition.connect_query.clone(),
    }
}
