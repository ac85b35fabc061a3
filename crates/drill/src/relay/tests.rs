use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::clock;

const QUIET: Duration = Duration::from_millis(150);
const LIMIT: Duration = Duration::from_secs(10);

/// A relay in front of a server that sends back what it gets.
fn echo() -> Relay {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || std::io::copy(&mut stream.try_clone().unwrap(), &mut stream));
        }
    });
    Relay::start(target).unwrap()
}

fn dial(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(relay.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn exchange(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).unwrap();
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, text);
}

fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(QUIET)).unwrap();
    let outcome = stream.read(&mut [0]);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    outcome.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn frozen_bytes_arrive_after_the_thaw_and_none_is_lost() {
    let relay = echo();
    let mut old = dial(&relay);
    exchange(&mut old, b"before");
    relay.freeze();
    old.write_all(b"held").unwrap();
    let mut new = dial(&relay);
    new.write_all(b"new").unwrap();
    assert!(is_silent(&mut old) && is_silent(&mut new));
    relay.thaw();
    let (mut held, mut other) = ([0; 4], [0; 3]);
    old.read_exact(&mut held).unwrap();
    new.read_exact(&mut other).unwrap();
    assert_eq!((&held, &other), (b"held", b"new"));
    let expected = RelayCounts { opened: 2, live: 2, bytes_up: 13, bytes_down: 13 };
    assert!(clock::wait_for(LIMIT, || relay.counts() == expected), "{:?}", relay.counts());
}

#[test]
fn a_cut_ends_frozen_connections_and_lets_new_ones_in() {
    let relay = echo();
    for (how, expected) in [(Cut::Close, Ok(0)), (Cut::Reset, Err(ErrorKind::ConnectionReset))] {
        let mut stream = dial(&relay);
        exchange(&mut stream, b"x");
        relay.freeze();
        relay.cut(how);
        assert_eq!(stream.read(&mut [0]).map_err(|error| error.kind()), expected);
        relay.thaw();
    }
    assert!(clock::wait_for(LIMIT, || relay.counts().live == 0));
    exchange(&mut dial(&relay), b"again");
}

#[test]
fn delays_are_kept_and_only_where_they_were_asked_for() {
    let relay = echo();
    let mut old = dial(&relay);
    exchange(&mut old, b"x");
    let took = |stream: &mut TcpStream| {
        let begin = clock::now();
        exchange(stream, b"x");
        clock::now() - begin
    };
    relay.delay_new(Duration::from_millis(200));
    assert!(took(&mut dial(&relay)) >= Duration::from_millis(200));
    assert!(took(&mut old) < Duration::from_millis(200));
    relay.delay_new(Duration::ZERO);
    relay.delay_bytes(Direction::Up, Duration::from_millis(60));
    relay.delay_bytes(Direction::Down, Duration::from_millis(50));
    assert!(took(&mut old) >= Duration::from_millis(110));
}

#[test]
fn swallowed_connections_hear_nothing_and_refused_ones_a_reset() {
    let relay = echo();
    relay.swallow_new(true);
    let mut swallowed = dial(&relay);
    swallowed.write_all(b"hello").unwrap();
    assert!(is_silent(&mut swallowed));
    relay.swallow_new(false);
    assert!(is_silent(&mut swallowed));
    exchange(&mut dial(&relay), b"fine");
    relay.refuse_new(true);
    let error = dial(&relay).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn half_closes_and_resets_pass_through() {
    let relay = echo();
    let mut stream = dial(&relay);
    stream.write_all(b"last words").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert_eq!(back, b"last words");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Relay::start(listener.local_addr().unwrap()).unwrap();
    let client = dial(&relay);
    let (mut backend, _) = listener.accept().unwrap();
    sockopt_reset(&client);
    drop(client);
    assert_eq!(backend.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

fn sockopt_reset(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_dropped_relay_closes_its_connections_and_its_port() {
    let relay = echo();
    let mut stream = dial(&relay);
    exchange(&mut stream, b"x");
    let address = relay.address();
    drop(relay);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert!(TcpStream::connect(address).is_err());
}
