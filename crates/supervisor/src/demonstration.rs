//! The demonstration target: a web server of one page on loopback, which only up's own provider may reach, by an exception for
//! exactly this address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at once; more wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 64;
/// The longest request that is read, in bytes.
const MAX_REQUEST: usize = 16 * 1_024;
/// For a whole connection.
const LIMIT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until it is dropped.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve_demonstration(address: SocketAddr) -> std::io::Result<std::convert::Infallible> {
    let listener = TcpListener::bind(address).await?;
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { continue };
        let Ok((stream, _)) = listener.accept().await else {
            // There are no descriptors; more will not come at once.
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        tokio::spawn(async move {
            // A visitor who leaves early is nobody's concern.
            let _ = timeout(LIMIT, answer(stream)).await;
            drop(place);
        });
    }
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 1_024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await?;
        if count == 0 || request.len() + count > MAX_REQUEST {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..count]);
    }
    let page = "It works: this page came through a provider of your network.\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_in_pieces_is_answered_and_an_endless_one_is_cut() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let server = tokio::spawn(serve_demonstration(free));
        let mut stream = loop {
            match TcpStream::connect(free).await {
                Ok(stream) => break stream,
                Err(_) => sleep(Duration::from_millis(5)).await,
            }
        };
        stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        stream.write_all(b"host: here\r\n\r\n").await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.ends_with("network.\n"), "{page}");
        let mut endless = TcpStream::connect(free).await.unwrap();
        // It may be cut while it is still sent.
        let _ = endless.write_all(&[b'x'; 2 * MAX_REQUEST]).await;
        let mut rest = Vec::new();
        let ended = timeout(LIMIT / 2, endless.read_to_end(&mut rest)).await;
        assert!(ended.is_ok() && rest.is_empty());
        server.abort();
    }
}
