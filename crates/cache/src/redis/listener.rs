//! Listens to one channel, on a connection of its own, for as long as somebody wants its hints.
//!
//! In a Cluster the channel is a sharded one and belongs to a slot. When that moves, the server ends the subscription by
//! itself, and says so once. The listener then asks again where it is, is told where the slot went, and goes there. Whether the
//! subscription still stands is asked every [`check`](Listener::check) as well, by subscribing again: a server that has moved
//! or has lost its memory cannot keep a listener deaf for longer. Each confirmation that follows a loss is a hint: what was
//! published meanwhile nobody has heard.

use std::sync::Arc;
use std::time::Duration;

use overload::Backoff;
use redis::cmd;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Counters;
use super::connect::{CONNECT_LIMIT, ConnectError, Connector, Io};
use super::topology::{Topology, elsewhere};
use crate::frame::{Frame, Malformed, decode};
use crate::hints::hint;
use crate::slot::slot_of;

/// The first and the greatest wait after a loss.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const GREATEST_WAIT: Duration = Duration::from_secs(2);

/// A subscription is confirmed within this time, or the connection is given up.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Redirections in a row that are followed without a pause.
const HOPS: u32 = 4;

pub(super) struct Listener {
    pub(super) topology: Topology,
    pub(super) connector: Arc<Connector>,
    pub(super) channel: String,
    pub(super) check: Duration,
    pub(super) heard: watch::Sender<u64>,
    pub(super) counters: Arc<Counters>,
}

/// Why a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
enum Loss {
    #[error("the channel moved to {0}")]
    Moved(String),
    #[error("{0}")]
    Connect(#[from] ConnectError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("the server refused: {0}")]
    Refused(String),
    #[error("the server does not answer")]
    Silent,
}

impl Listener {
    pub(super) async fn run(self) {
        let slot = slot_of(self.channel.as_bytes());
        let mut backoff = Backoff::new();
        let mut hops = 0;
        let mut last_cause = String::new();
        loop {
            let Ok(address) = self.topology.owner(slot, Instant::now() + CONNECT_LIMIT).await else {
                sleep(backoff.failed(FIRST_WAIT, GREATEST_WAIT, fastrand::u64(..))).await;
                continue;
            };
            let mut stood = false;
            let loss = match self.listen(&address, &mut stood).await {
                Ok(never) => match never {},
                Err(loss) => loss,
            };
            if stood {
                backoff.reset();
                last_cause.clear();
                // One that stands and sends away at once, again and again, is not followed for ever.
                if !matches!(loss, Loss::Moved(_)) {
                    hops = 0;
                }
            }
            if let Loss::Moved(to) = &loss {
                self.topology.moved(slot, to);
                hops += 1;
                if hops <= HOPS {
                    continue;
                }
            }
            self.topology.doubt();
            let cause = loss.to_string();
            if cause != last_cause {
                tracing::info!(channel = self.channel, node = address, "hints are not heard: {cause}");
                last_cause = cause;
            }
            sleep(backoff.failed(FIRST_WAIT, GREATEST_WAIT, fastrand::u64(..))).await;
        }
    }

    /// Listens at one server until that is over. `stood` becomes true with the first confirmation.
    async fn listen(&self, address: &str, stood: &mut bool) -> Result<std::convert::Infallible, Loss> {
        let (reader, mut writer) = tokio::io::split(self.connector.stream(address).await?);
        let mut frames = Frames { reader, buffer: Vec::new() };
        writer.write_all(&self.connector.hello().get_packed_command()).await?;
        // Whether hints arrive here now, and when the answer to what was asked last is due.
        let mut subscribed = false;
        let mut answer_by = Some(self.ask(&mut writer).await?);
        let mut check_at = Instant::now() + self.check;
        loop {
            let frame = tokio::select! {
                frame = frames.next() => frame?,
                () = sleep_until(answer_by.unwrap_or(check_at)) => {
                    if answer_by.is_some() {
                        return Err(Loss::Silent);
                    }
                    answer_by = Some(self.ask(&mut writer).await?);
                    continue;
                }
            };
            match frame {
                Frame::Push(parts) if parts.get(1).is_some_and(|name| *name == self.channel.as_bytes()) => {
                    match parts[0].as_slice() {
                        b"ssubscribe" | b"subscribe" => {
                            answer_by = None;
                            check_at = Instant::now() + self.check.mul_f32(0.75 + fastrand::f32() / 4.0);
                            if !subscribed {
                                (subscribed, *stood) = (true, true);
                                Counters::add(&self.counters.subscribed);
                                hint(&self.heard);
                            }
                        }
                        b"smessage" | b"message" => {
                            Counters::add(&self.counters.hints);
                            hint(&self.heard);
                        }
                        b"sunsubscribe" | b"unsubscribe" => {
                            // Nobody here asked for that: the slot has moved. The answer to this says where.
                            subscribed = false;
                            Counters::add(&self.counters.moved);
                            self.topology.doubt();
                            answer_by = Some(self.ask(&mut writer).await?);
                        }
                        _ => {}
                    }
                }
                Frame::Error(text) => {
                    let mut words = text.split(' ');
                    return Err(match (words.next(), words.nth(1)) {
                        (Some("MOVED"), Some(to)) => Loss::Moved(elsewhere(to, address)),
                        (code, _) => Loss::Refused(code.unwrap_or_default().to_owned()),
                    });
                }
                Frame::Push(_) | Frame::Other => {}
            }
        }
    }

    /// Subscribes, be it for the first time or to hear whether that still stands; returns until when the answer is due.
    async fn ask(&self, writer: &mut WriteHalf<Box<dyn Io>>) -> Result<Instant, Loss> {
        let name = if self.topology.is_cluster() { "SSUBSCRIBE" } else { "SUBSCRIBE" };
        let command = cmd(name).arg(&self.channel).get_packed_command();
        let until = Instant::now() + ANSWER_LIMIT;
        match tokio::time::timeout_at(until, writer.write_all(&command)).await {
            Ok(written) => written?,
            Err(_) => return Err(Loss::Silent),
        }
        Ok(until)
    }
}

/// Frames of a stream. Dropping the future of [`Self::next`] loses nothing.
struct Frames<R> {
    reader: R,
    buffer: Vec<u8>,
}

impl Frames<ReadHalf<Box<dyn Io>>> {
    async fn next(&mut self) -> Result<Frame, Loss> {
        next_frame(&mut self.reader, &mut self.buffer).await
    }
}

async fn next_frame<R: AsyncRead + Unpin>(reader: &mut R, buffer: &mut Vec<u8>) -> Result<Frame, Loss> {
    loop {
        if let Some((frame, length)) = decode(buffer)? {
            buffer.drain(..length);
            return Ok(frame);
        }
        if reader.read_buf(buffer).await? == 0 {
            return Err(Loss::Io(std::io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

#[cfg(test)]
mod tests;
