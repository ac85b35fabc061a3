//! Descriptors: how many there are, and how many clients they allow.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use settings::pooler::{Database, PoolerConfig};

/// Kept for listeners, console, metrics, logs, cancel requests, and clients that are only being refused.
const OTHER_DESCRIPTORS: usize = 64;

/// Raises the process's soft limit of descriptors to the hard one and tells how many clients fit. Warns if that is
/// fewer than `max_client_conn`.
pub(super) fn client_limit(config: &PoolerConfig) -> usize {
    let descriptors = raise();
    let limit = clients_of(descriptors, servers_of(config));
    let wanted = config.general.max_client_conn;
    if limit < wanted {
        tracing::warn!(
            descriptors,
            max_client_conn = wanted,
            client_limit = limit,
            "the limit of open files is too low for max_client_conn and the pools: fewer clients are let in; raise it \
             (ulimit -n, LimitNOFILE=) or lower max_client_conn"
        );
    }
    limit
}

/// The soft limit after raising it.
fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let current = match raised {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            current
        }
    };
    current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Servers come first, but never take more than half; what is kept besides never takes more than a quarter.
fn clients_of(descriptors: usize, servers: usize) -> usize {
    descriptors
        .saturating_sub(servers.min(descriptors / 2))
        .saturating_sub(OTHER_DESCRIPTORS.min(descriptors / 4))
}

/// The most server connections that the configuration can lead to.
fn servers_of(config: &PoolerConfig) -> usize {
    let databases = config.databases.values().chain(&config.fallback_database);
    databases.fold(0, |sum, database| sum.saturating_add(servers_of_database(config, database)))
}

fn servers_of_database(config: &PoolerConfig, database: &Database) -> usize {
    let most = database.max_db_connections.unwrap_or(config.general.max_db_connections);
    if most > 0 {
        return most;
    }
    let pool_size = database.pool_size.unwrap_or(config.general.default_pool_size);
    pool_size.saturating_mul(config.secrets.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_a_reserve_come_before_clients() {
        assert_eq!(clients_of(1024, 20), 1024 - 20 - OTHER_DESCRIPTORS);
        assert_eq!(clients_of(1024, 100_000), 512 - OTHER_DESCRIPTORS);
        assert_eq!(clients_of(100, 1000), 25);
    }

    #[test]
    fn every_user_of_a_database_may_fill_a_pool() {
        let text = "[databases]\na = host=127.0.0.1 pool_size=3\nb = host=127.0.0.1 max_db_connections=7\n\
                    [pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = any\npool_mode = transaction\n";
        let config = settings::pooler::parse_ini(text).unwrap().config;
        assert_eq!(servers_of(&config), 10);
    }
}
