use super::*;

fn row(config: &PoolerConfig, key: &str) -> ConfigRow {
    show_config(config).into_iter().find(|row| row.key == key).unwrap()
}

#[test]
fn config_is_shown_sorted_as_it_runs() {
    let text = general(
        "listen_addr = *\nquery_wait_timeout = 1500ms\nunix_socket_mode = 0700\nmax_client_conn = 7\nadmin_users = a,b\nserver_check_query = select 1",
    );
    let config = parse_ini(&text).unwrap().config;
    let rows = show_config(&config);
    assert!(rows.is_sorted_by_key(|row| row.key));
    assert_eq!(rows.len(), table::general().count());
    for (key, value, default, changeable) in [
        ("listen_addr", "*", "", false),
        ("query_wait_timeout", "1.5", "120", true),
        ("unix_socket_mode", "0700", "0777", false),
        ("max_client_conn", "7", "100", true),
        ("admin_users", "a, b", "", true),
        ("server_check_query", "select 1", "<empty>", true),
        ("pool_mode", "transaction", "session", true),
        ("server_tls_sslmode", "prefer", "prefer", true),
        ("client_patience", "", "", true),
        ("drain_limit", "16777216", "16777216", true),
    ] {
        let expected = ConfigRow { key, value: value.into(), default, changeable };
        assert_eq!(row(&config, key), expected);
    }
}

#[test]
fn defaults_are_shown_for_the_kind_of_file() {
    let config = parse_toml("").unwrap().config;
    assert_eq!(row(&config, "query_wait_timeout").default, "4");
    assert_eq!(row(&config, "max_client_conn").value, "10000");
}
