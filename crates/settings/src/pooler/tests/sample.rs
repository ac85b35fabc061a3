use super::*;

/// A file as people have it, with most of what they write.
const SAMPLE: &str = r#";;;
;;; A pooler for the shop.
;;;

[databases]

; the shop itself, on the main server
shop = host=10.1.0.5 port=5432 dbname=shop_production user=shop password='s3cret''s' pool_size=40
;; read alone, on the replica
shop_ro = host=10.1.0.6 dbname=shop_production pool_size=15 connect_query='set default_transaction_read_only to on'

"Reports 2024" = host=10.1.0.6 dbname=reports client_encoding=UTF8 datestyle=ISO timezone='Europe/Berlin'

; anything else on this machine
* = host=/var/run/postgresql

[users]
batch = pool_size=5 query_timeout=600 idle_transaction_timeout=60 max_user_connections=10

[pgbouncer]

logfile = /var/log/pooler/pooler.log
pidfile = /var/run/pooler/pooler.pid

listen_addr = 127.0.0.1, 10.1.0.2
listen_port = 6432
unix_socket_dir = /var/run/postgresql
unix_socket_mode = 0770

auth_type = scram-sha-256
auth_file = /etc/pooler/userlist.txt

admin_users = postgres, ops
stats_users = monitor

pool_mode = transaction

server_reset_query = DISCARD ALL
server_check_query = <empty>
server_check_delay = 30
ignore_startup_parameters = extra_float_digits, options

max_client_conn = 2000
default_pool_size = 25
min_pool_size = 5
max_db_connections = 50
reserve_pool_timeout = 5

log_connections = 0
log_disconnections = 0
log_pooler_errors = 1

server_lifetime = 3600
server_idle_timeout = 600
server_connect_timeout = 15
query_wait_timeout = 4
client_patience = 5

%include /etc/pooler/local.ini
"#;

const LOCAL: &str = "# what is different here\nmax_client_conn = 500\nmetrics_listen = 127.0.0.1:9127\n";

fn sources() -> Memory {
    Memory::new()
        .with("/etc/pooler/pgbouncer.ini", SAMPLE)
        .with("/etc/pooler/local.ini", LOCAL)
        .with("/etc/pooler/userlist.txt", "\"shop\" \"s3cret's\"\n\"batch\" \"x\"\n")
}

#[test]
fn file_as_people_have_it_loads() {
    let loaded = parse(Path::new("/etc/pooler/pgbouncer.ini"), &sources()).unwrap();
    let config = &loaded.config;
    assert_eq!(config.databases.keys().collect::<Vec<_>>(), ["Reports 2024", "shop", "shop_ro"]);
    assert!(config.fallback_database.is_some());
    let shop = &config.databases["shop"];
    assert_eq!(shop.password, Some(Secret::Plain("s3cret's".into())));
    assert_eq!(config.pool_settings(shop, "batch").pool_size, 5);
    assert_eq!(config.pool_settings(shop, "shop").pool_size, 40);
    assert_eq!(config.general.max_client_conn, 500, "the included file comes later");
    assert_eq!(config.general.listen.len(), 2);
    assert_eq!(config.secrets.len(), 2);
    assert_eq!(loaded.files.len(), 3);
}

#[test]
fn its_notes_name_what_is_different_here() {
    let loaded = parse(Path::new("/etc/pooler/pgbouncer.ini"), &sources()).unwrap();
    let codes: Vec<_> = loaded.notes.iter().map(|note| note.code).collect();
    assert_eq!(codes, ["duplicate"]);
    assert!(!to_text(&loaded.notes).contains("s3cret"));
}
