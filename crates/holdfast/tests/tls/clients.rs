//! Each `client_tls_sslmode` against each `sslmode` of PostgreSQL's own client.

use std::process::{Command, Stdio};

use drill::wire::Encryption;

use crate::certificates::Files;
use crate::support::{House, PATIENCE, connect, eventually, value};

/// Runs a command by psql with this connection string, and what it said.
pub(crate) fn psql(house: &House, conninfo: &str, sql: &str) -> Result<String, String> {
    let port = house.pooler.port();
    let conninfo =
        format!("host=127.0.0.1 port={port} user=bench dbname=bench connect_timeout=10 {conninfo}");
    let mut command = Command::new(house.postgres.binaries().program("psql"));
    command.env_clear().env("LC_ALL", "C").env("HOME", "/nonexistent").stdin(Stdio::null());
    let output = command.args(["-X", "-A", "-t", "-w", &conninfo, "-c", sql]).output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    if output.status.success() { Ok(stdout.trim().to_owned()) } else { Err(stderr) }
}

fn start(files: &Files, mode: &str) -> House {
    House::start(|setup| files.offer(setup, mode))
}

/// Whether psql sees its connection encrypted. (`ssl` of `pg_stat_ssl` would speak of the pooler's own connection.)
fn is_encrypted(house: &House, conninfo: &str) -> bool {
    psql(house, conninfo, "\\conninfo").unwrap().contains("SSL connection")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_disabled_tls_is_declined_and_plain_connections_work() {
    let house = House::start(|setup| setup);
    assert!(!is_encrypted(&house, "sslmode=prefer"));
    let told = psql(&house, "sslmode=require", "select 1").unwrap_err();
    assert!(told.contains("server does not support SSL, but SSL was required"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_allowed_a_client_chooses_and_may_check_the_certificate() {
    let files = Files::new();
    let house = start(&files, "allow");
    assert!(!is_encrypted(&house, "sslmode=disable"));
    for mode in ["prefer", "require"] {
        assert!(is_encrypted(&house, &format!("sslmode={mode}")), "{mode}");
    }
    let trusted = files.path("ca.pem");
    for mode in ["verify-ca", "verify-full"] {
        assert!(is_encrypted(&house, &format!("sslmode={mode} sslrootcert={trusted}")), "{mode}");
        let strange = format!("sslmode={mode} sslrootcert={}", files.path("other_ca.pem"));
        let told = psql(&house, &strange, "select 1").unwrap_err();
        assert!(told.contains("certificate verify failed"), "{told}");
    }
    // Nobody asks for it, and it is no hindrance.
    let (certificate, key) = (files.path("stranger.pem"), files.path("stranger.key"));
    assert!(is_encrypted(&house, &format!("sslmode=require sslcert={certificate} sslkey={key}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_required_a_plain_client_is_refused_in_pgbouncers_words_but_not_over_the_unix_socket() {
    let files = Files::new();
    let sockets = tempfile::Builder::new().prefix("hf").tempdir_in("/tmp").unwrap();
    let folder = sockets.path().to_str().unwrap().to_owned();
    let house = House::start(|setup| files.offer(setup, "require").setting("unix_socket_dir", &folder));
    let told = psql(&house, "sslmode=disable", "select 1").unwrap_err();
    assert!(told.contains("FATAL:  SSL required"), "{told}");
    assert_eq!(psql(&house, "sslmode=require", "select 7"), Ok("7".to_owned()));
    assert_eq!(psql(&house, &format!("host={folder} sslmode=prefer"), "select 8"), Ok("8".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_verified_a_client_needs_a_certificate_of_the_authority() {
    let files = Files::new();
    for mode in ["verify-ca", "verify-full"] {
        let house = start(&files, mode);
        let with = |name: &str| {
            let (certificate, key) = (files.path(&format!("{name}.pem")), files.path(&format!("{name}.key")));
            psql(&house, &format!("sslmode=require sslcert={certificate} sslkey={key}"), "select 7")
        };
        assert_eq!(with("client"), Ok("7".to_owned()), "{mode}");
        let told = with("stranger").unwrap_err();
        assert!(told.contains("alert unknown ca") || told.contains("alert decrypt error"), "{mode}: {told}");
        let told = psql(&house, "sslmode=require", "select 7").unwrap_err();
        assert!(told.contains("alert certificate required"), "{mode}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_is_reached_over_tls_and_shows_who_speaks_it() {
    let files = Files::new();
    let house = start(&files, "require");
    let admin = "user=postgres dbname=pgbouncer sslmode=require";
    let rows = psql(&house, admin, "show clients").unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    assert!(rows[0].contains("|TLSv1.3/TLS_AES_256_GCM_SHA384|"), "{rows:?}");
    let old = format!("{admin} ssl_max_protocol_version=TLSv1.2");
    let rows = psql(&house, &old, "show clients").unwrap();
    assert!(rows.contains("|TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384/ECDH=X25519|"), "{rows}");
    let all = psql(&house, admin, "show config").unwrap();
    assert!(all.contains("client_tls_sslmode|require|disable|yes"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_over_tls_is_logged_with_what_it_speaks() {
    let files = Files::new();
    let house = House::start(|setup| files.offer(setup, "require").setting("log_connections", "1"));
    psql(&house, "sslmode=require", "select 1").unwrap();
    eventually(PATIENCE, "the log tells of the login", || {
        let log = house.pooler.log();
        log.lines()
            .any(|line| line.contains("login attempt") && line.contains("TLSv1.3/TLS_AES_256_GCM_SHA384"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_and_ciphers_are_those_of_the_settings() {
    let files = Files::new();
    let house = House::start(|setup| {
        files
            .offer(setup, "require")
            .setting("client_tls_protocols", "tlsv1.2")
            .setting("client_tls_ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305")
            .setting("client_tls_ecdhcurve", "prime256v1")
    });
    let shown = psql(&house, "user=postgres dbname=pgbouncer sslmode=require", "show clients").unwrap();
    assert!(shown.contains("|TLSv1.2/ECDHE-ECDSA-CHACHA20-POLY1305/ECDH=prime256v1|"), "{shown}");
    let told = psql(&house, "sslmode=require ssl_min_protocol_version=TLSv1.3", "select 1").unwrap_err();
    assert!(told.contains("protocol version"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_rsa_and_ed25519_serve_as_well() {
    let files = Files::new();
    for algorithm in [&rcgen::PKCS_RSA_SHA256, &rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P384_SHA384] {
        files.put("server", &files.authority.certify_with("127.0.0.1", algorithm));
        let house = start(&files, "require");
        let conninfo = format!("sslmode=verify-full sslrootcert={}", files.path("ca.pem"));
        assert_eq!(psql(&house, &conninfo, "select 7"), Ok("7".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_request_without_tls_finds_the_query_of_a_session_with_it() {
    let files = Files::new();
    let house = start(&files, "require");
    // libpq before 17 sends it without TLS whatever the session has.
    let psql = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut command = Command::new(house.postgres.binaries().program("psql"));
            let conninfo = format!(
                "host=127.0.0.1 port={} user=bench dbname=bench sslmode=require",
                house.pooler.port()
            );
            command.env_clear().env("LC_ALL", "C").stdin(Stdio::null());
            command.args(["-X", "-w", &conninfo, "-c", "select pg_sleep(60)"]);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            while house.postgres.backends().unwrap().iter().all(|backend| !backend.query.contains("pg_sleep"))
            {
                assert!(child.try_wait().unwrap().is_none());
            }
            drill::process::signal(child.id(), drill::process::Signal::INT).unwrap();
            child.wait_with_output().unwrap()
        });
        running.join().unwrap()
    });
    let told = String::from_utf8(psql.stderr).unwrap();
    assert!(told.contains("canceling statement due to user request"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_gss_encryption_is_declined_before_tls_and_plain_clients_of_ours_still_work() {
    let files = Files::new();
    let house = start(&files, "prefer");
    let probing = house.options().encryption(Encryption::Gss);
    let mut client = connect(&probing).await;
    assert_eq!(value(&mut client, "select 7").await, "7");
}
