//! Certificates that change while clients are connected.

use drill::postgres::PostgresOptions;

use crate::certificates::{Authority, Files};
use crate::clients::psql;
use crate::support::{House, PATIENCE, eventually, holdfast, number};
use crate::tls_client::{TlsClient, config};

const ADMIN: &str = "user=postgres dbname=pgbouncer";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_serves_new_clients_and_a_broken_one_changes_nothing() {
    let files = Files::new();
    let house = House::start(|setup| files.offer(setup, "prefer"));
    let old = config(&files.read("ca.pem"), &[]);
    let mut standing = TlsClient::connect(house.pooler.address(), &old).unwrap();
    standing.log_in();

    let renewed = Authority::new("renewed");
    files.put("server", &renewed.certify("127.0.0.1"));
    assert_eq!(psql(&house, ADMIN, "reload"), Ok("RELOAD".to_owned()));
    let new = config(&renewed.pem, &[]);
    TlsClient::connect(house.pooler.address(), &new).unwrap().log_in();
    assert!(TlsClient::connect(house.pooler.address(), &old).is_err());
    standing.query("select 1");

    files.write("server.key", "not a key\n");
    let told = psql(&house, ADMIN, "reload").unwrap_err();
    assert!(told.contains("RELOAD failed, see logs"), "{told}");
    eventually(PATIENCE, "the log says which file is at fault, and why", || {
        let log = house.pooler.log();
        log.contains("TLS setup failed: `client_tls_key_file`") && log.contains("holds no private key")
    })
    .await;
    TlsClient::connect(house.pooler.address(), &new).unwrap().log_in();

    files.put("server", &files.authority.certify("127.0.0.1"));
    assert_eq!(psql(&house, ADMIN, "reload"), Ok("RELOAD".to_owned()));
    TlsClient::connect(house.pooler.address(), &old).unwrap().log_in();
    standing.query("select 1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_that_changes_no_file_keeps_the_tickets_good() {
    let files = Files::new();
    let house = House::start(|setup| files.offer(setup, "prefer"));
    let config = config(&files.read("ca.pem"), &[]);
    TlsClient::connect(house.pooler.address(), &config).unwrap().log_in();
    psql(&house, ADMIN, "reload").unwrap();
    let client = TlsClient::connect(house.pooler.address(), &config).unwrap();
    assert_eq!(client.kind(), rustls::HandshakeKind::Resumed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_authority_of_servers_replaces_the_server_connections() {
    let files = Files::new();
    let certificate = files.authority.certify("127.0.0.1");
    let options = PostgresOptions::default().tls(&certificate.pem, &certificate.key);
    let house = House::build(&holdfast(), options, false, |setup| {
        setup.setting("server_tls_sslmode", "verify-ca").setting("server_tls_ca_file", &files.path("ca.pem"))
    });
    let pid = || psql(&house, "", "select pg_backend_pid()").unwrap();
    let first = pid();
    psql(&house, ADMIN, "reload").unwrap();
    assert_eq!(pid(), first, "nothing has changed");
    let both = files.read("ca.pem") + &files.read("other_ca.pem");
    files.write("ca.pem", &both);
    psql(&house, ADMIN, "reload").unwrap();
    let second = pid();
    assert_ne!(second, first);
    files.write("ca.pem", &files.read("other_ca.pem"));
    psql(&house, ADMIN, "reload").unwrap();
    let told = psql(&house, "", "select 1").unwrap_err();
    assert!(told.contains("TLS handshake error"), "{told}");
    let rows = house.show("SERVERS").await;
    assert!(rows.iter().all(|row| number(row, "remote_pid").to_string() != second), "{rows:?}");
}
