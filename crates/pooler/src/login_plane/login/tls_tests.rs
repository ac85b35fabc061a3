//! Logins over TLS, at a stand-in that decides which bytes go together.

use super::tests::{LIMIT, request, welcome};
use super::*;
use crate::tls::fixtures::context;
use crate::tls::{ToClients, ToServers};
use overload::cause::Cause;
use pgwire::message::{Severity, error_response};
use pgwire::startup::ssl_request;
use settings::pooler::Keepalive;
use std::io::Write as _;
use std::sync::Arc;
use tls::TlsSession;
use tls::TlsStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const KEEPALIVE: Keepalive =
    Keepalive { enabled: true, count: 0, idle_s: 0, interval_s: 0, user_timeout_ms: 0, buffer_bytes: 0 };

/// Opens a connection, where `server` plays what stands behind the request for TLS.
fn open_at<F: Future<Output = ()> + Send + 'static>(
    tls: Arc<ToServers>,
    server: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> Result<Opened, OpenFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 8];
            stream.read_exact(&mut asked).await.unwrap();
            assert_eq!(asked, ssl_request()[..]);
            server(stream).await;
        });
        let way = Way { keepalive: KEEPALIVE, tls: Some(tls) };
        open(request(port, None, LIMIT), &way, &Resolver::default()).await
    })
}

/// Shakes hands and reads the start-up packet.
async fn accept(mut stream: TcpStream, clients: Arc<ToClients>) -> TlsStream<TcpStream> {
    stream.write_all(b"S").await.unwrap();
    let mut stream = TlsStream::new(stream, clients.accept(false).unwrap());
    stream.handshake().await.unwrap();
    assert!(stream.read(&mut [0; 10_000]).await.unwrap() > 0);
    stream
}

/// What a session decrypts next from its socket.
fn next_plain(opened: &Opened, session: &mut TlsSession) -> Vec<u8> {
    let mut buffer = vec![0; 64 * 1024];
    let pending = session.take_pending(&mut buffer);
    let (count, _) =
        rustix::net::recv(&opened.descriptor, &mut buffer[pending..], rustix::net::RecvFlags::empty())
            .unwrap();
    let mut plain = Vec::new();
    session.process(&mut buffer[..pending + count], &mut plain, &mut Vec::new()).unwrap();
    plain
}

#[test]
fn bytes_in_the_same_record_as_the_end_of_the_login_are_handed_over() {
    let (clients, servers) = context("");
    let notice = error_response(Severity::Fatal, "57P01", "going down", None, None);
    let bytes = [welcome(), notice.clone()].concat();
    let opened = open_at(servers, |stream| async move {
        let mut stream = accept(stream, clients).await;
        stream.write_all(&bytes).await.unwrap();
        stream.flush().await.unwrap();
        std::future::pending::<()>().await;
    })
    .unwrap();
    assert_eq!(opened.server.leftover, notice);
    assert_eq!(crate::tls::suites::describe(opened.tls.as_ref().unwrap()), "TLSv1.3/TLS_AES_256_GCM_SHA384");
}

#[test]
fn half_a_record_behind_the_login_is_handed_over_and_goes_on_with_the_other_half() {
    let (clients, servers) = context("");
    let (handed_over, is_handed_over) = std::sync::mpsc::sync_channel::<()>(1);
    let mut opened = open_at(servers, |stream| async move {
        let stream = accept(stream, clients).await;
        let (mut stream, mut session, _) = stream.into_parts();
        let mut sealed = Vec::new();
        session.encrypt(&welcome(), &mut sealed).unwrap();
        session.encrypt(b"whole at last", &mut sealed).unwrap();
        let second = sealed.split_off(sealed.len() - 7);
        stream.write_all(&sealed).await.unwrap();
        let mut stream = stream.into_std().unwrap();
        std::thread::spawn(move || {
            is_handed_over.recv().unwrap();
            stream.write_all(&second).unwrap();
        });
    })
    .unwrap();
    handed_over.send(()).unwrap();
    let mut session = opened.tls.take().unwrap();
    assert!(opened.server.leftover.is_empty());
    rustix::io::ioctl_fionbio(&opened.descriptor, false).unwrap();
    assert_eq!(next_plain(&opened, &mut session), b"whole at last");
}

#[test]
fn a_server_that_declines_and_one_that_answers_nonsense_are_told_apart() {
    let answer = |bytes: &'static [u8]| {
        let (_, servers) = context("");
        let failed = open_at(servers, move |mut stream| async move {
            stream.write_all(bytes).await.unwrap();
            std::future::pending::<()>().await;
        });
        failed.unwrap_err()
    };
    for (bytes, cause, text) in [
        (&b"N"[..], Cause::NotAllowed, "server login failed: server refused SSL"),
        (b"E", Cause::Other, "server login failed: the server cannot start a session"),
        (b"H", Cause::Protocol, "server login failed: the server does not follow the protocol"),
        // Whoever says yes and then speaks in clear text.
        (b"SR\0\0\0\x08\0\0\0\0", Cause::NotAllowed, "server login failed: TLS handshake error"),
    ] {
        let failure = answer(bytes);
        assert_eq!((failure.cause, failure.client_text.as_str()), (cause, text));
    }
}

#[test]
fn a_server_that_closes_in_the_handshake_fails_the_login_and_does_not_hang() {
    let (_, servers) = context("");
    let failure = open_at(servers, |mut stream| async move {
        stream.write_all(b"S").await.unwrap();
        let _ = stream.read(&mut [0; 10]).await;
    })
    .unwrap_err();
    assert!(
        failure.client_text.contains("TLS handshake error") || failure.cause == Cause::Crashed,
        "{failure:?}"
    );
}
