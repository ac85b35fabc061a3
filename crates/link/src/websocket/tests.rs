use super::*;
use proptest::prelude::*;
use std::io::{Cursor, Read, Write};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, WebSocket, handshake};

/// What one end writes, and what it is given to read.
#[derive(Debug, Default)]
struct Wire {
    incoming: Cursor<Vec<u8>>,
    outgoing: Vec<u8>,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.incoming.read(buffer)? {
            0 => Err(std::io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.outgoing.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn peer(role: Role, incoming: Vec<u8>) -> WebSocket<Wire> {
    let wire = Wire { incoming: Cursor::new(incoming), outgoing: Vec::new() };
    WebSocket::from_raw_socket(wire, role, None)
}

/// What `reader` makes of `bytes`, which come in parts of `part`, and what it replies.
fn read(reader: &mut Reader, bytes: &[u8], part: usize) -> Result<(Vec<u8>, Vec<u8>), BadFrame> {
    let (mut inside, mut reply) = (Vec::new(), Vec::new());
    for part in bytes.chunks(part.max(1)) {
        let start = inside.len();
        inside.extend_from_slice(part);
        reader.read(&mut inside, start, &mut reply)?;
    }
    Ok((inside, reply))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn another_implementation_reads_what_is_written(
        bytes in prop::collection::vec(any::<u8>(), 1..70_000),
        masked in any::<bool>(),
    ) {
        let mut wire = Vec::new();
        let role = if masked { wrap_masked(&bytes, &mut wire); Role::Server } else { wrap_plain(&bytes, &mut wire); Role::Client };
        let mut peer = peer(role, wire);
        let mut inside = Vec::new();
        while let Ok(message) = peer.read() {
            prop_assert!(message.is_binary());
            inside.extend_from_slice(&message.into_data());
        }
        prop_assert_eq!(inside, bytes);
    }

    #[test]
    fn what_another_implementation_writes_is_read_however_it_is_cut(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70_000), 1..4),
        part in 1..5_000_usize,
        as_client in any::<bool>(),
    ) {
        let (role, end) = if as_client { (Role::Client, End::Server) } else { (Role::Server, End::Client) };
        let mut peer = peer(role, Vec::new());
        for message in &messages {
            peer.send(Message::binary(message.clone())).unwrap();
            peer.send(Message::Ping(vec![1, 2, 3].into())).unwrap();
        }
        let wire = std::mem::take(&mut peer.get_mut().outgoing);
        let (inside, reply) = read(&mut Reader::new(end), &wire, part).unwrap();
        prop_assert_eq!(inside, messages.concat());
        // Each ping is answered with what was in it.
        peer.get_mut().incoming = Cursor::new(reply);
        for _ in &messages {
            prop_assert_eq!(peer.read().unwrap(), Message::Pong(vec![1, 2, 3].into()));
        }
    }

    #[test]
    fn whatever_comes_neither_panics_nor_grows(bytes in prop::collection::vec(any::<u8>(), 0..300), part in 1..20_usize) {
        for end in [End::Client, End::Server] {
            if let Ok((inside, reply)) = read(&mut Reader::new(end), &bytes, part) {
                prop_assert!(inside.len() <= bytes.len());
                prop_assert!(reply.len() <= 4 * bytes.len() + 8);
            }
        }
    }
}

#[test]
fn a_close_is_answered_and_ends_what_comes() {
    let mut peer = peer(Role::Client, Vec::new());
    peer.send(Message::binary(b"last".to_vec())).unwrap();
    peer.close(None).unwrap();
    let mut wire = std::mem::take(&mut peer.get_mut().outgoing);
    wire.extend_from_slice(b"behind the end");
    let mut reader = Reader::new(End::Server);
    let (inside, reply) = read(&mut reader, &wire, wire.len()).unwrap();
    assert_eq!(inside, b"last");
    assert!(reader.is_closed());
    peer.get_mut().incoming = Cursor::new(reply);
    assert!(matches!(peer.read(), Ok(Message::Close(_))), "the close was not answered");
}

#[test]
fn what_is_no_part_of_it_is_refused() {
    let server = |bytes: &[u8]| read(&mut Reader::new(End::Server), bytes, 1).unwrap_err();
    assert_eq!(server(&[0x81, 0x80]), BadFrame::Kind(1), "text");
    assert_eq!(server(&[0x83, 0x80]), BadFrame::Kind(3));
    assert_eq!(server(&[0xC2, 0x80]), BadFrame::Extension);
    assert_eq!(server(&[0x82, 0x01]), BadFrame::Mask);
    assert_eq!(server(&[0x89, 0xFE]), BadFrame::Control, "a long ping");
    assert_eq!(server(&[0x09, 0x80]), BadFrame::Control, "a ping in parts");
    assert_eq!(server(&[&[0x82, 0xFF][..], &[0xFF; 12]].concat()), BadFrame::Length);
    assert_eq!(read(&mut Reader::new(End::Client), &[0x82, 0x80], 1), Err(BadFrame::Mask));
}

#[test]
fn the_handshake_is_what_another_implementation_takes() {
    // Theirs, ours.
    let request = handshake::client::generate_key();
    let asked = format!(
        "GET {PATH} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {request}\r\nSec-WebSocket-Protocol: x, {PROTOCOL}\r\n\r\n"
    );
    let mut answer = Vec::new();
    for cut in 0..asked.len() {
        assert_eq!(accept(&asked.as_bytes()[..cut], &mut answer), Ok(None), "{cut}");
    }
    assert_eq!(accept(format!("{asked}rest").as_bytes(), &mut answer), Ok(Some(asked.len())));
    let answer = String::from_utf8(answer).unwrap();
    let accepted = handshake::derive_accept_key(request.as_bytes());
    assert!(answer.contains(&format!("Sec-WebSocket-Accept: {accepted}\r\n")), "{answer}");

    // Ours, theirs.
    let mut asked = Vec::new();
    let ours = Handshake::begin("relay.example:443", &mut asked);
    assert_eq!(accept(&asked, &mut Vec::new()), Ok(Some(asked.len())));
    let accepted = handshake::derive_accept_key(ours.key.as_bytes());
    let answer = |status: &str, accepted: &str| {
        format!(
            "HTTP/1.1 {status}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-accept: {accepted}\r\nsec-websocket-protocol: {PROTOCOL}\r\n\r\n"
        )
    };
    let granted = answer("101 Switching Protocols", &accepted);
    assert_eq!(ours.finish(&granted.as_bytes()[..granted.len() - 1]), Ok(None));
    assert_eq!(ours.finish(granted.as_bytes()), Ok(Some(granted.len())));
    assert_eq!(ours.finish(answer("101 x", "other").as_bytes()), Err(BadAnswer::Malformed));
    assert_eq!(ours.finish(answer("503 x", &accepted).as_bytes()), Err(BadAnswer::Status(503)));
    assert_eq!(ours.finish(&[b'a'; 20]), Err(BadAnswer::Malformed));
}

#[test]
fn a_request_for_something_else_is_told_so() {
    let refused = |request: &str| accept(request.as_bytes(), &mut Vec::new()).unwrap_err();
    assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::Path);
    assert_eq!(refused("GET /v1/link HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::NoUpgrade);
    assert_eq!(refused("POST /v1/link HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::Malformed);
    assert_eq!(refused("\u{1}\u{2}"), Refusal::Malformed);
    let long = format!("GET /v1/link HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEAD_BYTES));
    assert_eq!(refused(&long), Refusal::TooLong);
    let without_protocol = "GET /v1/link HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    assert_eq!(refused(without_protocol), Refusal::NoUpgrade);
    let mut answer = Vec::new();
    Refusal::NoUpgrade.write(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n"));
}
