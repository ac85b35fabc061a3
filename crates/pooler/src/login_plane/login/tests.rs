//! Logins at a stand-in for a server that says what the test gives it.

use super::*;
use overload::cause::Cause;
use pgwire::message::{Severity, TransactionStatus, backend, error_response};
use pgwire::{CancelKey, SecretKey};
use pooling::connection::PoolId;
use pooling::seam::AttemptId;
use settings::pooler::{Keepalive, ServerAddress};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PLAIN: Way = Way {
    keepalive: Keepalive {
        enabled: true,
        count: 0,
        idle_s: 0,
        interval_s: 0,
        user_timeout_ms: 0,
        buffer_bytes: 0,
    },
    tls: None,
};

/// What the stand-in does after it has read something, in this order.
enum Act {
    Say(Vec<u8>),
    Close,
    Hang,
}

/// Opens a connection to a stand-in that reads once before each act.
fn open_with(acts: Vec<Act>, connect_query: Option<&str>, limit: Duration) -> Result<Opened, OpenFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for act in acts {
                if stream.read(&mut [0; 10_000]).await.unwrap_or(0) == 0 {
                    return;
                }
                match act {
                    Act::Say(bytes) => stream.write_all(&bytes).await.unwrap(),
                    Act::Close => return,
                    Act::Hang => break,
                }
            }
            std::future::pending::<()>().await;
        });
        open(request(port, connect_query, limit), &PLAIN, &Resolver::default()).await
    })
}

pub(super) fn request(port: u16, connect_query: Option<&str>, limit: Duration) -> OpenServer {
    let target = Target {
        address: ServerAddress::Tcp { host: "localhost".to_owned(), port },
        database: "app".to_owned(),
        user: "alice".to_owned(),
        secret: ServerSecret::None,
        parameters: Vec::new(),
        connect_query: connect_query.map(str::to_owned),
    };
    OpenServer { attempt: AttemptId(0), pool: PoolId(0), target: Arc::new(target), limit }
}

pub(super) fn welcome() -> Vec<u8> {
    let mut bytes = Vec::new();
    backend::authentication_ok(&mut bytes);
    backend::parameter_status(&mut bytes, "TimeZone", "UTC");
    let secret = SecretKey::from([9, 8, 7, 6]);
    backend::backend_key_data(&mut bytes, &CancelKey { process_id: 42, secret });
    backend::ready_for_query(&mut bytes, TransactionStatus::Idle);
    bytes
}

pub(super) const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn what_came_behind_the_login_is_handed_over() {
    let mut bytes = welcome();
    let notice = error_response(Severity::Fatal, "57P01", "going down", None, None);
    bytes.extend_from_slice(&notice);
    let opened = open_with(vec![Act::Say(bytes)], None, LIMIT).unwrap();
    assert_eq!(opened.server.leftover, notice);
    assert_eq!(opened.server.process_id, 42);
    assert_eq!(opened.server.secret_key, [9, 8, 7, 6]);
    assert_eq!(opened.server.parameters, [("TimeZone".to_owned(), "UTC".to_owned())]);
    assert!(!opened.is_unix && opened.server.peer.is_some());
    assert!(rustix::net::sockopt::tcp_nodelay(&opened.descriptor).unwrap());
}

#[test]
fn connect_query_runs_and_what_it_changes_is_known() {
    let mut answer = Vec::new();
    backend::parameter_status(&mut answer, "TimeZone", "CET");
    backend::command_complete(&mut answer, "SET");
    backend::ready_for_query(&mut answer, TransactionStatus::Idle);
    let acts = vec![Act::Say(welcome()), Act::Say(answer)];
    let opened = open_with(acts, Some("set timezone to 'CET'"), LIMIT).unwrap();
    assert_eq!(opened.server.parameters, [("TimeZone".to_owned(), "CET".to_owned())]);
}

#[test]
fn a_connect_query_that_fails_or_stays_in_a_transaction_gives_no_connection() {
    let error = error_response(Severity::Error, "42601", "syntax error", None, None);
    let mut open_transaction = Vec::new();
    backend::ready_for_query(&mut open_transaction, TransactionStatus::InTransaction);
    for (answer, word) in [(error, "syntax error"), (open_transaction, "transaction")] {
        let acts = vec![Act::Say(welcome()), Act::Say(answer)];
        let failure = open_with(acts, Some("begin"), LIMIT).unwrap_err();
        assert_eq!(failure.cause, Cause::Other);
        assert!(failure.log_text.contains(word), "{}", failure.log_text);
    }
}

#[test]
fn a_server_that_says_nothing_costs_no_more_than_the_limit() {
    let failure = open_with(vec![Act::Hang], None, Duration::from_millis(50)).unwrap_err();
    assert_eq!(failure.cause, Cause::TimedOut);
    assert_eq!(failure.client_text, "connect failed: timeout");
}

#[test]
fn a_server_that_closes_during_the_login_has_crashed() {
    let failure = open_with(vec![Act::Close], None, LIMIT).unwrap_err();
    assert_eq!(failure.cause, Cause::Crashed);
}

#[test]
fn something_that_speaks_another_protocol_is_told_apart() {
    let failure =
        open_with(vec![Act::Say(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())], None, LIMIT).unwrap_err();
    assert_eq!(failure.cause, Cause::Protocol);
}

#[test]
fn the_servers_refusal_reaches_client_and_pacing() {
    let refusal = error_response(Severity::Fatal, "3D000", "database \"app\" does not exist", None, None);
    let failure = open_with(vec![Act::Say(refusal)], None, LIMIT).unwrap_err();
    assert_eq!(failure.cause, Cause::NoSuchDatabase);
    assert_eq!(failure.sqlstate.as_deref(), Some("3D000"));
    assert_eq!(failure.client_text, "database \"app\" does not exist");
}

#[test]
fn a_closed_port_is_refused_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let failure = runtime.block_on(async {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        open(request(port, None, LIMIT), &PLAIN, &Resolver::default()).await.unwrap_err()
    });
    assert_eq!(failure.cause, Cause::Refused);
}
