//! A small web site: a page with 50 pictures, an echo, a long answer in chunks. It keeps connections.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"8\" height=\"8\"></svg>";

pub(crate) async fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket));
        }
    });
    address
}

async fn serve(mut socket: TcpStream) {
    let mut received = Vec::new();
    loop {
        let Some((head, length)) = head(&mut socket, &mut received).await else { return };
        received.drain(..length);
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let lower = head.to_ascii_lowercase();
        if lower.contains("expect: 100-continue")
            && socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err()
        {
            return;
        }
        let Some(body) = body(&mut socket, &mut received, &lower).await else { return };
        let (kind, answer) = match path {
            "/echo" => ("application/octet-stream", body),
            "/chunked" => ("text/plain", vec![b'x'; 1_000_000]),
            path if path.ends_with(".svg") => ("image/svg+xml", SVG.into()),
            _ => ("text/html", page().into()),
        };
        let mut out = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n").into_bytes();
        if path == "/chunked" {
            out.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for part in answer.chunks(30_000) {
                out.extend(
                    format!("{:x}\r\n", part.len()).bytes().chain(part.iter().copied()).chain(*b"\r\n"),
                );
            }
            out.extend(b"0\r\n\r\n");
        } else {
            out.extend(format!("Content-Length: {}\r\n\r\n", answer.len()).bytes());
            if method != "HEAD" {
                out.extend(answer);
            }
        }
        if socket.write_all(&out).await.is_err() || lower.contains("connection: close") {
            return;
        }
    }
}

fn page() -> String {
    let images: String = (0..50).map(|number| format!("<img src=/{number}.svg>")).collect();
    format!(
        "<!doctype html><title>fifty</title>{images}<p id=told></p><script>onload = () => {{ told.textContent = 'loaded ' + \
         [...document.images].filter(image => image.naturalWidth > 0).length + ' of 50' }}</script>"
    )
}

async fn head(socket: &mut TcpStream, received: &mut Vec<u8>) -> Option<(String, usize)> {
    loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            return Some((String::from_utf8(received[..end + 2].to_vec()).ok()?, end + 4));
        }
        if socket.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}

async fn body(socket: &mut TcpStream, received: &mut Vec<u8>, head: &str) -> Option<Vec<u8>> {
    if head.contains("transfer-encoding: chunked") {
        let mut body = Vec::new();
        loop {
            let line = take_until(socket, received, b"\r\n").await?;
            let length = usize::from_str_radix(std::str::from_utf8(&line).ok()?.trim(), 16).ok()?;
            let chunk = take(socket, received, length + 2).await?;
            if length == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    take(socket, received, length.unwrap_or(0)).await
}

async fn take_until(socket: &mut TcpStream, received: &mut Vec<u8>, end: &[u8]) -> Option<Vec<u8>> {
    loop {
        if let Some(at) = received.windows(end.len()).position(|window| window == end) {
            return Some(received.drain(..at + end.len()).collect());
        }
        if socket.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}

async fn take(socket: &mut TcpStream, received: &mut Vec<u8>, count: usize) -> Option<Vec<u8>> {
    while received.len() < count {
        if socket.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
    Some(received.drain(..count).collect())
}
