//! A stream and a socket, each the other's end.
//!
//! What comes for the stream goes out at the socket from the link's driver; what the socket gives is sealed and sent from the task
//! that waits here. No byte waits in a buffer of its own, but for what the socket does not take.

use super::Stream;
use crate::link::{HIGH_WATER_BYTES, with_scratch};
use link::Code;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes that are taken from the socket in one turn: the streams of a link take turns.
const BURST_BYTES: usize = 128 * 1024;

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub struct SpliceLimits {
    /// No byte in either direction for so long.
    pub idle: Duration,
    /// One direction has ended, and no byte in the other for so long.
    pub half_closed: Duration,
}

impl Default for SpliceLimits {
    fn default() -> Self {
        Self { idle: Duration::from_secs(300), half_closed: Duration::from_secs(60) }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceEnd {
    /// Both directions, in good order.
    Finished,
    /// The other end of the stream, or the relay.
    Reset(Code),
    /// The socket's peer broke off.
    Broken,
    /// Nothing moved for too long.
    Idle,
}

/// What has passed.
#[derive(Clone, Copy, Debug)]
pub struct SpliceReport {
    /// Plain bytes from the socket into the stream.
    pub sent: u64,
    /// Plain bytes from the stream into the socket.
    pub received: u64,
    /// How it ended.
    pub end: SpliceEnd,
}

impl Stream {
    /// Copies between the stream and `socket` until both directions have ended, or one is given up. `first` is what has been
    /// read from the socket already.
    pub async fn splice(self, socket: TcpStream, first: &[u8], limits: SpliceLimits) -> SpliceReport {
        let socket = Arc::new(socket);
        let mut first = first;
        let mut splice = Splice { read_ended: false, write_ended: false, half_closed: false, seen: (0, 0) };
        self.attach(&socket);
        let mut sleep = pin!(sleep_until(Instant::now() + limits.idle));
        let end = poll_fn(|context| {
            let mut end = self.turn(&mut splice, &socket, &mut first, context);
            if end.is_none() {
                end = self.overdue(&mut splice, limits, sleep.as_mut(), context);
            }
            end.map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        self.detach(end)
    }

    /// From now on what comes goes to the socket.
    fn attach(&self, socket: &Arc<TcpStream>) {
        if let Some(stream) = self.shared.lock().streams.get_mut(&self.id) {
            stream.sink = Some(Arc::clone(socket));
        }
    }

    fn detach(&self, end: SpliceEnd) -> SpliceReport {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let Some(stream) = state.streams.get_mut(&self.id) else {
            return SpliceReport { sent: 0, received: 0, end };
        };
        stream.sink = None;
        let report = SpliceReport { sent: stream.sent_bytes, received: stream.received_bytes, end };
        match end {
            SpliceEnd::Idle => state.reset(self.id, Code::Idle),
            SpliceEnd::Broken => state.reset(self.id, Code::Cancelled),
            SpliceEnd::Finished | SpliceEnd::Reset(_) => {}
        }
        report
    }

    /// Moves what can be moved. The end, if this is it; otherwise `context` is woken when there is more to do.
    fn turn(
        &self,
        splice: &mut Splice,
        socket: &TcpStream,
        first: &mut &[u8],
        context: &mut Context<'_>,
    ) -> Option<SpliceEnd> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let Some(stream) = state.streams.get_mut(&self.id) else {
            return Some(SpliceEnd::Reset(Code::Cancelled));
        };
        if let Some(code) = stream.reset {
            return Some(SpliceEnd::Reset(code));
        }
        let now = self.shared.clock.now();
        // Towards the socket: what its buffer did not take before.
        while !stream.untaken().is_empty() {
            match socket.try_write(stream.untaken()) {
                Ok(count) => stream.take(self.id, count, now, &mut state.sharing, state.out.frames()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if socket.poll_write_ready(context).is_pending() {
                        break;
                    }
                }
                Err(_) => return Some(SpliceEnd::Broken),
            }
        }
        if stream.untaken().is_empty() && stream.peer_ended && !splice.write_ended {
            splice.write_ended = true;
            // A socket that is gone already needs no farewell.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
        }
        stream.read_waker = Some(context.waker().clone());
        // Towards the stream.
        let mut burst = 0;
        while !splice.read_ended {
            let room = stream.room().min(HIGH_WATER_BYTES);
            if room == 0 {
                stream.write_waker = Some(context.waker().clone());
                break;
            }
            if state.out.is_full() {
                state.out.wait(context.waker());
                break;
            }
            if self.shared.meter.rests_until(self.shared.clock.now()).is_some() {
                state.resting.wait(context.waker());
                self.shared.poke.notify_one();
                break;
            }
            if burst >= BURST_BYTES {
                if state.out.has_line() {
                    state.out.wait(context.waker());
                } else {
                    context.waker().wake_by_ref();
                }
                break;
            }
            let sent = if first.is_empty() {
                match read(socket, room.min(BURST_BYTES), context, |bytes, ends| {
                    stream.send(self.id, bytes, ends, state.out.frames()).map(|()| bytes.len())
                }) {
                    Poll::Pending => break,
                    Poll::Ready(Err(_)) => return Some(SpliceEnd::Broken),
                    Poll::Ready(Ok(sent)) => sent,
                }
            } else {
                let (now, later) = first.split_at(first.len().min(room));
                *first = later;
                stream.send(self.id, now, false, state.out.frames()).map(|()| now.len())
            };
            match sent {
                Ok(0) => splice.read_ended = true,
                Ok(count) => burst += count,
                Err(_) => {
                    state.reset(self.id, Code::SealInvalid);
                    return Some(SpliceEnd::Reset(Code::SealInvalid));
                }
            }
        }
        let finished = splice.read_ended && splice.write_ended && stream.fin_received;
        state.flush(&self.shared);
        finished.then_some(SpliceEnd::Finished)
    }

    /// Nothing has moved for too long; otherwise `context` is woken when it might be. Looked at when the time is up, so that
    /// a busy stream sets no timer for each packet.
    fn overdue(
        &self,
        splice: &mut Splice,
        limits: SpliceLimits,
        mut sleep: Pin<&mut Sleep>,
        context: &mut Context<'_>,
    ) -> Option<SpliceEnd> {
        let half_closed = splice.read_ended || splice.write_ended;
        let limit = if half_closed { limits.half_closed } else { limits.idle };
        if half_closed && !std::mem::replace(&mut splice.half_closed, true) {
            sleep.as_mut().reset(Instant::now() + limit);
        }
        while sleep.as_mut().poll(context).is_ready() {
            let seen = self.moved();
            if seen == splice.seen {
                return Some(SpliceEnd::Idle);
            }
            splice.seen = seen;
            sleep.as_mut().reset(Instant::now() + limit);
        }
        None
    }

    /// Bytes that have passed, each way.
    fn moved(&self) -> (u64, u64) {
        let state = self.shared.lock();
        let stream = state.streams.get(&self.id);
        stream.map_or((0, 0), |stream| {
            (stream.sent_bytes, stream.received_bytes - stream.untaken().len() as u64)
        })
    }
}

struct Splice {
    read_ended: bool,
    write_ended: bool,
    half_closed: bool,
    /// What had passed when the time was up last.
    seen: (u64, u64),
}

/// Reads at most `most` bytes and gives them to `take`, with whether they are the last.
fn read<T>(
    socket: &TcpStream,
    most: usize,
    context: &mut Context<'_>,
    take: impl FnOnce(&[u8], bool) -> T,
) -> Poll<io::Result<T>> {
    with_scratch(|scratch| {
        loop {
            let room = &mut scratch.incoming[..most];
            match socket.try_read(room) {
                Ok(count) => return Poll::Ready(Ok(take(&room[..count], count == 0))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match socket.poll_read_ready(context) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Ready(Ok(())) => {}
                    }
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    })
}
