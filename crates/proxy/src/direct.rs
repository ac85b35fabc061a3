//! Streams without a network: the proxy itself connects to the target. For tests, and to see what the proxy alone costs.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use client::{Contract, Counter};
use egress::Host;
use selection::Fault;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exits::{ExitError, ExitStream, Exits, Wanted};
use crate::refusal::Reason;

/// Connects by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Exits for Direct {
    type Stream = DirectStream;

    async fn open(&self, wanted: Wanted<'_>) -> Result<DirectStream, ExitError> {
        let target = wanted.target;
        let host = match &target.host {
            Host::Name(name) => name.to_string(),
            Host::Address(address) => address.to_string(),
        };
        let connect = TcpStream::connect((host, target.port));
        match timeout(wanted.patience, connect).await {
            Ok(Ok(socket)) => {
                let _ = socket.set_nodelay(true);
                Ok(DirectStream { socket, counter: None })
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Err(ExitError::Target(Reason::TargetRefused, error.to_string()))
            }
            Ok(Err(error)) => Err(ExitError::Target(Reason::TargetUnreachable, error.to_string())),
            Err(_) => Err(ExitError::Provider(Fault::TimedOut, "no answer in time".into())),
        }
    }

    fn show(&self, _: &Contract) {}
}

/// A socket of our own.
pub struct DirectStream {
    socket: TcpStream,
    counter: Option<Arc<dyn Counter>>,
}

impl DirectStream {
    fn moved(&self, bytes: usize) {
        if let Some(counter) = &self.counter {
            counter.carried(bytes as u64);
        }
    }
}

impl ExitStream for DirectStream {
    fn set_counter(&mut self, counter: Arc<dyn Counter>) {
        self.counter = Some(counter);
    }

    async fn splice(mut self, mut socket: TcpStream, first: &[u8], idle: Duration) {
        if self.write_all(first).await.is_err() {
            return;
        }
        // A plain copy knows no time between bytes: `idle` bounds the whole.
        let _ = timeout(idle, copy_bidirectional(&mut socket, &mut self)).await;
    }
}

impl AsyncRead for DirectStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = pin!(&mut self.socket).poll_read(context, buffer);
        self.moved(buffer.filled().len() - before);
        polled
    }
}

impl AsyncWrite for DirectStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = pin!(&mut self.socket).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = polled {
            self.moved(count);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(&mut self.socket).poll_shutdown(context)
    }
}
