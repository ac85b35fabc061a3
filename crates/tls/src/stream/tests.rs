//! Two ends over a pipe that holds few bytes.

use super::*;
use crate::fixtures::Configs;
use tokio::io::{AsyncReadExt, duplex};

type Pipe = TlsStream<tokio::io::DuplexStream>;

async fn ends(pipe_bytes: usize) -> (Pipe, Pipe) {
    let (client, server) = Configs::new(&rustls::version::TLS13).ends(false);
    let (ours, theirs) = duplex(pipe_bytes);
    let mut client = TlsStream::new(ours, client);
    let mut server = TlsStream::new(theirs, server);
    let (one, other) = tokio::join!(client.handshake(), server.handshake());
    one.unwrap();
    other.unwrap();
    (client, server)
}

#[tokio::test]
async fn a_megabyte_passes_both_ways_through_a_narrow_pipe() {
    let (mut client, mut server) = ends(1_000).await;
    let data: Vec<u8> = (0..1_000_000_u32).map(|index| (index % 251) as u8).collect();
    let echo = async {
        let mut received = vec![0; data.len()];
        server.read_exact(&mut received).await.unwrap();
        server.write_all(&received).await.unwrap();
        server.flush().await.unwrap();
        server
    };
    let ask = async {
        client.write_all(&data).await.unwrap();
        client.flush().await.unwrap();
        let mut received = vec![0; data.len()];
        client.read_exact(&mut received).await.unwrap();
        received
    };
    let (received, _server) = tokio::join!(ask, echo);
    assert!(received == data);
}

#[tokio::test]
async fn an_end_is_an_end_with_and_without_a_farewell() {
    for says_farewell in [true, false] {
        let (mut client, mut server) = ends(10_000).await;
        client.write_all(b"last words").await.unwrap();
        client.flush().await.unwrap();
        if says_farewell {
            client.shutdown().await.unwrap();
        }
        drop(client);
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "last words");
    }
}

#[tokio::test]
async fn what_was_decrypted_but_not_read_is_handed_over() {
    let (mut client, mut server) = ends(10_000).await;
    client.write_all(b"read, not read").await.unwrap();
    client.flush().await.unwrap();
    let mut start = [0; 6];
    server.read_exact(&mut start).await.unwrap();
    let (stream, session, plain) = server.into_parts();
    assert_eq!(plain, b"not read");
    client.write_all(b"later").await.unwrap();
    client.flush().await.unwrap();
    let mut server = TlsStream::new(stream, session);
    let mut later = [0; 5];
    server.read_exact(&mut later).await.unwrap();
    assert_eq!(&later, b"later");
}

#[tokio::test]
async fn a_peer_without_tls_is_told_and_is_no_hang() {
    let (_, server) = Configs::new(&rustls::version::TLS13).ends(false);
    let (ours, mut theirs) = duplex(10_000);
    let mut server = TlsStream::new(ours, server);
    theirs.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(server.handshake().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    drop(server);
    let mut alert = Vec::new();
    theirs.read_to_end(&mut alert).await.unwrap();
    assert_eq!(alert.first(), Some(&0x15), "an alert: {alert:?}");
}
