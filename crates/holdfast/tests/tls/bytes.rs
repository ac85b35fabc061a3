//! What arrives together, in pieces, too early, or not at all.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use rustls::{ClientConnection, HandshakeKind};

use crate::certificates::Files;
use crate::support::{House, PATIENCE, eventually, value};
use crate::tls_client::{
    GSS_REQUEST, SSL_REQUEST, TlsClient, ask, config, message, open, read_message, startup,
};

fn start(files: &Files) -> House {
    House::start(|setup| files.offer(setup, "prefer").setting("default_pool_size", "2"))
}

/// The first value of the first row.
fn answer(messages: &[(u8, Vec<u8>)]) -> String {
    let (_, row) = messages.iter().find(|(tag, _)| *tag == b'D').expect("a row");
    String::from_utf8(row[6..].to_vec()).unwrap()
}

/// Shakes hands with each write cut into pieces.
fn shake_in_pieces(mut stream: TcpStream, files: &Files, alpn: &[&str], piece: usize) -> TlsClient {
    let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
    let mut connection = ClientConnection::new(config(&files.read("ca.pem"), alpn), name).unwrap();
    while connection.is_handshaking() {
        let mut out = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut out).unwrap();
        }
        for piece in out.chunks(piece) {
            stream.write_all(piece).unwrap();
            // So that it is read alone, mostly.
            std::thread::yield_now();
        }
        if connection.is_handshaking() {
            connection.read_tls(&mut stream).unwrap();
            connection.process_new_packets().unwrap();
        }
    }
    TlsClient { stream: rustls::StreamOwned::new(connection, stream) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_hello_may_come_byte_by_byte() {
    let files = Files::new();
    let house = start(&files);
    let mut stream = open(house.pooler.address());
    assert_eq!(ask(&mut stream), b'S');
    let mut client = shake_in_pieces(stream, &files, &[], 1);
    client.log_in();
    assert_eq!(answer(&client.query("select 7")), "7");
}

/// Direct TLS without a name for the protocol was taken, or not answered at all.
/// lib/pq #1331; neon #7809
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn direct_tls_works_with_the_name_of_the_protocol_and_is_refused_without() {
    let files = Files::new();
    let house = start(&files);
    for piece in [1, 100, 100_000] {
        let mut client = shake_in_pieces(open(house.pooler.address()), &files, &["postgresql"], piece);
        client.log_in();
        assert_eq!(answer(&client.query("select 7")), "7");
    }
    let mut client = shake_in_pieces(open(house.pooler.address()), &files, &[], 100_000);
    assert!(client.stream.write_all(&startup("bench", "bench")).is_err() || client.message().is_err());
    // Another protocol than ours is refused with or without a request before.
    for direct in [true, false] {
        let mut stream = open(house.pooler.address());
        if !direct {
            assert_eq!(ask(&mut stream), b'S');
        }
        let error =
            TlsClient::shake(stream, &config(&files.read("ca.pem"), &["h2"])).err().unwrap().to_string();
        assert!(error.contains("NoApplicationProtocol"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn direct_tls_is_refused_in_clear_text_where_there_is_no_tls_and_not_tried_after_a_request_was_declined()
 {
    let files = Files::new();
    let house = House::start(|setup| setup);
    let error =
        TlsClient::shake(open(house.pooler.address()), &config(&files.read("ca.pem"), &["postgresql"]));
    assert!(error.is_err());
    let house = start(&files);
    let mut stream = open(house.pooler.address());
    stream.write_all(GSS_REQUEST).unwrap();
    let mut declined = [0];
    stream.read_exact(&mut declined).unwrap();
    assert_eq!(&declined, b"N");
    assert!(TlsClient::shake(stream, &config(&files.read("ca.pem"), &["postgresql"])).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_in_clear_text_behind_the_request_are_refused() {
    let files = Files::new();
    let house = start(&files);
    let mut stream = open(house.pooler.address());
    stream.write_all(&[SSL_REQUEST, &startup("bench", "bench")].concat()).unwrap();
    let (tag, body) = read_message(&mut stream).unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(tag == b'E' && text.contains("received unencrypted data after SSL request"), "{text}");
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_request_inside_tls_is_refused() {
    let files = Files::new();
    let house = start(&files);
    let mut client = TlsClient::connect(house.pooler.address(), &config(&files.read("ca.pem"), &[])).unwrap();
    client.stream.write_all(SSL_REQUEST).unwrap();
    let (tag, body) = client.message().unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(tag == b'E' && text.contains("SSL req inside SSL"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_in_the_same_write_as_the_start_up_packet_is_answered() {
    let files = Files::new();
    let house = start(&files);
    let mut client = TlsClient::connect(house.pooler.address(), &config(&files.read("ca.pem"), &[])).unwrap();
    let query = message(b'Q', b"select 7\0");
    client.stream.write_all(&[startup("bench", "bench"), query].concat()).unwrap();
    client.until(b'Z');
    assert_eq!(answer(&client.until(b'Z')), "7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_in_the_same_write_as_the_last_message_of_scram_is_answered() {
    let files = Files::new();
    let house = House::start(|setup| {
        files.offer(setup, "require").setting("auth_type", "scram-sha-256").user("bench", "pencil")
    });
    let mut client = TlsClient::connect(house.pooler.address(), &config(&files.read("ca.pem"), &[])).unwrap();
    client.stream.write_all(&startup("bench", "bench")).unwrap();
    client.message().unwrap();
    let mut scram = ScramSha256::new(b"pencil", ChannelBinding::unsupported());
    let first = scram.message();
    let length = u32::try_from(first.len()).unwrap();
    let first = [b"SCRAM-SHA-256\0", &length.to_be_bytes()[..], first].concat();
    client.stream.write_all(&message(b'p', &first)).unwrap();
    let (_, challenge) = client.message().unwrap();
    scram.update(&challenge[4..]).unwrap();
    let last = scram.message();
    let query = message(b'Q', b"select 7\0");
    client.stream.write_all(&[message(b'p', last), query].concat()).unwrap();
    client.until(b'Z');
    assert_eq!(answer(&client.until(b'Z')), "7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_returns_needs_no_new_signature() {
    let files = Files::new();
    let house = start(&files);
    let config = config(&files.read("ca.pem"), &[]);
    for (visit, kind) in
        [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed].into_iter().enumerate()
    {
        let mut client = TlsClient::connect(house.pooler.address(), &config).unwrap();
        client.log_in();
        assert_eq!(client.kind(), kind, "visit {visit}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_small_records_and_large_rows_pass() {
    let files = Files::new();
    let house = start(&files);
    let mut client = TlsClient::connect(house.pooler.address(), &config(&files.read("ca.pem"), &[])).unwrap();
    client.log_in();
    let query = message(b'Q', b"select repeat('x', 300000)\0");
    for byte in &query {
        client.stream.write_all(&[*byte]).unwrap();
        client.stream.flush().unwrap();
    }
    assert_eq!(answer(&client.until(b'Z')).len(), 300_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_dies_inside_a_record_gives_its_server_back() {
    let files = Files::new();
    let house = start(&files);
    let mut client = TlsClient::connect(house.pooler.address(), &config(&files.read("ca.pem"), &[])).unwrap();
    client.log_in();
    client.query("begin");
    let mut sealed = Vec::new();
    client.stream.conn.writer().write_all(&message(b'Q', b"select 1\0")).unwrap();
    client.stream.conn.write_tls(&mut sealed).unwrap();
    client.stream.sock.write_all(&sealed[..sealed.len() / 2]).unwrap();
    drop(client);
    house
        .wait_pool("the server is idle again", |pool| pool["sv_idle"] == "1" && pool["cl_active"] == "0")
        .await;
    assert_eq!(value(&mut house.client().await, "select 7").await, "7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_leave_or_stop_during_the_handshake_leave_nothing_behind() {
    let files = Files::new();
    let house = House::start(|setup| files.offer(setup, "require").setting("client_login_timeout", "1"));
    let mut stopped = Vec::new();
    for round in 0..20 {
        let mut stream = open(house.pooler.address());
        assert_eq!(ask(&mut stream), b'S');
        // A record that promises more, or no TLS at all, or nothing.
        let bytes: &[u8] =
            [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..], b"GET / HTTP/1.1\r\n\r\n", b""][round % 3];
        stream.write_all(bytes).unwrap();
        if round % 2 == 0 {
            drop(stream);
        } else {
            stopped.push(stream);
        }
    }
    for mut stream in stopped {
        // An alert, or nothing, and then the end.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty() || rest[0] == 0x15, "{rest:?}");
    }
    eventually(PATIENCE, "nobody is in login any more", || {
        let admin = "user=postgres dbname=pgbouncer sslmode=require";
        let rows = crate::clients::psql(&house, admin, "show clients").unwrap();
        rows.lines().all(|row| !row.contains("|login|"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_stops_its_server_and_gets_everything_once_it_reads() {
    let files = Files::new();
    let house = start(&files);
    let mut client = TlsClient::connect(house.pooler.address(), &config(&files.read("ca.pem"), &[])).unwrap();
    client.log_in();
    let before = house.resident_bytes();
    let sql = "select repeat('x', 1000) from generate_series(1, 60000)";
    client.stream.write_all(&message(b'Q', &[sql.as_bytes(), &[0]].concat())).unwrap();
    client.stream.flush().unwrap();
    eventually(PATIENCE, "the backend waits for its client", || {
        house
            .postgres
            .backends()
            .unwrap()
            .iter()
            .any(|backend| backend.state == "active" && backend.user == "bench")
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let grown = house.resident_bytes().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more for a client that does not read");
    let rows = client.until(b'Z').iter().filter(|(tag, _)| *tag == b'D').count();
    assert_eq!(rows, 60_000);
}
