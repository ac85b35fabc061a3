//! A stream as tokio's streams are; [`super::Stream::splice`] is cheaper where the other side is a socket.

use super::Stream;
use crate::link::StreamState;
use link::Code;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Plain bytes that one write takes at most.
const MAX_WRITE_BYTES: usize = 64 * 1024;

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut guard = this.shared.lock();
        let state = &mut *guard;
        let Some(stream) = state.streams.get_mut(&this.id) else {
            return Poll::Ready(Err(over(Code::Cancelled)));
        };
        if !stream.untaken().is_empty() {
            let count = stream.untaken().len().min(buffer.remaining());
            buffer.put_slice(&stream.untaken()[..count]);
            let now = this.shared.clock.now();
            stream.take(this.id, count, now, &mut state.sharing, state.out.frames());
            state.flush(&this.shared);
            return Poll::Ready(Ok(()));
        }
        if let Some(code) = stream.reset {
            return Poll::Ready(Err(over(code)));
        }
        if stream.peer_ended {
            return Poll::Ready(Ok(()));
        }
        stream.read_waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut guard = this.shared.lock();
        let state = &mut *guard;
        let Some(stream) = state.streams.get_mut(&this.id) else {
            return Poll::Ready(Err(over(Code::Cancelled)));
        };
        if let Some(error) = cannot_write(stream) {
            return Poll::Ready(Err(error));
        }
        let count = bytes.len().min(MAX_WRITE_BYTES).min(stream.room());
        if count == 0 && !bytes.is_empty() {
            stream.write_waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        if state.out.is_full() {
            state.out.wait(context.waker());
            return Poll::Pending;
        }
        if stream.send(this.id, &bytes[..count], false, state.out.frames()).is_err() {
            state.reset(this.id, Code::SealInvalid);
            return Poll::Ready(Err(over(Code::SealInvalid)));
        }
        state.flush(&this.shared);
        Poll::Ready(Ok(count))
    }

    /// Everything was sent, or waits in the link's one queue.
    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut guard = this.shared.lock();
        let state = &mut *guard;
        let Some(stream) = state.streams.get_mut(&this.id) else { return Poll::Ready(Ok(())) };
        if stream.reset.is_none() && stream.send(this.id, &[], true, state.out.frames()).is_err() {
            state.reset(this.id, Code::SealInvalid);
        }
        state.flush(&this.shared);
        Poll::Ready(Ok(()))
    }
}

fn cannot_write(stream: &StreamState) -> Option<io::Error> {
    if let Some(code) = stream.reset {
        return Some(over(code));
    }
    stream.fin_sent.then(|| io::ErrorKind::BrokenPipe.into())
}

/// A stream that is over, as an error of a socket.
fn over(code: Code) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, format!("the stream was reset: {code}"))
}
