//! The task that reads, keeps time, and ends a link.

use super::{Phase, Shared, with_scratch};
use crate::error::LinkError;
use ::link::{Beat, Code, WRITE_LIMIT};
use overload::Moment;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What is still to be said when a link ends may take this long.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);
/// Receives of one turn, so that the other tasks of the thread come to their turn.
const MAX_RECEIVES: usize = 4;

pub(super) async fn run(shared: Arc<Shared>) {
    let error = match turn_by_turn(&shared).await {
        Ok(error) | Err(error) => error,
    };
    let streams: Vec<_> = {
        let mut state = shared.lock();
        state.ending.get_or_insert_with(|| error.clone());
        for stream in state.streams.values_mut() {
            // The link is at fault, not the provider.
            if let Some((_, verdict)) = stream.opening.take() {
                drop(verdict.send(Err(error.clone().into())));
            }
            stream.end(Code::ProviderGone);
        }
        state.out.wake_all();
        state.streams.keys().copied().collect()
    };
    tracing::debug!(%error, streams = streams.len(), "link ended");
    farewell(&shared).await;
    shared.phase.send_replace(Phase::Ended(error));
}

/// Until the link is to end in good order (`Ok`) or has broken.
async fn turn_by_turn(shared: &Arc<Shared>) -> Result<LinkError, LinkError> {
    // Frames may have come behind the WELCOME.
    let mut rest = std::mem::take(&mut shared.lock().partial);
    shared.lock().handle(shared, &mut rest, shared.clock.now())?;
    let mut blocked_since: Option<Moment> = None;
    loop {
        let (blocked, waited_for, rests, wake_at) = {
            let mut state = shared.lock();
            if state.unwanted && state.streams.is_empty() {
                state.close(Code::Leaving, LinkError::Closed);
            }
            let moved = state.send(&shared.socket)?;
            if let Some(ending) = &state.ending {
                return Ok(ending.clone());
            }
            let (blocked, waited_for) = (state.out.is_blocked(), state.out.is_waited_for());
            let now = shared.clock.now();
            if moved || !blocked {
                blocked_since = blocked.then_some(now);
            }
            let wake_at = match state.heartbeat.tick(now) {
                Beat::Wait(until) => until,
                Beat::Ping => {
                    state.ping(now);
                    continue;
                }
                Beat::GiveUp => return Err(LinkError::Silent(state.heartbeat.silent_for(now))),
            };
            let rests_until = shared.meter.rests_until(now);
            if rests_until.is_none() {
                state.resting.wake_all();
            }
            let wake_at = rests_until.map_or(wake_at, |until| wake_at.min(until));
            match blocked_since {
                Some(since) if now.since(since) >= WRITE_LIMIT => return Err(LinkError::Silent(WRITE_LIMIT)),
                Some(since) => (blocked, waited_for, rests_until.is_some(), wake_at.min(since + WRITE_LIMIT)),
                None => (blocked, waited_for, rests_until.is_some(), wake_at),
            }
        };
        tokio::select! {
            ready = shared.socket.readable(), if !rests => {
                ready.map_err(|error| LinkError::io("receiving", error))?;
                receive(shared)?;
            }
            ready = shared.socket.writable(), if blocked => {
                ready.map_err(|error| LinkError::io("sending", error))?;
            }
            () = shared.poke.notified() => {}
            // Behind those who were woken.
            () = tokio::task::yield_now(), if waited_for => {}
            () = tokio::time::sleep_until(shared.clock.instant(wake_at)) => {}
        }
    }
}

/// Takes what the socket has, a bounded number of times.
fn receive(shared: &Arc<Shared>) -> Result<(), LinkError> {
    for _ in 0..MAX_RECEIVES {
        let more = with_scratch(|scratch| {
            let mut guard = shared.lock();
            let state = &mut *guard;
            let pending = state.tls.take_pending(&mut scratch.incoming);
            let room = &mut scratch.incoming[pending..];
            let full = room.len();
            let received = shared.socket.try_read(room);
            let count = match received {
                Ok(0) => return Err(LinkError::io("receiving", io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    state.tls.set_pending(scratch.incoming[..pending].to_vec());
                    return Ok(false);
                }
                Err(error) => return Err(LinkError::io("receiving", error)),
            };
            let now = shared.clock.now();
            state.heartbeat.heard(now);
            scratch.plain.clear();
            scratch.plain.append(&mut state.partial);
            let start = scratch.plain.len();
            let incoming = &mut scratch.incoming[..pending + count];
            let opened = state.tls.process(incoming, &mut scratch.plain, state.out.sealed());
            opened.map_err(|error| LinkError::Tls(error.to_string()))?;
            let closed = state.unwrap(&mut scratch.plain, start)?;
            state.handle(shared, &mut scratch.plain, now)?;
            if closed || state.tls.peer_closed() {
                return Err(LinkError::io("receiving", io::ErrorKind::UnexpectedEof.into()));
            }
            state.flush(shared);
            // A short read has emptied the socket.
            Ok(count == full && shared.meter.rests_until(now).is_none())
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}

/// Sends what is still to be said, if the socket takes it.
async fn farewell(shared: &Shared) {
    shared.lock().close_websocket();
    let saying = async {
        loop {
            {
                let mut state = shared.lock();
                let sent = state.send(&shared.socket);
                if sent.is_err() || !state.out.is_blocked() {
                    return;
                }
            }
            if shared.socket.writable().await.is_err() {
                return;
            }
        }
    };
    // The peer may be gone: then nothing is lost.
    drop(tokio::time::timeout(FAREWELL_LIMIT, saying).await);
    // A socket that is gone already needs no end.
    let _ = rustix::net::shutdown(&shared.socket, rustix::net::Shutdown::Write);
}
