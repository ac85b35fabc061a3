#![expect(clippy::disallowed_methods, reason = "the system needs a moment to carry a reset")]

use super::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

fn pair() -> (Socket, UnixStream) {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    (Socket::new(ours, 0, true), UnixStream::from(theirs))
}

/// Bytes that tell their place.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index / 251 + index) as u8).collect()
}

#[test]
fn an_idle_connection_without_tls_costs_the_driver_no_more_than_64_bytes() {
    assert!(size_of::<Option<Socket>>() <= 40);
}

#[test]
fn several_parts_arrive_as_one_write() {
    let (mut socket, mut peer) = pair();
    let parts: [&[u8]; 4] = [b"ab", b"", b"c", b"def"];
    assert_eq!(socket.send(&parts), Sent::All);
    let mut buffer = [0; 100];
    let count = peer.read(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], b"abcdef");
}

#[test]
fn more_parts_than_one_call_takes_arrive_in_order() {
    let (mut socket, mut peer) = pair();
    let bytes = pattern(10 * (3 * MAX_PARTS + 1));
    let parts: Vec<&[u8]> = bytes.chunks(10).collect();
    assert_eq!(socket.send(&parts), Sent::All);
    let mut received = vec![0; bytes.len()];
    peer.read_exact(&mut received).unwrap();
    assert_eq!(received, bytes);
}

#[test]
fn what_the_peer_does_not_take_is_kept_in_order_and_freed_once_it_has_left() {
    let (mut socket, mut peer) = pair();
    let bytes = pattern(700_000);
    let (first, second) = bytes.split_at(600_000);
    assert_eq!(socket.send(&[&first[..10], &first[10..]]), Sent::Kept);
    assert_eq!(socket.send(&[second]), Sent::Kept);
    let reader = std::thread::spawn(move || {
        let mut received = vec![0; 700_000];
        peer.read_exact(&mut received).unwrap();
        (received, peer)
    });
    while socket.flush() == Sent::Kept {
        std::thread::yield_now();
    }
    let (received, _peer) = reader.join().unwrap();
    assert!(received == bytes);
    assert_eq!(socket.kept_bytes(), 0);
    assert!(socket.kept.is_none());
}

#[test]
fn kept_bytes_are_bounded_and_the_connection_fails_at_the_bound() {
    let (mut socket, _peer) = pair();
    while socket.kept_bytes() == 0 {
        socket.send(&[&[0; 65_536]]);
    }
    let room = MAX_KEPT_BYTES - socket.kept_bytes();
    assert_eq!(socket.send(&[&vec![0; room]]), Sent::Kept);
    assert_eq!(socket.kept_bytes(), MAX_KEPT_BYTES);
    assert_eq!(socket.send(&[&[0]]), Sent::Failed);
    assert!(socket.overflowed);
    assert_eq!(socket.kept_bytes(), 0);
    assert_eq!(socket.send(&[&[0]]), Sent::Failed);
}

#[test]
fn a_send_to_a_peer_that_is_gone_fails_and_what_it_said_is_still_there() {
    let (mut socket, mut peer) = pair();
    peer.write_all(b"last words").unwrap();
    drop(peer);
    assert_eq!(socket.send(&[b"hello"]), Sent::Failed);
    assert!(socket.failed);
    let mut buffer = [0; 100];
    assert_eq!(socket.receive(&mut buffer), Received::Bytes(10));
    assert_eq!(socket.receive(&mut buffer), Received::End);
}

#[test]
fn the_end_follows_the_last_kept_byte() {
    let (mut socket, mut peer) = pair();
    let mut length = 0;
    while socket.kept_bytes() == 0 {
        socket.send(&[&[1; 50_000]]);
        length += 50_000;
    }
    socket.shut_down_write();
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        received.len()
    });
    while socket.flush() == Sent::Kept {
        std::thread::yield_now();
    }
    assert_eq!(reader.join().unwrap(), length);
}

#[test]
fn nothing_to_read_is_not_the_end() {
    let (mut socket, mut peer) = pair();
    let mut buffer = [0; 4];
    assert_eq!(socket.receive(&mut buffer), Received::Nothing);
    peer.write_all(b"abcdef").unwrap();
    assert_eq!(socket.receive(&mut buffer), Received::Bytes(4));
    assert_eq!(socket.receive(&mut buffer), Received::Bytes(2));
    drop(peer);
    assert_eq!(socket.receive(&mut buffer), Received::End);
}

#[test]
fn a_reset_is_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    let mut socket = Socket::new(ours.into(), 0, false);
    socket.send(&[b"unread"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    drop(peer);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(socket.receive(&mut [0; 10]), Received::End);
}
