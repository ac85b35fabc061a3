use super::*;
use crate::login_plane::request::channel;
use mio::{Events, Poll, Waker};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

struct Bench {
    poll: Poll,
    sockets: Sockets,
    requests: Receiver<Request>,
}

fn bench() -> Bench {
    let poll = Poll::new().unwrap();
    let inbox = Arc::new(Inbox::new(Waker::new(poll.registry(), Token(usize::MAX)).unwrap()));
    let (sender, requests) = channel();
    let keepalive =
        Keepalive { enabled: true, count: 0, idle_s: 0, interval_s: 0, user_timeout_ms: 0, buffer_bytes: 0 };
    let sockets =
        Sockets::new(poll.registry().try_clone().unwrap(), sender, inbox, keepalive, TlsContext::default());
    Bench { poll, sockets, requests }
}

impl Bench {
    fn client(&mut self, slot: u32, generation: u32) -> (ConnectionId, UnixStream) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let id = ClientId::from_parts(slot, generation);
        self.sockets.add_client(id, ours, true).unwrap();
        let peer = UnixStream::from(theirs);
        peer.set_nonblocking(false).unwrap();
        (id.into(), peer)
    }

    fn tcp_client(&mut self, slot: u32) -> (ConnectionId, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        let id = ClientId::from_parts(slot, 0);
        self.sockets.add_client(id, ours.into(), false).unwrap();
        (id.into(), peer)
    }

    /// Tokens of connections with events within a moment.
    fn events(&mut self) -> Vec<(u64, bool, bool)> {
        let mut events = Events::with_capacity(16);
        self.poll.poll(&mut events, Some(Duration::from_millis(20))).unwrap();
        events
            .iter()
            .map(|event| (event.token().0 as u64, event.is_readable(), event.is_writable()))
            .collect()
    }
}

#[test]
fn an_identity_that_is_gone_finds_nothing_even_if_its_slot_is_in_use_again() {
    let mut bench = bench();
    let (first, mut first_peer) = bench.client(3, 0);
    bench.sockets.close(first);
    let (second, mut second_peer) = bench.client(3, 1);
    assert!(bench.sockets.find(first).is_none());
    assert_eq!(bench.sockets.send(first, &[b"stale"]), Flow::Flushed);
    bench.sockets.close(first);
    assert_eq!(bench.sockets.send(second, &[b"fresh"]), Flow::Flushed);
    let mut buffer = [0; 10];
    assert_eq!(second_peer.read(&mut buffer).unwrap(), 5);
    assert_eq!(&buffer[..5], b"fresh");
    assert_eq!(first_peer.read(&mut buffer).unwrap(), 0);
}

#[test]
fn a_unix_socket_wakes_for_writing_only_while_bytes_are_kept() {
    let mut bench = bench();
    let (id, mut peer) = bench.client(0, 0);
    bench.events();
    assert_eq!(bench.sockets.send(id, &[&[1; 1000]]), Flow::Flushed);
    peer.read_exact(&mut [0; 1000]).unwrap();
    assert_eq!(bench.events(), []);

    let mut length = 0;
    loop {
        length += 50_000;
        if bench.sockets.send(id, &[&[1; 50_000]]) == Flow::Blocked {
            break;
        }
    }
    let mut left = length;
    let mut buffer = [0; 50_000];
    while left > 0 {
        left -= peer.read(&mut buffer).unwrap();
        if bench.events().iter().any(|&(token, _, writable)| token == id.to_token() && writable) {
            bench.sockets.flush(id);
        }
    }
    assert_eq!(bench.sockets.send(id, &[&[1; 1000]]), Flow::Flushed);
    bench.events();
    peer.read_exact(&mut [0; 1000]).unwrap();
    assert_eq!(bench.events(), []);
}

#[test]
fn a_send_over_tcp_that_fits_causes_no_further_event() {
    let mut bench = bench();
    let (id, mut peer) = bench.tcp_client(0);
    bench.events();
    assert_eq!(bench.sockets.send(id, &[&[1; 1000]]), Flow::Flushed);
    peer.read_exact(&mut [0; 1000]).unwrap();
    assert_eq!(bench.events(), []);
}

#[test]
fn a_last_message_is_read_whole_although_the_client_had_sent_bytes_that_nobody_read() {
    let mut bench = bench();
    let (id, mut peer) = bench.tcp_client(0);
    peer.write_all(&[7; 5000]).unwrap();
    bench.events();
    bench.sockets.send(id, &[b"FATAL: too many clients"]);
    bench.sockets.close(id);
    let mut text = String::new();
    peer.read_to_string(&mut text).unwrap();
    assert_eq!(text, "FATAL: too many clients");
    assert_eq!(bench.sockets.closed, 1);
}

#[test]
fn a_failed_send_puts_the_connection_on_the_ready_list_once() {
    let mut bench = bench();
    let (id, peer) = bench.client(0, 0);
    drop(peer);
    assert_eq!(bench.sockets.send(id, &[b"a"]), Flow::Flushed);
    assert_eq!(bench.sockets.send(id, &[b"b"]), Flow::Flushed);
    assert_eq!(bench.sockets.ready_clients, [id]);
}

#[test]
fn reading_that_is_turned_on_again_looks_at_what_has_come_in_the_meantime() {
    let mut bench = bench();
    let (id, _peer) = bench.client(0, 0);
    bench.sockets.set_reading(id, false);
    bench.sockets.set_reading(id, true);
    assert!(bench.sockets.is_idle());
    bench.sockets.set_reading(id, false);
    bench.sockets.find(id).unwrap().readable = true;
    assert!(bench.sockets.is_idle());
    bench.sockets.set_reading(id, true);
    assert_eq!(bench.sockets.ready_clients, [id]);
}

#[test]
fn a_session_for_the_console_leaves_the_reactor_with_its_unsent_bytes() {
    let mut bench = bench();
    let (id, _peer) = bench.client(0, 0);
    while bench.sockets.send(id, &[&[1; 50_000]]) == Flow::Flushed {}
    let kept = bench.sockets.find(id).unwrap().kept_bytes();
    let ConnectionId::Client(client) = id else { unreachable!() };
    let address = pooling::seam::ClientAddress::Unix { port: 1, uid: 0, pid: 1 };
    let login = ConsoleLogin { user: "admin".to_owned(), admin: true, address, pending: Vec::new() };
    bench.sockets.hand_to_console(client, login);
    assert!(bench.sockets.find(id).is_none());
    let Ok(Request::Console(hand_over)) = bench.requests.try_recv() else { panic!("not handed over") };
    assert_eq!(hand_over.unsent.len(), kept);
    assert_eq!(bench.events(), []);
}
