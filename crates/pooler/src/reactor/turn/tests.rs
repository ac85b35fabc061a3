//! The reactor with the real engine; the test is the client, the login plane and the server.

use super::super::listener::bind_tcp;
use super::*;
use crate::control::EngineHandle;
use crate::login_plane::request::{Request, channel};
use crate::reactor::Opened;
use pgwire::frame::head;
use pgwire::message::{TransactionStatus, backend, frontend};
use pgwire::startup::startup_message;
use pooling::Shutdown;
use pooling::connection::{ClientId, MAX_SLOTS, ServerId, SlabId};
use pooling::seam::{AttemptId, OpenedServer};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use tokio::sync::mpsc::Receiver;

/// Nothing that works takes that long.
const PATIENCE: Duration = Duration::from_secs(10);
const CONFIG: &str = "[databases]\napp = host=127.0.0.1 dbname=app user=app\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                      auth_type = any\npool_mode = transaction\ndefault_pool_size = 1\n";

struct Bench {
    address: SocketAddr,
    inbox: Arc<Inbox>,
    requests: Receiver<Request>,
    reactor: Option<JoinHandle<io::Result<()>>>,
}

impl Bench {
    fn start() -> Self {
        let config = Arc::new(settings::pooler::parse_ini(CONFIG).unwrap().config);
        let listener =
            bind_tcp("127.0.0.1:0".parse().unwrap(), 16, false, config.general.tcp_keepalive).unwrap();
        let address = listener.tcp_address().unwrap();
        let seed = Seed::new(Listeners::new(vec![listener])).unwrap();
        let (sender, requests) = channel();
        let inbox = seed.inbox();
        let reactor =
            std::thread::spawn(move || Reactor::new(seed, config, 100, sender, TlsContext::default())?.run());
        Self { address, inbox, requests, reactor: Some(reactor) }
    }

    /// A client that has sent its start-up packet and `more`.
    fn client(&self, more: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = startup_message([("user", "someone"), ("database", "app")]).unwrap();
        bytes.extend_from_slice(more);
        client.write_all(&bytes).unwrap();
        client
    }

    /// Plays the login plane for the next server, whose login brought `leftover`.
    fn open_server(&mut self, leftover: &[u8]) -> UnixStream {
        let Some(Request::Open(request, _)) = self.next_request() else { panic!("no server was asked for") };
        self.install(request.attempt, leftover)
    }

    /// Hands the reactor a server that has logged in; gives the server's end.
    fn install(&self, attempt: AttemptId, leftover: &[u8]) -> UnixStream {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let server = OpenedServer {
            process_id: 7,
            secret_key: vec![1, 2, 3, 4],
            parameters: vec![("server_version".to_owned(), "18.0".to_owned())],
            leftover: leftover.to_vec(),
            peer: None,
            login_time: Duration::ZERO,
        };
        self.inbox.answer(Letter::ServerOpened(Box::new(Opened {
            attempt,
            server,
            descriptor: ours,
            is_unix: true,
            tls: None,
        })));
        let theirs = UnixStream::from(theirs);
        theirs.set_read_timeout(Some(PATIENCE)).unwrap();
        theirs
    }

    fn next_request(&mut self) -> Option<Request> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(PATIENCE, self.requests.recv()).await }).ok()?
    }

    /// A client that is logged in, and the only server.
    fn session(&mut self) -> (TcpStream, UnixStream) {
        let mut client = self.client(&[]);
        let server = self.open_server(&[]);
        until(&mut client, b'Z');
        (client, server)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        EngineHandle::new(Arc::clone(&self.inbox)).shut_down(Shutdown::Now);
        let ended = self.reactor.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Reads one message: tag and body.
fn message(stream: &mut impl Read) -> (u8, Vec<u8>) {
    let mut header = [0; 5];
    stream.read_exact(&mut header).unwrap();
    let head = head(&header, u32::MAX).unwrap().unwrap();
    let mut body = vec![0; head.total - header.len()];
    stream.read_exact(&mut body).unwrap();
    (head.tag, body)
}

/// Reads messages up to one with this tag.
fn until(stream: &mut impl Read, tag: u8) -> (u8, Vec<u8>) {
    loop {
        let message = message(stream);
        if message.0 == tag {
            return message;
        }
    }
}

fn query(sql: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    frontend::query(&mut bytes, sql);
    bytes
}

fn answer(rows: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in rows {
        backend::data_row(&mut bytes, [Some(row)]);
    }
    backend::command_complete(&mut bytes, "SELECT");
    backend::ready_for_query(&mut bytes, TransactionStatus::Idle);
    bytes
}

fn fatal(text: &str) -> Vec<u8> {
    pgwire::message::error_response(pgwire::message::Severity::Fatal, "57P01", text, None, None)
}

#[test]
fn no_connection_has_the_token_of_a_listener_or_of_the_waker() {
    for generation in [0, 1, u32::MAX] {
        for slot in [0, MAX_SLOTS - 1] {
            let client = ConnectionId::Client(ClientId::from_parts(slot, generation));
            let server = ConnectionId::Server(ServerId::from_parts(slot, generation));
            for id in [client, server] {
                let token = super::super::sockets::token(id);
                assert!(matches!(what(token), What::Connection(found) if found == id));
            }
        }
    }
    assert!(matches!(what(listener_token(3)), What::Listener(3)));
    assert!(matches!(what(WAKER), What::Letters));
}

#[test]
fn a_query_in_the_packet_of_the_start_up_is_answered() {
    let mut bench = Bench::start();
    let mut client = bench.client(&query("select 1"));
    let mut server = bench.open_server(&[]);
    assert_eq!(until(&mut server, b'Q').1, b"select 1\0");
    server.write_all(&answer(&["one"])).unwrap();
    until(&mut client, b'Z');
    assert!(until(&mut client, b'D').1.ends_with(b"one"));
    until(&mut client, b'Z');
}

#[test]
fn the_last_words_of_a_server_reach_the_client_although_its_end_came_with_them() {
    let mut bench = Bench::start();
    let (mut client, mut server) = bench.session();
    client.write_all(&query("select 1")).unwrap();
    until(&mut server, b'Q');
    server.write_all(&fatal("terminating connection due to administrator command")).unwrap();
    drop(server);
    let text = String::from_utf8_lossy(&until(&mut client, b'E').1).into_owned();
    assert!(text.contains("administrator command"), "{text}");
}

#[test]
fn a_last_query_is_run_although_the_client_left_right_behind_it() {
    let mut bench = Bench::start();
    let (mut client, mut server) = bench.session();
    let mut bytes = query("insert");
    frontend::terminate(&mut bytes);
    client.write_all(&bytes).unwrap();
    drop(client);
    assert_eq!(until(&mut server, b'Q').1, b"insert\0");
}

#[test]
fn a_large_result_waits_at_the_server_while_the_client_does_not_read_and_arrives_whole() {
    const ROWS: usize = 32;
    const ROW_BYTES: usize = 1 << 20;
    let mut bench = Bench::start();
    let (mut client, mut server) = bench.session();
    client.write_all(&query("select")).unwrap();
    until(&mut server, b'Q');
    let row = "x".repeat(ROW_BYTES);
    let result = answer(&vec![row.as_str(); ROWS]);
    server.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let mut refused = 0;
    // Until nothing has moved for a while.
    while refused < 50 {
        match server.write(&result[sent..]) {
            Ok(count) => {
                sent += count;
                refused = 0;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                refused += 1;
                pause();
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        sent < result.len() / 2,
        "{sent} bytes of {} were taken for a client that does not read",
        result.len()
    );
    server.set_nonblocking(false).unwrap();
    let writer = std::thread::spawn(move || {
        server.write_all(&result[sent..]).unwrap();
        server
    });
    for _ in 0..ROWS {
        let (tag, body) = message(&mut client);
        assert_eq!((tag, body.len()), (b'D', ROW_BYTES + 6));
        assert!(body[6..].iter().all(|&byte| byte == b'x'));
    }
    until(&mut client, b'Z');
    writer.join().unwrap();
}

#[test]
fn a_server_that_nobody_wants_any_more_is_told_good_bye() {
    let bench = Bench::start();
    let mut server = bench.install(AttemptId(u64::MAX), &[]);
    assert_eq!(message(&mut server).0, b'X');
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_stop_ends_the_reactor_and_nobody_can_connect_any_more() {
    let mut bench = Bench::start();
    let (mut client, _server) = bench.session();
    let address = bench.address;
    drop(bench);
    assert_eq!(message(&mut client).0, b'E');
    assert!(TcpStream::connect(address).is_err());
}

#[expect(clippy::disallowed_methods, reason = "waits for another thread to do nothing")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}
