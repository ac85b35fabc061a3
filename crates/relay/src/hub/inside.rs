//! What a connection owns, borrowed while a frame is handled.

use crate::contracts::Contract;
use link::websocket::{self, Reader};
use link::{Heartbeat, SendCredit};
use overload::Moment;
use std::collections::HashMap;
use std::rc::Rc;
use tls::{Outbox, TlsSession};

use super::Connection;
use super::connection::End;

#[derive(Debug)]
pub(crate) struct Inside {
    pub tls: TlsSession,
    /// The frames are inside a WebSocket.
    pub websocket: Option<Box<Reader>>,
    /// The start of a frame whose rest has not come.
    pub partial: Vec<u8>,
    pub out: Outbox,
    /// What the hub's count knows of `out`.
    pub counted: usize,
    pub routes: HashMap<u32, Route>,
    /// The number of the last stream that the relay has opened here, or the greatest that the client has used.
    pub last_stream: u32,
    pub heartbeat: Heartbeat,
    pub blocked_since: Option<Moment>,
    /// Streams of which credit is held back, each once.
    pub holding: Vec<u32>,
}

impl Inside {
    pub(super) fn new(tls: TlsSession, rest: Vec<u8>, heartbeat: Heartbeat) -> Self {
        Self {
            tls,
            websocket: None,
            partial: rest,
            out: Outbox::default(),
            counted: 0,
            routes: HashMap::new(),
            last_stream: 0,
            heartbeat,
            blocked_since: None,
            holding: Vec::new(),
        }
    }

    /// Takes what stands in `plain` from `start` on out of the WebSocket, if it is in one; whether the client has closed that.
    pub(super) fn unwrap(&mut self, plain: &mut Vec<u8>, start: usize) -> Result<bool, End> {
        let Some(websocket) = &mut self.websocket else { return Ok(false) };
        let mut reply = Vec::new();
        websocket.read(plain, start, &mut reply).map_err(|_| End::Broken("websocket"))?;
        if !reply.is_empty() {
            let answered = self.out.seal_unwrapped(&mut self.tls, &reply);
            answered.map_err(|_| End::Broken("tls"))?;
        }
        Ok(websocket.is_closed())
    }

    /// What is said to a WebSocket at its end.
    pub(super) fn close(&mut self) {
        if self.websocket.is_some() {
            let mut farewell = Vec::new();
            websocket::close(websocket::End::Server, &mut farewell);
            // A connection that cannot encrypt says nothing.
            let _ = self.out.seal_unwrapped(&mut self.tls, &farewell);
        }
    }
}

/// One end of a stream.
#[derive(Debug)]
pub(crate) struct Route {
    /// The other end.
    pub peer: Rc<Connection>,
    pub peer_stream: u32,
    /// This is the end that carries the stream: it, or a relay behind it, is the provider.
    pub answers: bool,
    /// What pays; nothing if the stream comes from another relay, which counts it.
    pub contract: Option<Rc<Contract>>,
    /// The provider has not answered yet.
    pub opening: bool,
    /// What this end may still send.
    pub credit: SendCredit,
    /// What this end has granted, and was not passed on.
    pub held_credit: u32,
    /// What this end was granted, and has not been told.
    pub owed_credit: u32,
    /// The sealed end has come from here, and FIN.
    pub ended: bool,
    pub fin: bool,
    /// Frames of this end that wait for a block of bytes to be paid from, and since when.
    pub parked: Vec<u8>,
    pub parked_since: Moment,
}
