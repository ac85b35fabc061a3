//! What a connection owns, borrowed while a frame is handled.

use crate::contracts::Contract;
use link::{Heartbeat, SendCredit};
use overload::Moment;
use std::collections::HashMap;
use std::rc::Rc;
use tls::{Outbox, TlsSession};

use super::Connection;

#[derive(Debug)]
pub(crate) struct Inside {
    pub tls: TlsSession,
    /// The start of a frame whose rest has not come.
    pub partial: Vec<u8>,
    pub out: Outbox,
    /// What the hub's count knows of `out`.
    pub counted: usize,
    pub routes: HashMap<u32, Route>,
    /// The number of the next stream that the relay opens here, or the greatest that the client has used.
    pub last_stream: u32,
    pub heartbeat: Heartbeat,
    pub blocked_since: Option<Moment>,
    /// Streams of which credit is held back, each once.
    pub holding: Vec<u32>,
}

/// One end of a stream.
#[derive(Debug)]
pub(crate) struct Route {
    /// The other end.
    pub peer: Rc<Connection>,
    pub peer_stream: u32,
    pub contract: Rc<Contract>,
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
}
