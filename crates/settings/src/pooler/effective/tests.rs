use super::*;
use crate::pooler::parse_ini;

fn config() -> PoolerConfig {
    let text = "
[databases]
plain = host=127.0.0.1
own = host=127.0.0.1 pool_size=6 min_pool_size=2 reserve_pool=3 max_db_client_connections=4 query_timeout=41 idle_transaction_timeout=42 transaction_timeout=43 client_idle_timeout=44 max_db_connections=7 query_wait_timeout=8 server_lifetime=9 client_disconnect=finish session_state=refuse pool_mode=session
[users]
joe = pool_size=1 reserve_pool_size=0 max_user_client_connections=5 max_user_connections=12 query_wait_timeout=13 query_timeout=14 idle_transaction_timeout=15 transaction_timeout=16 client_idle_timeout=17 client_disconnect=close session_state=ignore pool_mode=statement
[pgbouncer]
pool_mode = transaction
default_pool_size = 20
min_pool_size = 1
max_db_connections = 21
max_user_connections = 22
query_wait_timeout = 23
query_timeout = 24
idle_transaction_timeout = 25
transaction_timeout = 26
client_idle_timeout = 27
server_lifetime = 28
reserve_pool_size = 29
max_db_client_connections = 30
max_user_client_connections = 31
";
    parse_ini(text).unwrap().config
}

fn settings(user: &str, database: &str) -> PoolSettings {
    let config = config();
    config.pool_settings(&config.databases[database], user)
}

#[test]
fn general_settings_count_where_nothing_else_is_written() {
    let expected = PoolSettings {
        pool_size: 20,
        min_pool_size: 1,
        reserve_pool_size: 29,
        query_wait_timeout: Duration::from_secs(23),
        query_timeout: Duration::from_secs(24),
        idle_transaction_timeout: Duration::from_secs(25),
        transaction_timeout: Duration::from_secs(26),
        client_idle_timeout: Duration::from_secs(27),
        server_lifetime: Duration::from_secs(28),
        client_disconnect: ClientDisconnect::Cancel,
        session_state: SessionState::Pin,
        pool_mode: PoolMode::Transaction,
        max_db_connections: 21,
        max_user_connections: 22,
    };
    assert_eq!(settings("ann", "plain"), expected);
}

#[test]
fn database_counts_before_general() {
    let settings = settings("ann", "own");
    assert_eq!((settings.pool_size, settings.min_pool_size, settings.max_db_connections), (6, 2, 7));
    assert_eq!(settings.query_wait_timeout, Duration::from_secs(8));
    assert_eq!(settings.server_lifetime, Duration::from_secs(9));
    assert_eq!(settings.client_disconnect, ClientDisconnect::Finish);
    assert_eq!(settings.session_state, SessionState::Refuse);
    assert_eq!(settings.pool_mode, PoolMode::Session);
    assert_eq!(settings.query_timeout, Duration::from_secs(41));
    assert_eq!(settings.idle_transaction_timeout, Duration::from_secs(42));
    assert_eq!(settings.transaction_timeout, Duration::from_secs(43));
    assert_eq!(settings.client_idle_timeout, Duration::from_secs(44));
}

#[test]
fn user_counts_before_database() {
    let settings = settings("joe", "own");
    assert_eq!((settings.pool_size, settings.max_user_connections), (1, 12));
    assert_eq!(settings.min_pool_size, 1, "no more than the user's pool");
    assert_eq!(settings.query_wait_timeout, Duration::from_secs(13));
    assert_eq!(settings.query_timeout, Duration::from_secs(14));
    assert_eq!(settings.idle_transaction_timeout, Duration::from_secs(15));
    assert_eq!(settings.transaction_timeout, Duration::from_secs(16));
    assert_eq!(settings.client_idle_timeout, Duration::from_secs(17));
    assert_eq!(settings.client_disconnect, ClientDisconnect::Close);
    assert_eq!(settings.session_state, SessionState::Ignore);
    assert_eq!(settings.pool_mode, PoolMode::Statement);
    assert_eq!((settings.max_db_connections, settings.server_lifetime), (7, Duration::from_secs(9)));
}

#[test]
fn extra_connections_are_the_users_before_the_databases_before_the_general_ones() {
    let of = |user, database| settings(user, database).reserve_pool_size;
    assert_eq!((of("ann", "plain"), of("ann", "own"), of("joe", "own")), (29, 3, 0));
}

#[test]
fn limits_on_clients_are_those_of_the_line_before_the_general_ones() {
    let config = config();
    assert_eq!(config.client_limit_of_database("plain"), 30);
    assert_eq!(config.client_limit_of_database("own"), 4);
    assert_eq!(config.client_limit_of_user("ann"), 31);
    assert_eq!(config.client_limit_of_user("joe"), 5);
}

#[test]
fn a_reset_after_each_transaction_leaves_nothing_to_look_for() {
    let state = |more: &str| {
        let text = format!("[databases]\nd = host=127.0.0.1\n[pgbouncer]\npool_mode = transaction\n{more}");
        let config = parse_ini(&text).unwrap().config;
        config.pool_settings(&config.databases["d"], "joe").session_state
    };
    assert_eq!(state(""), SessionState::Pin);
    assert_eq!(state("server_reset_query_always = 1\n"), SessionState::Ignore);
    assert_eq!(state("server_reset_query_always = 1\nserver_reset_query =\n"), SessionState::Pin);
}
