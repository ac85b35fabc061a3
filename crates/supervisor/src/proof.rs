//! Whether a page really comes through the proxy and a provider: the same way that the printed line takes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For one look.
const LIMIT: Duration = Duration::from_secs(5);
/// The most of an answer that is read, in bytes.
const MAX_ANSWER: u64 = 4_096;

/// Fetches the demonstration page at that port of 127.0.0.1 by SOCKS5 (RFC 1928, RFC 1929).
pub(crate) async fn page_comes(proxy: SocketAddr, user: &str, password: &str, port: u16) -> bool {
    matches!(timeout(LIMIT, fetch(proxy, user, password, port)).await, Ok(Ok(page)) if page.starts_with("HTTP/1.1 200"))
}

async fn fetch(proxy: SocketAddr, user: &str, password: &str, port: u16) -> io::Result<String> {
    let refused = || io::Error::other("the proxy refused");
    let mut stream = TcpStream::connect(proxy).await?;
    stream.write_all(&[5, 1, 2]).await?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice).await?;
    if choice != [5, 2] {
        return Err(refused());
    }
    let mut login = vec![1];
    for word in [user, password] {
        login.push(u8::try_from(word.len()).map_err(|_| refused())?);
        login.extend_from_slice(word.as_bytes());
    }
    stream.write_all(&login).await?;
    let mut verdict = [0; 2];
    stream.read_exact(&mut verdict).await?;
    if verdict[1] != 0 {
        return Err(refused());
    }
    let mut connect = vec![5, 1, 0, 1];
    connect.extend_from_slice(&Ipv4Addr::LOCALHOST.octets());
    connect.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&connect).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let rest = match head {
        [5, 0, _, 1] => 4 + 2,
        [5, 0, _, 4] => 16 + 2,
        _ => return Err(refused()),
    };
    stream.read_exact(&mut [0; 18][..rest]).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut answer).await?;
    Ok(answer)
}
