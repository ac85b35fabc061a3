use super::*;
use crate::diagnostic::{Severity, to_text};
use std::time::Duration;

mod databases;
mod properties;
mod refusals;
mod sample;
mod show;

/// An ini file with `lines` in [pgbouncer].
fn general(lines: &str) -> String {
    format!("[pgbouncer]\npool_mode = transaction\n{lines}\n")
}

/// Line, column, code and message of each.
fn described(diagnostics: &[Diagnostic]) -> Vec<(usize, usize, &'static str, &str)> {
    diagnostics
        .iter()
        .map(|diagnostic| {
            let place = diagnostic.place.as_ref();
            let (line, column) = place.map_or((0, 0), |place| (place.line(), place.column()));
            (line, column, diagnostic.code, diagnostic.message.as_str())
        })
        .collect()
}

fn only_error(result: Result<Loaded, Vec<Diagnostic>>) -> (usize, usize, &'static str, String, String) {
    let errors = result.unwrap_err();
    assert_eq!(errors.len(), 1, "{}", to_text(&errors));
    let (line, column, code, message) = described(&errors)[0];
    (line, column, code, message.to_owned(), errors[0].help.clone().unwrap_or_default())
}

fn note<'a>(loaded: &'a Loaded, code: &str) -> Option<&'a Diagnostic> {
    loaded.notes.iter().find(|note| note.code == code)
}

#[test]
fn defaults_of_an_ini_file_are_pgbouncers() {
    let loaded = parse_ini(&general("")).unwrap();
    let general = &loaded.config.general;
    assert_eq!(loaded.config.dialect, Dialect::Ini);
    assert_eq!(general.max_client_conn, 100);
    assert_eq!(general.default_pool_size, 20);
    assert_eq!(general.query_wait_timeout, Duration::from_secs(120));
    assert_eq!(general.cancel_wait_timeout, Duration::from_secs(10));
    assert_eq!(general.drain_timeout, Duration::ZERO);
    assert_eq!(general.client_patience, None);
    assert_eq!(general.client_disconnect, ClientDisconnect::Cancel);
    assert_eq!(general.listen, []);
    assert_eq!(general.listen_port, 6432);
    assert_eq!(general.unix_socket_dir.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(general.unix_socket_mode, 0o777);
    assert_eq!(general.auth_type, AuthType::Md5);
    assert_eq!(general.max_packet_size, 2_147_483_647);
    assert_eq!(general.server_check_query, "");
    assert_eq!(general.metrics_listen, None, "no port that PgBouncer would not open");
    assert!(general.log_connections && general.log_stats && general.tcp_keepalive.enabled);
    assert_eq!((general.waiter_buffer, general.drain_limit), (64 << 10, 16 << 20));
    assert_eq!((general.server_login_concurrency, general.server_login_rate), (64, 200));
    assert_eq!(general.client_write_timeout, Duration::from_secs(10));
    assert_eq!(general.client_message_timeout, Duration::from_secs(10));
    assert_eq!(general.lock_pileup, LockPileup::Warn);
    assert_eq!(general.lock_pileup_grace, Duration::from_millis(500));
}

#[test]
fn defaults_of_toml_are_ours() {
    let loaded = parse_toml("[pooler]\n").unwrap();
    let general = &loaded.config.general;
    assert_eq!(loaded.config.dialect, Dialect::Toml);
    assert_eq!(general.max_client_conn, 10_000);
    assert_eq!(general.query_wait_timeout, Duration::from_secs(4));
    assert_eq!(general.drain_timeout, Duration::from_secs(60));
    assert_eq!(general.default_pool_size, 20);
    assert_eq!(general.client_patience, None);
}

#[test]
fn both_kinds_of_file_give_the_same() {
    let ini = "
[databases]
app = host=127.0.0.1 port=5433 pool_size=7 query_wait_timeout=2
[users]
joe = pool_size=3
[pgbouncer]
pool_mode = transaction
listen_addr = 127.0.0.1, ::1
listen_port = 7000
admin_users = ann, joe
query_wait_timeout = 2.5
waiter_buffer = 128kB
log_connections = 0
max_client_conn = 10000
unix_socket_mode = 0700
drain_timeout = 60
lock_pileup = cancel-waiting-ddl
reserve_pool_timeout = 1
query_wait_notify = 2
pool_idle_timeout = 1h
overload_policy = on
connection_attempts = on
";
    let toml = r#"
[pooler]
listen_addr = ["127.0.0.1", "::1"]
listen_port = 7000
admin_users = ["ann", "joe"]
query_wait_timeout = 2.5
waiter_buffer = "128kB"
log_connections = false
unix_socket_mode = 0o700
[databases]
app = { host = "127.0.0.1", port = 5433, pool_size = 7, query_wait_timeout = "2s" }
[users.joe]
pool_size = 3
"#;
    let ini = parse_ini(ini).unwrap().config;
    let mut toml = parse_toml(toml).unwrap().config;
    toml.dialect = ini.dialect;
    toml.general.conffile = ini.general.conffile.clone();
    assert_eq!(format!("{ini:?}"), format!("{toml:?}"));
}

#[test]
fn kind_of_file_follows_its_name() {
    let toml = Memory::new().with("a.TOML", "[pgbouncer]\nmax_client_conn = 5\n");
    let loaded = parse(Path::new("a.TOML"), &toml).unwrap();
    assert_eq!((loaded.config.dialect, loaded.config.general.max_client_conn), (Dialect::Toml, 5));
    let ini = Memory::new().with("a.conf", general("max_client_conn = 5"));
    assert_eq!(parse(Path::new("a.conf"), &ini).unwrap().config.dialect, Dialect::Ini);
}

#[test]
fn durations_sizes_and_switches_are_typed() {
    let text = general(
        "query_timeout = 500ms\nserver_lifetime = 1h\nclient_idle_timeout = 0.25\nwaiter_buffer = 8kB\n\
         drain_limit = 1MB\nserver_round_robin = yes\nlog_stats = off\nclient_disconnect = finish\n\
         log_format = json\nmetrics_listen = localhost:9127\nignore_startup_parameters = a,b , c\n\
         tcp_keepcnt = 3\ntcp_keepidle = 4\ntcp_keepintvl = 5\ntcp_user_timeout = 6\ntcp_socket_buffer = 7\ntcp_keepalive = 0",
    );
    let general = parse_ini(&text).unwrap().config.general;
    assert_eq!(general.query_timeout, Duration::from_millis(500));
    assert_eq!(general.server_lifetime, Duration::from_secs(3600));
    assert_eq!(general.client_idle_timeout, Duration::from_millis(250));
    assert_eq!((general.waiter_buffer, general.drain_limit), (8192, 1 << 20));
    assert!(general.server_round_robin && !general.log_stats);
    assert_eq!(general.client_disconnect, ClientDisconnect::Finish);
    assert_eq!(general.log_format, LogFormat::Json);
    assert_eq!(general.metrics_listen.map(|address| address.to_string()).as_deref(), Some("127.0.0.1:9127"));
    assert_eq!(general.ignore_startup_parameters, ["a", "b", "c"]);
    let expected =
        Keepalive { enabled: false, count: 3, idle_s: 4, interval_s: 5, user_timeout_ms: 6, buffer_bytes: 7 };
    assert_eq!(general.tcp_keepalive, expected);
}

#[test]
fn listen_addresses_are_literals_names_and_all() {
    let listen = |value: &str| -> Vec<String> {
        let text = general(&format!("listen_addr = {value}\nlisten_port = 5"));
        parse_ini(&text).unwrap().config.general.listen.iter().map(ToString::to_string).collect()
    };
    assert_eq!(listen("127.0.0.1"), ["127.0.0.1:5"]);
    assert_eq!(listen("10.0.0.1, ::1 ,[fe80::1],"), ["10.0.0.1:5", "[::1]:5", "[fe80::1]:5"]);
    assert_eq!(listen("localhost, 127.0.0.1"), ["127.0.0.1:5"]);
    assert_eq!(listen("*"), ["0.0.0.0:5", "[::]:5"]);
}

#[test]
fn later_of_two_values_counts_and_a_note_says_so() {
    let loaded = parse_ini(&general("max_client_conn = 5\nmax_client_conn = 6")).unwrap();
    assert_eq!(loaded.config.general.max_client_conn, 6);
    let place = note(&loaded, "duplicate").and_then(|note| note.place.as_ref()).unwrap();
    assert_eq!((place.line(), place.column()), (3, 1));
}

#[test]
fn what_has_no_effect_is_accepted_with_its_reason() {
    let loaded = parse_ini(&general("pkt_buf = 8192\ntcp_defer_accept = 1")).unwrap();
    let notes: Vec<_> = described(&loaded.notes).into_iter().filter(|note| note.2 == "no-effect").collect();
    assert_eq!(notes.iter().map(|note| (note.0, note.1)).collect::<Vec<_>>(), [(3, 1), (4, 1)]);
    assert!(notes[1].3.contains("no pool slot"), "{}", notes[1].3);
}

#[test]
fn values_that_ask_for_nothing_are_accepted_where_nothing_is_built() {
    let text = general(
        "client_tls_sslmode = DISABLE\nserver_tls_sslmode = disable\nsyslog = off\n\
         peer_id = 0\nauth_hba_file =\ndns_zone_check_period = 0s",
    );
    let loaded = parse_ini(&text).unwrap();
    assert!(note(&loaded, "no-effect").is_none());
}

#[test]
fn ini_file_without_patience_is_told_of_the_long_wait() {
    assert!(note(&parse_ini(&general("")).unwrap(), "patience-unknown").is_some());
    for known in ["query_wait_timeout = 120", "client_patience = 5\nquery_wait_timeout = 4"] {
        assert!(note(&parse_ini(&general(known)).unwrap(), "patience-unknown").is_none(), "{known}");
    }
    assert!(note(&parse_toml("").unwrap(), "patience-unknown").is_none());
}

#[test]
fn tls_to_clients_needs_a_key_and_a_certificate() {
    let errors = parse_ini(&general("client_tls_sslmode = verify-full")).unwrap_err();
    let missing: Vec<_> = errors.iter().map(|error| (error.code, error.message.as_str())).collect();
    assert_eq!(missing.iter().map(|(code, _)| *code).collect::<Vec<_>>(), ["tls-file-missing"; 3]);
    for (file, (_, message)) in ["key_file", "cert_file", "ca_file"].iter().zip(&missing) {
        assert!(message.contains(&format!("`client_tls_{file}`")), "{message}");
    }
    let given = "client_tls_sslmode = allow\nclient_tls_key_file = k.pem\nclient_tls_cert_file = c.pem\n\
                 client_tls_protocols = all";
    let loaded = parse_ini(&general(given)).unwrap();
    assert!(note(&loaded, "old-tls").is_some(), "what is not offered is told");
    assert!(loaded.config.general.client_tls.protocols.tls12);
}

#[test]
fn nobody_able_to_log_in_is_a_warning() {
    let loaded = parse_ini(&general("")).unwrap();
    assert_eq!(note(&loaded, "nobody-can-log-in").map(|note| note.severity), Some(Severity::Warning));
    let loaded = parse_ini(&general("auth_type = any\n[databases]\na = host=h\nb = host=h user=x")).unwrap();
    let warned: Vec<_> =
        described(&loaded.notes).into_iter().filter(|note| note.2 == "nobody-can-log-in").collect();
    assert_eq!(warned.iter().map(|note| note.0).collect::<Vec<_>>(), [5]);
}

#[test]
fn auth_file_is_read_and_listed() {
    let sources = Memory::new()
        .with("main.ini", general("auth_file = users.txt\nauth_type = scram-sha-256"))
        .with("users.txt", "\"joe\" \"hush\"\n\"old\" \"md5cbdbf5d5d5a4d1bbd4dc8f3eaf6d1a11\"\n");
    let loaded = parse(Path::new("main.ini"), &sources).unwrap();
    assert_eq!(loaded.config.secrets["joe"], Secret::Plain("hush".into()));
    assert_eq!(loaded.files, [Path::new("main.ini"), Path::new("users.txt")]);
    assert!(!format!("{loaded:?}").contains("hush"));
    let warning = note(&loaded, "nobody-can-log-in").unwrap();
    assert!(warning.message.starts_with("1 users have an md5 secret"), "{}", warning.message);
}

#[test]
fn files_that_others_may_read_are_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = std::env::temp_dir().join(format!("holdfast-settings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (main, users) = (folder.join("main.ini"), folder.join("users.txt"));
    let text = general(&format!("auth_file = {}\n[databases]\na = host=h password=hush", users.display()));
    std::fs::write(&main, text).unwrap();
    std::fs::write(&users, "\"joe\" \"hush\"\n").unwrap();
    let warned = |mode: u32| {
        for path in [&main, &users] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let loaded = load(&main).unwrap();
        described(&loaded.notes).iter().filter(|note| note.2 == "secret-file").count()
    };
    assert_eq!(warned(0o644), 2);
    assert_eq!(warned(0o640), 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn missing_file_is_an_error_without_a_place() {
    let errors = load(Path::new("/nonexistent/pgbouncer.ini")).unwrap_err();
    assert_eq!((errors.len(), errors[0].code), (1, "unreadable"));
    assert!(errors[0].message.contains("`/nonexistent/pgbouncer.ini`"));
}

#[test]
fn a_users_limit_below_a_minimum_is_warned_of_and_runs() {
    for (line, limit) in
        [("max_user_connections=2", "`max_user_connections`"), ("pool_size=2", "`pool_size`")]
    {
        let users = format!("[users]\njoe = {line}\nann = max_user_connections=0\n");
        let loaded = parse_ini(&(users + &general("min_pool_size = 5"))).unwrap();
        let warning = note(&loaded, "minimum-above-maximum").unwrap();
        assert!(warning.message.contains(limit) && warning.message.contains("`joe`"), "{}", warning.message);
        assert_eq!(warning.place.as_ref().map(|place| place.line()), Some(2));
    }
}
