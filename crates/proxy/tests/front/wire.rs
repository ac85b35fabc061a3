//! A SOCKS5 client and an HTTP client of our own, which can do it wrong.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{SECRET, connect};

pub(crate) fn greeting() -> Vec<u8> {
    vec![5, 1, 2]
}

pub(crate) fn login(name: &str, password: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    [&[1, length(name)], name.as_bytes(), &[length(password)], password.as_bytes()].concat()
}

pub(crate) fn request(command: u8, target: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(target) = target else { panic!("{target}") };
    [&[5, command, 0, 1][..], &target.ip().octets(), &target.port().to_be_bytes()].concat()
}

pub(crate) fn request_name(name: &str, port: u16) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    [&[5, 1, 0, 3, length], name.as_bytes(), &port.to_be_bytes()].concat()
}

/// Logs in by SOCKS5.
pub(crate) async fn logged_in(proxy: SocketAddr, name: &str) -> TcpStream {
    let mut socket = connect(proxy).await;
    socket.write_all(&greeting()).await.unwrap();
    assert_eq!(take::<2>(&mut socket).await, [5, 2]);
    socket.write_all(&login(name, SECRET)).await.unwrap();
    assert_eq!(take::<2>(&mut socket).await, [1, 0]);
    socket
}

/// Asks for a target; the reply code.
pub(crate) async fn ask(proxy: SocketAddr, name: &str, request: &[u8]) -> (u8, TcpStream) {
    let mut socket = logged_in(proxy, name).await;
    socket.write_all(request).await.unwrap();
    let reply = take::<10>(&mut socket).await;
    assert_eq!((reply[0], reply[2], reply[3]), (5, 0, 1));
    (reply[1], socket)
}

/// A stream to a target.
pub(crate) async fn stream(proxy: SocketAddr, name: &str, target: SocketAddr) -> TcpStream {
    let (code, socket) = ask(proxy, name, &request(1, target)).await;
    assert_eq!(code, 0);
    socket
}

pub(crate) async fn take<const N: usize>(socket: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes).await.expect("the proxy closed");
    bytes
}

/// There and back.
pub(crate) async fn works(socket: &mut TcpStream) {
    socket.write_all(b"ping").await.unwrap();
    assert_eq!(&take::<4>(socket).await, b"ping");
}

pub(crate) fn basic(name: &str) -> String {
    format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{name}:{SECRET}")))
}

/// Reads one answer of the proxy: its head, and its body by its length.
pub(crate) async fn answer(socket: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(take::<1>(socket).await);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    socket.read_exact(&mut body).await.unwrap();
    (head, body)
}

pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

pub(crate) fn header<'head>(head: &'head str, name: &str) -> Option<&'head str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
