//! One server connection.

use crate::client::NEVER;
use crate::close_cause::CloseCause;
use crate::connection::{ClientId, PoolId};
use crate::parameters::Tracked;
use crate::pool::AddressIndex;
use crate::seam::{OpenedServer, Target};
use crate::statements::{Again, ClientStatements, ServerStatements};
use crate::watch::{Found, Inquiry, Watch};
use overload::Moment;
use pgwire::message::ErrorFields;
use pgwire::replies::{Origin, ReplyQueue, Settled, Simulated};
use std::net::SocketAddr;
use std::sync::Arc;

/// A server connection that has logged in.
pub(crate) struct Server {
    pub(crate) pool: PoolId,
    /// Where it was opened and as whom, whatever a reload makes of its pool.
    pub(crate) origin: ServerOrigin,
    pub(crate) state: ServerState,
    pub(crate) replies: ReplyQueue,
    /// Whether clients' prepared statements are kept track of: as the pool's rules were when it was opened. When they
    /// change, it is replaced.
    pub(crate) translates_statements: bool,
    /// What clients have prepared here.
    pub(crate) statements: ServerStatements,
    /// The request that it works on, if it may be repeated.
    pub(crate) again: Again,
    /// The start of a message that cannot be judged yet.
    pub(crate) held: Vec<u8>,
    /// Bytes to come of a message that has been judged.
    pub(crate) rest: u64,
    /// Whether those bytes belong to the client.
    pub(crate) rest_forwarded: bool,
    pub(crate) process_id: i32,
    pub(crate) secret_key: Vec<u8>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) parameters: Arc<Tracked>,
    /// What it reports of itself while nobody has set anything.
    pub(crate) start: Arc<Tracked>,
    /// Queries of our own under way that set its client's parameters.
    pub(crate) settings_owed: u8,
    /// What its client may have left in the session.
    pub(crate) watch: Watch,
    /// The question under way about that.
    pub(crate) probe: Option<Box<Probe>>,
    /// It stays with its client, and counts as such in its pool.
    pub(crate) pinned: bool,
    pub(crate) opened_at: Moment,
    /// Its own place in the last tenth of `server_lifetime`, of 65,536.
    pub(crate) lifetime_share: u16,
    /// When its lifetime is over.
    pub(crate) old_at: Moment,
    /// Last time that it was given to a client or came back.
    pub(crate) used_at: Moment,
    /// When the query that it works on was sent.
    pub(crate) query_at: Moment,
    /// When its present client got it.
    pub(crate) assigned_at: Moment,
    /// When its present transaction began.
    pub(crate) transaction_at: Moment,
    /// The lane of its present or last client.
    pub(crate) lane: u8,
    /// The present client came from the waiting line.
    pub(crate) from_line: bool,
    /// Some client has had it.
    pub(crate) served: bool,
    /// Cancel requests that may still arrive.
    pub(crate) cancels: u32,
    /// A cancel request was sent since the last round trip of our own: it may hit whatever runs next.
    pub(crate) tainted: bool,
    /// To be closed when it is free.
    pub(crate) close_needed: Option<CloseCause>,
    /// The server has said why it is about to close.
    pub(crate) said_fatal: bool,
    /// The error that answered a query of our own.
    pub(crate) own_error: Option<ErrorFields>,
    pub(crate) armed_at: Moment,
}

/// Where a connection goes, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct ServerOrigin {
    pub(crate) address: AddressIndex,
    pub(crate) target: Arc<Target>,
}

/// What a session holds is being asked.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) inquiry: Inquiry,
    pub(crate) found: Found,
    /// The query, in case that a cancel request hits it.
    pub(crate) query: Vec<u8>,
    pub(crate) retries: u8,
}

/// Where a server stands.
#[derive(Debug)]
pub(crate) enum ServerState {
    /// A client has it.
    Active(ClientId),
    /// Nobody has it, and nobody may until it is clean again.
    Cleaning(Cleaning),
    /// We have said goodbye and wait for its end: until then its backend may live and counts.
    Closing {
        /// When it is given up.
        until: Moment,
    },
    /// Ready for use.
    Idle,
}

/// The way back to use after a client has left, or after a cancel request.
#[derive(Debug)]
pub(crate) struct Cleaning {
    pub(crate) step: CleaningStep,
    /// Bytes thrown away.
    pub(crate) drained: u64,
    /// Longest time for it; none if the query may finish by itself.
    pub(crate) deadline: Option<Moment>,
    /// The session may hold something of the client that left: reset it.
    pub(crate) thorough: bool,
    /// It only rested for long, and is expected back within a round trip: no login is started in its place.
    pub(crate) is_test: bool,
    /// It is what `server_reset_query_always` asks for.
    pub(crate) after_transaction: bool,
    /// Round trips that were hit by a cancel request.
    pub(crate) retries: u8,
    /// The reset that is under way takes all parameters back to the server's own.
    pub(crate) resets_all: bool,
}

impl Cleaning {
    /// Begins with what is still owed; a plain round trip follows.
    pub(crate) const fn until(deadline: Option<Moment>) -> Self {
        Self {
            step: CleaningStep::Draining,
            drained: 0,
            deadline,
            thorough: false,
            is_test: false,
            after_transaction: false,
            retries: 0,
            resets_all: false,
        }
    }
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CleaningStep {
    /// The rest of the abandoned answer, and the end of the cancel request.
    Draining,
    /// The answer to our own round trip.
    RoundTrip,
}

impl Server {
    pub(crate) fn new(
        pool: PoolId,
        origin: ServerOrigin,
        opened: &OpenedServer,
        parameters: Arc<Tracked>,
        now: Moment,
    ) -> Self {
        Self {
            pool,
            origin,
            state: ServerState::Idle,
            replies: ReplyQueue::new(),
            translates_statements: false,
            statements: ServerStatements::default(),
            again: Again::default(),
            held: Vec::new(),
            rest: 0,
            rest_forwarded: false,
            process_id: opened.process_id,
            secret_key: opened.secret_key.clone(),
            peer: opened.peer,
            start: parameters.clone(),
            parameters,
            settings_owed: 0,
            watch: Watch::default(),
            probe: None,
            pinned: false,
            opened_at: now,
            lifetime_share: 0,
            old_at: NEVER,
            used_at: now,
            query_at: now,
            assigned_at: now,
            transaction_at: now,
            lane: 0,
            from_line: false,
            served: false,
            cancels: 0,
            tainted: false,
            close_needed: None,
            said_fatal: false,
            own_error: None,
            armed_at: NEVER,
        }
    }

    /// True if nothing is owed, no transaction is open, and no message is under way to its client.
    #[inline]
    pub(crate) fn is_at_rest(&self) -> bool {
        self.replies.is_settled() && self.rest == 0
    }

    /// A simple query of the pooler's own goes out; it drops the unnamed statement. To be called while hardly anything is
    /// owed, so that there is room.
    pub(crate) fn note_own_query(&mut self) {
        let _ = self.replies.sent(b'Q', Origin::Pooler);
        self.statements.note_query();
    }

    /// An answer of the pooler's own whose turn has come; what it means for names takes effect.
    #[inline]
    pub(crate) fn take_simulated(
        &mut self,
        client: Option<(ClientId, &mut Option<Box<ClientStatements>>)>,
    ) -> Option<Simulated> {
        let answer = self.replies.take_simulated()?;
        let settled = self.replies.take_settled();
        self.settle_statements(settled, client);
        Some(answer)
    }

    /// What has become of messages that change names takes effect.
    pub(crate) fn settle_statements(
        &mut self,
        settled: Settled,
        client: Option<(ClientId, &mut Option<Box<ClientStatements>>)>,
    ) {
        let client = client.and_then(|(id, statements)| Some((id, statements.as_deref_mut()?)));
        if !self.statements.settle(settled, client) {
            // What must have failed did not: the server holds something else than is believed.
            self.close_needed = Some(CloseCause::Desync);
        }
    }

    /// The state's name as SHOW SERVERS prints it.
    pub(crate) fn state_name(&self) -> &'static str {
        match &self.state {
            ServerState::Active(_) => "active",
            ServerState::Cleaning(_) if self.cancels > 0 => "being_canceled",
            ServerState::Cleaning(cleaning) => match cleaning.step {
                CleaningStep::Draining => "used",
                CleaningStep::RoundTrip => "tested",
            },
            ServerState::Closing { .. } => "closing",
            ServerState::Idle => "idle",
        }
    }
}
