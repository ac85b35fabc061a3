//! What the relay sends.

use super::state::State;
use super::{Phase, Shared};
use crate::connect::{protocol, refused};
use crate::error::{LinkError, OpenError};
use ::link::message::{Drain, Moved, Open, Opened, Refuse, Reset, decode_credit};
use ::link::seal::TAG_BYTES;
use ::link::{Code, HEADER_BYTES, Header, Kind, SendCredit, write_frame};
use overload::Moment;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// DATA frames of one stream that came one behind the other, opened and moved together in the buffer.
struct Run {
    stream: u32,
    plain: Range<usize>,
}

impl State {
    /// Handles all whole frames of `plain`, and keeps the rest.
    pub(super) fn handle(
        &mut self,
        shared: &Arc<Shared>,
        plain: &mut [u8],
        now: Moment,
    ) -> Result<(), LinkError> {
        let mut at = 0;
        let mut run: Option<Run> = None;
        while let Some(header) = Header::parse(&plain[at..]).map_err(protocol)? {
            let body = at + HEADER_BYTES..at + HEADER_BYTES + header.length;
            if body.end > plain.len() {
                break;
            }
            at = body.end;
            if header.kind == Some(Kind::Data) {
                run = self.data(header.stream, plain, body, run, now);
                continue;
            }
            self.finish_run(run.take(), plain, now);
            if let Some(kind) = header.kind {
                self.control(shared, kind, header.stream, &plain[body], now)?;
            }
        }
        self.finish_run(run, plain, now);
        // Most reads end with a frame: then nothing is owned.
        self.partial = plain[at..].to_vec();
        Ok(())
    }

    /// Opens the DATA that stands at `body`, and adds it to the run, which is passed on first if it is of another stream.
    fn data(
        &mut self,
        id: u32,
        plain: &mut [u8],
        body: Range<usize>,
        run: Option<Run>,
        now: Moment,
    ) -> Option<Run> {
        let run = match run {
            Some(run) if run.stream == id => Some(run),
            other => {
                self.finish_run(other, plain, now);
                None
            }
        };
        // A stream that is over here may be told more; that is nobody's fault.
        let stream = self.streams.get_mut(&id).filter(|stream| stream.reset.is_none())?;
        let Some(unsealer) = &mut stream.unsealer else {
            self.reset(id, Code::ProtocolError);
            return None;
        };
        let start = body.start;
        let length = match unsealer.open(&mut plain[body.clone()]) {
            Ok(_) if stream.peer_ended => Err(Code::ProtocolError),
            Ok([]) => {
                stream.peer_ended = true;
                Ok(0)
            }
            Ok(opened) => match stream.receive_credit.receive(opened.len() + TAG_BYTES) {
                Ok(()) => Ok(opened.len()),
                Err(_) => Err(Code::FlowControl),
            },
            Err(_) => Err(Code::SealInvalid),
        };
        match length {
            Err(code) => {
                self.reset(id, code);
                None
            }
            Ok(0) => run,
            Ok(length) => {
                stream.received_bytes += length as u64;
                stream.meter.carried(length, || now);
                if let Some(counter) = &stream.counter {
                    counter.carried(length as u64);
                }
                stream.consumed(id, TAG_BYTES, now, &mut self.sharing, self.out.frames());
                Some(match run {
                    Some(run) => {
                        let end = run.plain.end;
                        plain.copy_within(start..start + length, end);
                        Run { stream: id, plain: run.plain.start..end + length }
                    }
                    None => Run { stream: id, plain: start..start + length },
                })
            }
        }
    }

    /// Passes a run on: to the stream's socket as far as that takes it, else into its buffer.
    fn finish_run(&mut self, run: Option<Run>, plain: &[u8], now: Moment) {
        let Some(Run { stream: id, plain: range }) = run else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let mut bytes = &plain[range];
        if stream.received.is_empty()
            && let Some(sink) = &stream.sink
        {
            match sink.try_write(bytes) {
                Ok(count) => {
                    bytes = &bytes[count..];
                    stream.consumed(id, count, now, &mut self.sharing, self.out.frames());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The stream's own task meets the same error, and ends it.
                Err(_) => {}
            }
        }
        stream.received.extend_from_slice(bytes);
        if !bytes.is_empty() {
            stream.wake_reader();
        }
    }

    fn control(
        &mut self,
        shared: &Arc<Shared>,
        kind: Kind,
        id: u32,
        payload: &[u8],
        now: Moment,
    ) -> Result<(), LinkError> {
        match kind {
            // A relay that asks without taking the answers gets none: any byte is a sign of life.
            Kind::Ping if self.out.is_full() => {}
            Kind::Ping => {
                write_frame(self.out.frames(), Kind::Pong, 0, |out| {
                    out.extend_from_slice(payload.get(..8).unwrap_or_default());
                });
            }
            Kind::Pong => {
                self.round_trip = self.ping_sent_at.take().map(|sent| now.since(sent)).or(self.round_trip);
            }
            Kind::Refuse if id == 0 => return Err(refused(Refuse::decode(payload).map_err(protocol)?)),
            Kind::Drain => self.drain(shared, Drain::decode(payload).map_err(protocol)?),
            Kind::Open => {
                if self.streams.contains_key(&id) || id == 0 {
                    return Err(LinkError::Protocol("a stream's number was used again".into()));
                }
                if self.out.is_flooded() {
                    return Err(LinkError::Protocol("the relay opens streams and takes no answers".into()));
                }
                let open = Open::decode(payload).map_err(protocol)?;
                self.take_in(shared, id, &open);
            }
            Kind::Opened => self.opened(id, &Opened::decode(payload).map_err(protocol)?),
            Kind::Refuse => self.open_refused(id, Refuse::decode(payload).map_err(protocol)?),
            Kind::Moved => self.moved(id, &Moved::decode(payload).map_err(protocol)?),
            Kind::Credit => {
                let bytes = decode_credit(payload).map_err(protocol)?;
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.send_credit.grant(bytes);
                    stream.wake_writer();
                }
            }
            Kind::Fin => self.fin(id),
            Kind::Reset => {
                let reset = Reset::decode(payload).map_err(protocol)?;
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.end(reset.code);
                }
            }
            Kind::Hello
            | Kind::Welcome
            | Kind::Contract
            | Kind::Data
            | Kind::Peer
            | Kind::Peered
            | Kind::Presence
            | Kind::Standing => {
                return Err(LinkError::Protocol(format!("{kind:?} came where it may not").into()));
            }
        }
        Ok(())
    }

    fn drain(&mut self, shared: &Shared, drain: Drain) {
        let ms = |ms: u32| Duration::from_millis(u64::from(ms));
        shared.phase.send_replace(Phase::Draining {
            deadline: ms(drain.deadline_ms),
            spread: ms(drain.spread_ms),
            addresses: drain.addresses,
        });
    }

    /// The provider has answered.
    fn opened(&mut self, id: u32, opened: &Opened<'_>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some((initiator, verdict)) = stream.opening.take() else {
            return self.reset(id, Code::ProtocolError);
        };
        match initiator.finish(opened.seal) {
            Ok((answer, sealer, unsealer)) => {
                stream.sealer = Some(sealer);
                stream.unsealer = Some(unsealer);
                stream.send_credit = SendCredit::new(opened.window_bytes);
                // Whoever asked may have left; then the stream goes with its handle.
                drop(verdict.send(Ok(answer)));
            }
            Err(error) => {
                drop(verdict.send(Err(OpenError::refused(Code::SealInvalid, error.to_string()))));
                self.reset(id, Code::SealInvalid);
            }
        }
    }

    fn open_refused(&mut self, id: u32, refuse: Refuse<'_>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some((_, verdict)) = stream.opening.take() {
            let Refuse { code, cause, retry_after } = refuse;
            drop(verdict.send(Err(OpenError::Refused { code, cause: cause.into_owned(), retry_after })));
        }
        if matches!(refuse.code, Code::ContractInvalid | Code::ContractSpent) {
            // The relay may have forgotten it: it is shown again.
            self.shown.clear();
        }
        stream.end(refuse.code);
    }

    fn moved(&mut self, id: u32, moved: &Moved<'_>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some((_, verdict)) = stream.opening.take() {
            let address = moved.address.to_owned();
            drop(verdict.send(Err(OpenError::Moved { address, epoch: moved.epoch })));
        }
        stream.end(Code::ProviderGone);
    }

    fn fin(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.fin_received = true;
        if stream.peer_ended {
            stream.wake_reader();
        } else {
            // Whoever leaves out the sealed end has cut the stream.
            stream.end(Code::Cancelled);
        }
    }
}
