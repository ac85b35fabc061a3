use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const KEEPALIVE: Keepalive =
    Keepalive { enabled: true, count: 3, idle_s: 77, interval_s: 5, user_timeout_ms: 0 };

fn tcp() -> (Listeners, SocketAddr) {
    let listener = bind_tcp("127.0.0.1:0".parse().unwrap(), 16, KEEPALIVE).unwrap();
    let address = listener.tcp_address().unwrap();
    (Listeners::new(vec![listener]), address)
}

fn at(micros: u64) -> Moment {
    Moment::from_micros(micros)
}

#[test]
fn accepted_connections_inherit_the_options_of_their_listener() {
    let (mut listeners, address) = tcp();
    let mut peer = TcpStream::connect(address).unwrap();
    listeners.on_event(0);
    let accepted = listeners.accept(at(0), 0).unwrap();
    assert!(rustix::net::sockopt::tcp_nodelay(&accepted.descriptor).unwrap());
    assert!(rustix::net::sockopt::socket_keepalive(&accepted.descriptor).unwrap());
    assert_eq!(rustix::net::sockopt::tcp_keepidle(&accepted.descriptor).unwrap(), Duration::from_secs(77));
    let expected = ClientAddress::Tcp { peer: peer.local_addr().unwrap(), local: address };
    assert_eq!(accepted.address, expected);
    assert!(!listeners.accept(at(0), 0).is_some_and(|_| true));
    assert!(!listeners.is_ready(at(0), 0));
    drop(accepted);
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
}

#[test]
fn without_descriptors_accepting_rests_until_one_is_given_back_or_the_pause_is_over() {
    let (mut listeners, _) = tcp();
    listeners.on_event(0);
    listeners.rest(at(0), 5, Errno::MFILE);
    assert!(!listeners.is_ready(at(1), 5));
    assert_eq!(listeners.next_deadline(), Some(at(0) + PAUSE));
    assert!(listeners.is_ready(at(1), 6));
    assert!(listeners.is_ready(at(0) + PAUSE, 5));
}

#[test]
fn a_rest_is_logged_once_a_period_with_the_number_of_those_that_were_not() {
    let (mut listeners, _) = tcp();
    for attempt in 0..5 {
        listeners.rest(at(attempt), 0, Errno::MFILE);
    }
    assert_eq!(listeners.suppressed, 4);
    listeners.rest(at(0) + LOG_PERIOD, 0, Errno::MFILE);
    assert_eq!(listeners.suppressed, 0);
}

#[test]
fn a_unix_socket_tells_who_calls_and_has_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let mut listeners = Listeners::new(vec![bind_unix(directory.path(), 6432, 0o700, 16).unwrap()]);
    let path = directory.path().join(".s.PGSQL.6432");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let _peer = UnixStream::connect(&path).unwrap();
    listeners.on_event(0);
    let accepted = listeners.accept(at(0), 0).unwrap();
    let uid = rustix::process::getuid().as_raw();
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    assert_eq!(accepted.address, ClientAddress::Unix { port: 6432, uid, pid });
    listeners.close();
    assert!(!path.exists());
}

#[test]
fn a_stale_unix_socket_is_replaced_and_a_live_one_or_another_file_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".s.PGSQL.6432");
    let bind = || bind_unix(directory.path(), 6432, 0o777, 16);
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listener = bind().unwrap();
    assert!(matches!(bind(), Err(BindError::InUse { .. })));
    drop(listener);
    std::fs::File::create(&path).unwrap().write_all(b"precious").unwrap();
    assert!(matches!(bind(), Err(BindError::NotASocket { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_later_process_keeps_its_unix_socket_when_the_earlier_one_stops() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".s.PGSQL.6432");
    let earlier = bind_unix(directory.path(), 6432, 0o777, 16).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _later = bind_unix(directory.path(), 6432, 0o777, 16).unwrap();
    drop(earlier);
    assert!(path.exists());
}

#[test]
fn an_address_that_is_taken_is_named_with_a_cure() {
    let (_listeners, address) = tcp();
    let error = bind_tcp(address, 16, KEEPALIVE).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()) && error.contains("another process"), "{error}");
}
