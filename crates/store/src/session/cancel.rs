//! A cancel request, to its very end.
//!
//! The server acts on the request before it closes that connection. Whoever uses the session again before that end may have
//! its next statement cancelled.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::config::Host;
use tokio_postgres::{CancelToken, Config, NoTls};

const DEFAULT_PORT: u16 = 5432;

/// Asks the server to cancel what the session does, and returns once the server has closed that connection.
pub(super) async fn request(config: &Config, token: CancelToken) -> io::Result<()> {
    let port = config.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
    let sent = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => {
            let stream = TcpStream::connect((name.as_str(), port)).await?;
            token.cancel_query_raw(ToTheEnd(stream), NoTls).await
        }
        Some(Host::Unix(folder)) => {
            let stream = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await?;
            token.cancel_query_raw(ToTheEnd(stream), NoTls).await
        }
        None => return Err(io::ErrorKind::InvalidInput.into()),
    };
    sent.map_err(io::Error::other)
}

/// The process id that the session was told at its start: what a cancel request would carry.
pub(super) async fn process_id(token: CancelToken) -> io::Result<i32> {
    const REQUEST_BYTES: usize = 16;
    let (ours, mut theirs) = tokio::io::duplex(REQUEST_BYTES);
    token.cancel_query_raw(ours, NoTls).await.map_err(io::Error::other)?;
    let mut request = [0; REQUEST_BYTES];
    theirs.read_exact(&mut request).await?;
    // Length, code, process id, key (PostgreSQL protocol 3.0, CancelRequest).
    let [.., a, b, c, d, _, _, _, _] = request;
    Ok(i32::from_be_bytes([a, b, c, d]))
}

/// A stream whose shutdown waits for the other side's end as well.
struct ToTheEnd<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for ToTheEnd<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ToTheEnd<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Not shut down before the end is seen: a server, or a pooler, may take half a close for a change of mind.
        let mut byte = [0; 1];
        let mut buf = ReadBuf::new(&mut byte);
        match ready!(Pin::new(&mut self.0).poll_read(cx, &mut buf)) {
            // A reset is an end, too.
            Err(_) => Poll::Ready(Ok(())),
            Ok(()) if buf.filled().is_empty() => Poll::Ready(Ok(())),
            Ok(()) => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
        }
    }
}
