//! Each `server_tls_sslmode`, to servers with and without TLS.

use drill::postgres::PostgresOptions;
use drill::wire::frame;

use crate::certificates::Files;
use crate::clients::psql;
use crate::support::{House, PATIENCE, eventually, holdfast, not_run, reply, value};

/// Whether the session that runs the query is encrypted on its way to the server.
const ENCRYPTED: &str = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";

/// The pooler in front of a server with this certificate, or without TLS.
fn start(files: &Files, certified: Option<&str>, mode: &str, settings: &[(&str, &str)]) -> House {
    let mut options = PostgresOptions::default();
    if let Some(name) = certified {
        let certificate = files.authority.certify(name);
        options = options.tls(&certificate.pem, &certificate.key);
        options = options.file("root.crt", &files.read("ca.pem")).setting("ssl_ca_file", "root.crt");
        options = options.hba_line("hostssl all certified 127.0.0.1/32 cert");
        options = options.hba_line("hostssl all secret 127.0.0.1/32 scram-sha-256");
    }
    House::build(&holdfast(), options, false, |setup| {
        let setup =
            setup.setting("server_tls_sslmode", mode).setting("server_tls_ca_file", &files.path("ca.pem"));
        settings.iter().fold(setup, |setup, (name, value)| setup.setting(name, value))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_takes_tls_where_the_server_has_it() {
    let files = Files::new();
    let certificate = files.authority.certify("127.0.0.1");
    let options = PostgresOptions::default().tls(&certificate.pem, &certificate.key);
    let house = House::build(&holdfast(), options, false, |setup| setup);
    assert_eq!(psql(&house, "", ENCRYPTED), Ok("t".to_owned()));
    let rows = house.show("SERVERS").await;
    assert_eq!(rows[0]["tls"], "TLSv1.3/TLS_AES_256_GCM_SHA384");
    let house = House::start(|setup| setup);
    assert_eq!(psql(&house, "", ENCRYPTED), Ok("f".to_owned()));
    assert_eq!(house.show("SERVERS").await[0]["tls"], "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_does_what_it_says_to_a_server_with_tls() {
    let files = Files::new();
    // The certificate is for a name that nobody connects to.
    for (mode, encrypted) in
        [("disable", "f"), ("allow", "t"), ("prefer", "t"), ("require", "t"), ("verify-ca", "t")]
    {
        let house = start(&files, Some("db.internal"), mode, &[]);
        assert_eq!(psql(&house, "", ENCRYPTED), Ok(encrypted.to_owned()), "{mode}");
    }
    let house = start(&files, Some("db.internal"), "verify-full", &[]);
    let told = psql(&house, "", "select 1").unwrap_err();
    assert!(told.contains("server login failed: TLS handshake error"), "{told}");
    eventually(PATIENCE, "the log says what is wrong", || {
        house.pooler.log().contains("TLS handshake error: invalid peer certificate")
    })
    .await;
    let house = start(&files, Some("127.0.0.1"), "verify-full", &[]);
    assert_eq!(psql(&house, "", ENCRYPTED), Ok("t".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_name_is_what_verify_full_compares() {
    let files = Files::new();
    let certificate = files.authority.certify("localhost");
    let options = PostgresOptions::default().tls(&certificate.pem, &certificate.key);
    let postgres = drill::postgres::PrivatePostgres::start(options).unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |setup, postgres| {
        setup
            .setting("server_tls_sslmode", "verify-full")
            .setting("server_tls_ca_file", &files.path("ca.pem"))
            .database(&format!("named = host=localhost port={} dbname=bench", postgres.port()))
    });
    assert_eq!(psql(&house, "dbname=named", ENCRYPTED), Ok("t".to_owned()));
    let told = psql(&house, "", "select 1").unwrap_err();
    assert!(told.contains("TLS handshake error"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_has_signed_itself_and_one_of_an_old_version_work_as_with_pgbouncer() {
    let files = Files::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let openssl = |arguments: &[&str]| {
        let output = std::process::Command::new("openssl").args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let (key, certificate, request, old) = (path("key"), path("crt"), path("csr"), path("old"));
    let name = ["-subj", "/CN=127.0.0.1"];
    let made = openssl(
        &[
            &[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-keyout",
                &key,
                "-out",
                &certificate,
            ][..],
            &name,
        ]
        .concat(),
    ) && openssl(&[&["req", "-new", "-key", &key, "-out", &request][..], &name].concat())
        && openssl(&["x509", "-req", "-in", &request, "-signkey", &key, "-days", "2", "-out", &old]);
    if !made {
        return not_run("openssl is not installed");
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    for (certificate, mode) in [(&certificate, "verify-ca"), (&certificate, "require"), (&old, "require")] {
        let options = PostgresOptions::default().tls(&read(certificate), &read(&key));
        files.write("ca.pem", &read(certificate));
        let house = House::build(&holdfast(), options, false, |setup| {
            setup.setting("server_tls_sslmode", mode).setting("server_tls_ca_file", &files.path("ca.pem"))
        });
        assert_eq!(psql(&house, "", ENCRYPTED), Ok("t".to_owned()), "{mode} {certificate}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_refused_where_tls_is_demanded() {
    let files = Files::new();
    for mode in ["allow", "prefer"] {
        let house = start(&files, None, mode, &[]);
        assert_eq!(psql(&house, "", ENCRYPTED), Ok("f".to_owned()), "{mode}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let house = start(&files, None, mode, &[]);
        let told = psql(&house, "", "select 1").unwrap_err();
        assert!(told.contains("server refused SSL"), "{mode}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_certificate_logs_us_in_and_so_does_a_password() {
    let files = Files::new();
    files.put("client", &files.authority.certify("certified"));
    let (key, certificate) = (files.path("client.key"), files.path("client.pem"));
    let settings =
        [("server_tls_key_file", &key[..]), ("server_tls_cert_file", &certificate), ("auth_type", "any")];
    let postgres = |house: &House| house.postgres.port();
    let house = start(&files, Some("127.0.0.1"), "verify-full", &settings);
    house.postgres.admin("create role certified login; create role secret login password 'pencil'").unwrap();
    let line = |user: &str, more: &str| {
        format!("{user} = host=127.0.0.1 port={} dbname=bench user={user} {more}\n", postgres(&house))
    };
    let text = std::fs::read_to_string(house.pooler.config()).unwrap();
    let lines = format!("[databases]\n{}{}", line("certified", ""), line("secret", "password=pencil"));
    std::fs::write(house.pooler.config(), text.replacen("[databases]\n", &lines, 1)).unwrap();
    psql(&house, "user=postgres dbname=pgbouncer", "reload").unwrap();
    for user in ["certified", "secret"] {
        assert_eq!(psql(&house, &format!("dbname={user}"), "select current_user"), Ok(user.to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_request_reaches_a_server_over_tls() {
    let files = Files::new();
    let house = start(&files, Some("127.0.0.1"), "require", &[]);
    let mut client = house.client().await;
    client.send(&frame::query("select pg_sleep(60)")).await.unwrap();
    eventually(PATIENCE, "the query runs", || {
        house.postgres.backends().unwrap().iter().any(|backend| backend.query.contains("pg_sleep"))
    })
    .await;
    client.cancel().await.unwrap();
    let told = reply(&mut client).await.unwrap();
    assert_eq!(told.error().unwrap().code, "57014");
    assert_eq!(value(&mut client, "select 7").await, "7");
}
