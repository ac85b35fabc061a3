use super::*;

fn config(lines: &str) -> PoolerConfig {
    parse_ini(&format!("[databases]\n{lines}\n{}", general(""))).unwrap().config
}

#[test]
fn line_has_its_name_and_port_by_default() {
    let config = config("app = host=db.example.com");
    let database = &config.databases["app"];
    assert_eq!(database.dbname.as_deref(), Some("app"));
    assert_eq!(database.address, ServerAddress::Tcp { host: "db.example.com".into(), port: 5432 });
    assert_eq!((&database.user, &database.password, database.pool_size), (&None, &None, None));
}

#[test]
fn every_key_reaches_its_field() {
    let config = config(
        "app = dbname=other host=/run/pg port=5433 user=joe password='it''s' pool_size=1 min_pool_size=0 \
         max_db_connections=3 reserve_pool_size=6 max_db_client_connections=7 query_wait_timeout=4 query_timeout=8 idle_transaction_timeout=9 \
         transaction_timeout=10 client_idle_timeout=11 server_lifetime=5 client_disconnect=close session_state=pin pool_mode=transaction \
         connect_query='select 1' client_encoding=UTF8 datestyle=ISO timezone=UTC",
    );
    let expected = Database {
        dbname: Some("other".into()),
        address: ServerAddress::Unix { directory: "/run/pg".into(), port: 5433 },
        user: Some("joe".into()),
        password: Some(Secret::Plain("it's".into())),
        pool_size: Some(1),
        min_pool_size: Some(0),
        reserve_pool_size: Some(6),
        max_db_client_connections: Some(7),
        max_db_connections: Some(3),
        query_wait_timeout: Some(Duration::from_secs(4)),
        query_timeout: Some(Duration::from_secs(8)),
        idle_transaction_timeout: Some(Duration::from_secs(9)),
        transaction_timeout: Some(Duration::from_secs(10)),
        client_idle_timeout: Some(Duration::from_secs(11)),
        server_lifetime: Some(Duration::from_secs(5)),
        pool_mode: Some(PoolMode::Transaction),
        client_disconnect: Some(ClientDisconnect::Close),
        session_state: Some(SessionState::Pin),
        connect_query: Some("select 1".into()),
        client_encoding: Some("UTF8".into()),
        datestyle: Some("ISO".into()),
        timezone: Some("UTC".into()),
    };
    assert_eq!(*config.databases["app"], expected);
}

#[test]
fn star_stands_for_every_other_name() {
    let config = config("app = host=a\n* = host=b port=1\n");
    assert_eq!(config.databases.keys().collect::<Vec<_>>(), ["app"]);
    let fallback = config.fallback_database.unwrap();
    assert_eq!(fallback.dbname, None);
    assert_eq!(fallback.address, ServerAddress::Tcp { host: "b".into(), port: 1 });
}

#[test]
fn line_without_host_is_a_unix_socket_and_a_note_says_where() {
    let loaded = parse_ini(&format!("[databases]\napp =\n{}", general(""))).unwrap();
    let expected = ServerAddress::Unix { directory: "/tmp".into(), port: 5432 };
    assert_eq!(loaded.config.databases["app"].address, expected);
    let note = note(&loaded, "unix-socket").unwrap();
    assert!(note.message.contains("/tmp"), "{}", note.message);
    assert_eq!(note.place.as_ref().map(|place| place.line()), Some(2));
}

#[test]
fn later_of_two_lines_of_one_name_counts_as_a_whole() {
    let loaded =
        parse_ini(&format!("[databases]\na = host=h pool_size=5\na = host=i\n{}", general(""))).unwrap();
    let database = &loaded.config.databases["a"];
    assert_eq!(
        (&database.address, database.pool_size),
        (&ServerAddress::Tcp { host: "i".into(), port: 5432 }, None)
    );
    assert_eq!(
        note(&loaded, "duplicate").and_then(|note| note.place.as_ref()).map(|place| place.line()),
        Some(3)
    );
}

#[test]
fn users_override_what_they_name() {
    let text =
        format!("[users]\n\"jo e\" = pool_size=2 query_timeout=3 pool_mode=transaction\n{}", general(""));
    let config = parse_ini(&text).unwrap().config;
    let expected = UserSettings {
        pool_size: Some(2),
        query_timeout: Some(Duration::from_secs(3)),
        pool_mode: Some(PoolMode::Transaction),
        ..UserSettings::default()
    };
    assert_eq!(config.users["jo e"], expected);
}
