use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const KEEPALIVE: Keepalive =
    Keepalive { enabled: true, count: 3, idle_s: 77, interval_s: 5, user_timeout_ms: 0, buffer_bytes: 0 };

const ALL: UnixAccess<'static> = UnixAccess { mode: 0o777, group: None };
const MINE: UnixAccess<'static> = UnixAccess { mode: 0o700, group: None };

fn tcp() -> (Listeners, SocketAddr) {
    let listener = bind_tcp("127.0.0.1:0".parse().unwrap(), 16, false, KEEPALIVE).unwrap();
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
    let mut listeners = Listeners::new(vec![bind_unix(directory.path(), 6432, MINE, 16).unwrap()]);
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
    let bind = || bind_unix(directory.path(), 6432, ALL, 16);
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
    let earlier = bind_unix(directory.path(), 6432, ALL, 16).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _later = bind_unix(directory.path(), 6432, ALL, 16).unwrap();
    drop(earlier);
    assert!(path.exists());
}

#[test]
fn an_address_that_is_taken_is_named_with_a_cure() {
    let (_listeners, address) = tcp();
    let error = bind_tcp(address, 16, false, KEEPALIVE).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()) && error.contains("another process"), "{error}");
}

#[test]
fn a_port_is_shared_only_by_those_who_all_want_to_share_it() {
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let first = bind_tcp(address, 16, true, KEEPALIVE).unwrap();
    let address = first.tcp_address().unwrap();
    let second = bind_tcp(address, 16, true, KEEPALIVE).unwrap();
    assert_eq!(second.tcp_address(), Some(address));
    assert!(bind_tcp(address, 16, false, KEEPALIVE).is_err());
}

#[test]
fn socket_buffers_are_as_large_as_they_are_set() {
    let keepalive = Keepalive { buffer_bytes: 32 * 1024, ..KEEPALIVE };
    let listener = bind_tcp("127.0.0.1:0".parse().unwrap(), 16, false, keepalive).unwrap();
    let address = listener.tcp_address().unwrap();
    let mut listeners = Listeners::new(vec![listener]);
    let _peer = TcpStream::connect(address).unwrap();
    listeners.on_event(0);
    let accepted = listeners.accept(at(0), 0).unwrap();
    // Linux keeps as much again for its own book-keeping.
    let sent = rustix::net::sockopt::socket_send_buffer_size(&accepted.descriptor).unwrap();
    let received = rustix::net::sockopt::socket_recv_buffer_size(&accepted.descriptor).unwrap();
    assert_eq!((sent, received), (64 * 1024, 64 * 1024));
}

#[test]
fn a_unix_socket_belongs_to_its_group_by_name_or_number_and_an_unknown_one_is_named() {
    use std::os::unix::fs::MetadataExt;
    // Another one than the process's, where there is one that it may give.
    let own = nix::unistd::getegid();
    let mut groups = nix::unistd::getgroups().unwrap();
    if nix::unistd::geteuid().is_root() {
        groups.extend(nix::unistd::Group::from_name("daemon").unwrap().map(|group| group.gid));
    }
    let gid = groups.into_iter().find(|gid| *gid != own).unwrap_or(own);
    let name = nix::unistd::Group::from_gid(gid).unwrap().unwrap().name;
    for group in [name, gid.as_raw().to_string()] {
        let directory = tempfile::tempdir().unwrap();
        let access = UnixAccess { mode: 0o770, group: Some(&group) };
        let _listener = bind_unix(directory.path(), 6432, access, 16).unwrap();
        let metadata = std::fs::metadata(directory.path().join(".s.PGSQL.6432")).unwrap();
        assert_eq!((metadata.gid(), metadata.mode() & 0o777), (gid.as_raw(), 0o770));
    }
    let directory = tempfile::tempdir().unwrap();
    let access = UnixAccess { mode: 0o770, group: Some("no-such-group") };
    let error = bind_unix(directory.path(), 6432, access, 16).unwrap_err().to_string();
    assert!(error.contains("no-such-group") && error.contains("unix_socket_group"), "{error}");
    assert!(!directory.path().join(".s.PGSQL.6432").exists());
}

#[test]
fn no_more_connections_wait_for_accept_than_the_backlog_allows() {
    let listener = bind_tcp("127.0.0.1:0".parse().unwrap(), 2, false, KEEPALIVE).unwrap();
    let address = listener.tcp_address().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let peers: Vec<_> = std::iter::from_fn(connect).take(20).collect();
    // Linux lets one more in than it is told.
    assert!((2..=3).contains(&peers.len()), "{}", peers.len());
}
