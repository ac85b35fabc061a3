//! One client's session.

use crate::connection::{PoolId, ServerId};
use crate::guard::WaitPatience;
use crate::parameters::Tracked;
use crate::seam::ClientAddress;
use crate::statements::ClientStatements;
use overload::Moment;
use overload::line::Ticket;
use pgwire::accept::ClientLogin;
use pgwire::startup::Startup;
use pgwire::{CancelKey, SecretKey};
use std::sync::Arc;

/// The first eight bytes of BackendKeyData, which name a session: what a client shows to cancel its query. Poolers that
/// share clients keep a peer's number in bytes 1 and 2, and how often a key may be passed on in the low bits of byte 7.
pub(crate) type CancelKeyBytes = [u8; 8];

/// A secret of protocol 3.2 has 32 bytes, as PostgreSQL's own: the four that are in [`CancelKeyBytes`], and these.
pub(crate) const LONG_KEY_TAIL_BYTES: usize = 28;

/// A moment that never comes: no timer is armed.
pub(crate) const NEVER: Moment = Moment::from_micros(u64::MAX);

/// A client connection. An idle one owns no buffer.
pub(crate) struct Client {
    pub(crate) state: ClientState,
    /// Set by the login.
    pub(crate) pool: Option<PoolId>,
    /// Whom it has logged in as; its pool may be of another user.
    pub(crate) login_user: Option<Arc<str>>,
    /// Bytes that have come but may not go on yet: requests of a waiter, or the start of a message.
    pub(crate) held: Vec<u8>,
    pub(crate) parameters: Arc<Tracked>,
    /// What it has prepared, where that is kept track of.
    pub(crate) statements: Option<Box<ClientStatements>>,
    /// In which lane its requests wait.
    pub(crate) lane: CachedLane,
    /// Where it began, and what a reset takes it back to.
    pub(crate) start: Arc<Tracked>,
    /// Parameters that it has named and that servers do not list.
    pub(crate) names: Vec<Box<str>>,
    pub(crate) key: CancelKeyBytes,
    /// What its cancel key has behind those bytes, in protocol 3.2.
    pub(crate) key_tail: Option<Box<[u8; LONG_KEY_TAIL_BYTES]>>,
    pub(crate) address: ClientAddress,
    pub(crate) connected_at: Moment,
    pub(crate) request_at: Moment,
    /// How long it waits for a server.
    pub(crate) patience: WaitPatience,
    /// Since when it has not taken what was sent to it.
    pub(crate) blocked_since: Option<Moment>,
    /// Since when the rest of a message is missing while it holds a server.
    pub(crate) partial_since: Option<Moment>,
    /// The earliest moment at which the timers look at this client.
    pub(crate) armed_at: Moment,
    /// Not read because too many replies are owed.
    pub(crate) throttled: bool,
    /// Speaks TLS.
    pub(crate) has_tls: bool,
    /// Not read because its server does not take what it has sent.
    pub(crate) server_full: bool,
}

/// The lane of a client, and the `application_name` that it follows from.
#[derive(Debug, Default)]
pub(crate) struct CachedLane {
    pub(crate) number: u8,
    pub(crate) application_name: Option<Arc<str>>,
    /// False before the first look, and after a reload.
    pub(crate) is_known: bool,
}

/// Where a client stands. Each state owns what is valid only there.
#[derive(Debug)]
pub(crate) enum ClientState {
    /// Has a server; `streaming` bytes of a long message are still to come.
    Active { server: ServerId, streaming: u32 },
    /// Logged in, and waits for the parameters that the pool's first server will report.
    AwaitingWelcome(Ticket),
    /// A cancel request on its way; closed when that has ended.
    Cancelling,
    /// Logged in, and owes nobody anything.
    Idle,
    /// Not logged in yet.
    Login(Box<Login>),
    /// Has a server on which its parameters are being set, with values that no server has taken yet; its request waits
    /// for that, since it must not run with another client's.
    Preparing { server: ServerId },
    /// Bytes that mean nothing any more are thrown away: `discard` of the present message, and what `until` says.
    Skipping { discard: u32, until: Until },
    /// In its pool's waiting line.
    Waiting(Ticket),
}

/// How far a client's bytes are thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// To the end of a refused message; ReadyForQuery follows.
    Answer,
    /// To the end of a message that means nothing here, such as the rest of a COPY that has failed; nothing follows.
    Stray,
    /// To the Sync of a refused batch; ReadyForQuery follows.
    Sync,
}

/// A login under way.
#[derive(Debug)]
pub(crate) enum Login {
    /// A verifier is being derived from the configured password.
    Deriving(Startup),
    /// Nothing but requests for encryption so far; how many have been declined.
    FirstPacket { declined: u8 },
    /// The client has been asked for its password.
    Password { startup: Startup, machine: ClientLogin },
}

impl Client {
    pub(crate) fn new(address: ClientAddress, parameters: Arc<Tracked>, now: Moment) -> Self {
        Self {
            state: ClientState::Login(Box::new(Login::FirstPacket { declined: 0 })),
            pool: None,
            login_user: None,
            held: Vec::new(),
            lane: CachedLane::default(),
            start: parameters.clone(),
            parameters,
            statements: None,
            names: Vec::new(),
            key: [0; 8],
            key_tail: None,
            address,
            connected_at: now,
            request_at: now,
            patience: WaitPatience::default(),
            blocked_since: None,
            partial_since: None,
            armed_at: NEVER,
            throttled: false,
            has_tls: false,
            server_full: false,
        }
    }

    /// The key that it is given.
    pub(crate) fn cancel_key(&self) -> CancelKey {
        let [a, b, c, d, head @ ..] = self.key;
        let process_id = i32::from_be_bytes([a, b, c, d]);
        let secret = match &self.key_tail {
            None => SecretKey::from(head),
            // 32 bytes are a length that the protocol allows.
            Some(tail) => {
                SecretKey::new(&[&head[..], &tail[..]].concat()).unwrap_or_else(|| SecretKey::from(head))
            }
        };
        CancelKey { process_id, secret }
    }

    /// The state's name as SHOW CLIENTS prints it.
    pub(crate) const fn state_name(&self) -> &'static str {
        match self.state {
            ClientState::Active { .. } | ClientState::Preparing { .. } => "active",
            ClientState::AwaitingWelcome(_) | ClientState::Waiting(_) => "waiting",
            ClientState::Cancelling => "active_cancel_req",
            ClientState::Idle | ClientState::Skipping { .. } => "idle",
            ClientState::Login(_) => "login",
        }
    }
}
