//! A stream through a proxy: SOCKS5 (RFC 1928, RFC 1929) for those that are held, HTTP CONNECT (RFC 9110 §9.3.6) for new ones, since
//! its refusals carry their cause.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Customers;

/// The longest head of an answer, bytes.
const HEAD_MAX: usize = 8 * 1024;

/// Why there is no stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotOpened {
    /// The proxy's own word, or what the system says.
    pub cause: String,
    /// When to come back, if it said so.
    pub retry_after_s: Option<u64>,
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> Self {
        Self { cause: format!("io: {}", error.kind()), retry_after_s: None }
    }
}

pub(super) async fn by_socks(customers: &Customers) -> Result<TcpStream, NotOpened> {
    let refused = |reply: u8| NotOpened { cause: format!("socks reply {reply}"), retry_after_s: None };
    let mut stream = dial(customers).await?;
    let mut hello = vec![5, 1, 2, 1];
    for word in [&customers.user, &customers.password] {
        // Logins are short; a longer one would be refused.
        hello.push(u8::try_from(word.len()).unwrap_or(u8::MAX));
        hello.extend_from_slice(word.as_bytes());
    }
    hello.extend_from_slice(&[5, 1, 0]);
    match customers.target {
        SocketAddr::V4(target) => {
            hello.push(1);
            hello.extend_from_slice(&target.ip().octets());
        }
        SocketAddr::V6(target) => {
            hello.push(4);
            hello.extend_from_slice(&target.ip().octets());
        }
    }
    hello.extend_from_slice(&customers.target.port().to_be_bytes());
    stream.write_all(&hello).await?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await?;
    let [5, 2, 1, 0, 5, reply, 0, kind] = answer else { return Err(refused(answer[5])) };
    if reply != 0 {
        return Err(refused(reply));
    }
    let rest = if kind == 4 { 18 } else { 6 };
    stream.read_exact(&mut [0; 18][..rest]).await?;
    Ok(stream)
}

pub(super) async fn by_connect(customers: &Customers) -> Result<TcpStream, NotOpened> {
    use base64::Engine as _;
    let mut stream = dial(customers).await?;
    let login = format!("{}:{}", customers.user, customers.password);
    let login = base64::prelude::BASE64_STANDARD.encode(login);
    let target = customers.target;
    let request =
        format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\nproxy-authorization: Basic {login}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_MAX {
            return Err(NotOpened { cause: "a head without end".to_owned(), retry_after_s: None });
        }
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let field = |name: &str| {
        head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
    };
    if head.split(' ').nth(1) == Some("200") {
        return Ok(stream);
    }
    let cause = field("x-proxy-error").unwrap_or_else(|| head.lines().next().unwrap_or_default().to_owned());
    let retry_after_s = field("retry-after").and_then(|text| text.parse().ok());
    Err(NotOpened { cause, retry_after_s })
}

async fn dial(customers: &Customers) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(customers.proxy).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
