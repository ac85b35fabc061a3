use std::time::Duration;

use tokio::time::timeout;

use super::*;
use crate::postgres::{DATABASE, PostgresOptions, PrivatePostgres, USER};

const LIMIT: Duration = Duration::from_secs(20);

fn options(server: &PrivatePostgres) -> ConnectOptions {
    ConnectOptions::new(server.tcp_address().into(), USER, DATABASE)
}

#[tokio::test]
async fn every_password_method_lets_the_right_password_in_and_no_other() {
    let server = PrivatePostgres::start(
        PostgresOptions::default()
            .hba_line("host all plain 127.0.0.1/32 password")
            .hba_line("host all five 127.0.0.1/32 md5")
            .hba_line("host all scram 127.0.0.1/32 scram-sha-256"),
    )
    .unwrap();
    for (role, encryption) in [("plain", "md5"), ("five", "md5"), ("scram", "scram-sha-256")] {
        server
            .admin(&format!(
                "set password_encryption = '{encryption}'; create role {role} login password 'right'"
            ))
            .unwrap();
        let options = ConnectOptions::new(server.tcp_address().into(), role, DATABASE);
        let mut connection = Connection::connect(&options.clone().password("right")).await.unwrap();
        assert_eq!(connection.query("select current_user").await.unwrap().value(), Some(role));
        let refused = Connection::connect(&options.password("wrong")).await.unwrap_err();
        assert_eq!(refused.server().unwrap().code, "28P01", "{role}");
    }
}

#[tokio::test]
async fn probes_pieces_and_both_protocols_give_the_same_rows() {
    let server = PrivatePostgres::start_default().unwrap();
    let options = options(&server).encryption(Encryption::Ssl).parameter("application_name", "drill");
    let mut connection = Connection::connect(&options).await.unwrap();
    assert_eq!(connection.parameter("application_name"), Some("drill"));
    let simple = connection.query("select 1 as one, null as nothing").await.unwrap();
    assert_eq!(simple.columns, ["one", "nothing"]);
    assert_eq!(simple.rows, [[Some("1".to_owned()), None]]);
    assert_eq!(simple.kinds, "TDCZ");
    let extended = connection.extended_query("select $1::text", &[Some("x")]).await.unwrap();
    assert_eq!((extended.value(), extended.kinds.as_str()), (Some("x"), "12TDCZ"));
    connection.send_in_pieces(&frame::query("select 2"), &[1, 4, 2]).await.unwrap();
    assert_eq!(connection.read_reply().await.unwrap().value(), Some("2"));

    let failed = connection.query("begin; select 1/0").await.unwrap();
    assert_eq!(failed.error().unwrap().code, "22012");
    assert_eq!(connection.status(), Some(TransactionStatus::Failed));
}

#[tokio::test]
async fn a_cancel_ends_the_running_query() {
    let server = PrivatePostgres::start_default().unwrap();
    let mut connection = Connection::connect(&options(&server)).await.unwrap();
    connection.send(&frame::query("select pg_sleep(60)")).await.unwrap();
    // A cancel that arrives before the query does hits nothing: repeated until it is heard.
    let reply = loop {
        connection.cancel().await.unwrap();
        if let Ok(reply) = timeout(Duration::from_millis(200), connection.read_reply()).await {
            break reply.unwrap();
        }
    };
    assert_eq!(reply.error().unwrap().code, "57014");
    connection.terminate().await.unwrap();
}

#[tokio::test]
async fn a_fatal_error_before_the_end_is_not_lost() {
    let server = PrivatePostgres::start_default().unwrap();
    let mut connection = Connection::connect(&options(&server)).await.unwrap();
    let pid = connection.server_pid().await.unwrap();
    server.admin(&format!("select pg_terminate_backend({pid})")).unwrap();
    let error = timeout(LIMIT, connection.wait_closed()).await.unwrap().unwrap().unwrap();
    assert_eq!((error.code.as_str(), error.is_fatal()), ("57P01", true));
}

#[tokio::test]
async fn copy_in_and_out_and_half_close() {
    let server = PrivatePostgres::start_default().unwrap();
    let mut connection = Connection::connect(&options(&server)).await.unwrap();
    connection.query("create temporary table t (a int)").await.unwrap();
    assert_eq!(connection.query("copy t from stdin").await.unwrap().kinds, "G");
    connection.send(&[frame::copy_data(b"1\n2\n"), frame::copy_done()].concat()).await.unwrap();
    assert_eq!(connection.read_reply().await.unwrap().tags, ["COPY 2"]);
    assert_eq!(connection.query("copy t to stdout").await.unwrap().copied, b"1\n2\n");
    connection.half_close().await.unwrap();
    assert_eq!(timeout(LIMIT, connection.wait_closed()).await.unwrap().unwrap(), None);
}

#[tokio::test]
async fn an_abort_is_a_reset_to_the_other_side() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connection = Connection::open(&listener.local_addr().unwrap().into(), None).await.unwrap();
    let (mut other, _) = listener.accept().await.unwrap();
    connection.abort().unwrap();
    let error = tokio::io::AsyncReadExt::read_u8(&mut other).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_length_out_of_bounds_is_refused_before_it_is_read() {
    for length in [3_i32, -1, i32::MAX] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut connection = Connection::open(&listener.local_addr().unwrap().into(), None).await.unwrap();
        let (mut other, _) = listener.accept().await.unwrap();
        let head = [&b"D"[..], &length.to_be_bytes()].concat();
        tokio::io::AsyncWriteExt::write_all(&mut other, &head).await.unwrap();
        let error = timeout(LIMIT, connection.read_message()).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{error}");
    }
}
