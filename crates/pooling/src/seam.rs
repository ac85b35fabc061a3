//! The seam between the rules and whatever moves the bytes.
//!
//! The driver calls the entry points of [`crate::Engine`] with bytes and moments; the engine answers through
//! [`Transport`]. Nothing here names a socket, so the same rules run under epoll, under io_uring, and in virtual time.

use crate::connection::{ClientId, ConnectionId, PoolId};
use budget::{Look, Order};
use locks::{Action, Ours, PileUp, Policy};
use overload::cause::Cause;
use pgwire::scram::{ChannelBinding, ScramKeys, Verifier};
use settings::pooler::{Secret, ServerAddress};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Whether everything that was sent has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Some bytes are kept until the peer takes them; `Engine::on_flushed` follows.
    Blocked,
    /// All bytes have been taken.
    Flushed,
}

/// What the engine asks of its driver. No call may re-enter the engine.
pub trait Transport {
    /// Sends the parts as one write, at once as far as the peer takes them; the rest is kept and flushed later.
    /// A connection that has failed swallows the bytes: the driver reports its end by `Engine::on_end`.
    fn send(&mut self, to: ConnectionId, parts: &[&[u8]]) -> Flow;

    /// Stops or resumes the delivery of bytes. While stopped, the driver still reports `Engine::on_hangup`.
    /// A connection starts with reading on.
    fn set_reading(&mut self, of: ConnectionId, on: bool);

    /// Tells the peer that nothing more will be sent, after what is kept has left.
    fn shut_down_write(&mut self, of: ConnectionId);

    /// Forgets the connection. What is kept is flushed first, within a bounded time; the identity is free at once.
    fn close(&mut self, of: ConnectionId);

    /// Unpredictable bytes.
    fn random(&mut self) -> [u8; 32];

    /// Opens a server connection and logs in; `Engine::on_server_opened` or `on_server_failed` answers, once.
    fn open_server(&mut self, request: OpenServer);

    /// Sends a cancel request on a connection of its own; `Engine::on_cancel_ended` answers, once.
    fn cancel_query(&mut self, request: CancelQuery);

    /// Looks at a server's locks, and does what the policy says; `Engine::on_locks_seen` answers, once.
    fn look_at_locks(&mut self, request: LookAtLocks);

    /// Has an order carried out by the control connection of a server's budget; `Engine::on_budget` answers an order, once.
    fn ask_budget(&mut self, request: BudgetRequest);

    /// Derives a SCRAM verifier from a password, which costs milliseconds; `Engine::on_verifier` answers, once.
    fn derive_verifier(&mut self, request: DeriveVerifier);

    /// Starts TLS with a client, after what has been sent to it: every byte from now on is encrypted, also while this side
    /// only ever sees it plain. `begun` is what has come of the handshake already, without a request before it: then the
    /// client has to name PostgreSQL's protocol in it (ALPN). `Engine::on_broken` follows if it fails.
    fn start_tls(&mut self, client: ClientId, begun: &[u8]);

    /// What binds a login to the client's TLS connection; none without TLS, or where its certificate allows none.
    fn channel_binding(&mut self, client: ClientId) -> Option<ChannelBinding>;

    /// Version and suite of the client's TLS, for logs; empty without.
    fn describe_tls(&mut self, client: ClientId) -> String;

    /// Takes a logged-in connection out of the data plane and gives it to the console.
    fn hand_to_console(&mut self, client: ClientId, login: ConsoleLogin);
}

/// Identifies one attempt to open a server connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub u64);

/// Where and as whom a pool's servers are opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where the server listens.
    pub address: ServerAddress,
    /// Database name on the server.
    pub database: String,
    /// User on the server.
    pub user: String,
    /// What proves that user, if anything does.
    pub secret: ServerSecret,
    /// Start-up parameters beside user and database.
    pub parameters: Vec<(String, String)>,
    /// Run once on each new connection.
    pub connect_query: Option<String>,
}

/// What the pooler can prove to a server. `Debug` shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSecret {
    /// From the configuration.
    Configured(Secret),
    /// Learnt from a client's own SCRAM login, where both sides keep the same verifier.
    Learnt(ScramKeys),
    /// Nothing: only a server that trusts us will do.
    None,
}

/// Asks for a server connection.
#[derive(Clone, Debug)]
pub struct OpenServer {
    /// Names the attempt in the answer.
    pub attempt: AttemptId,
    /// For whom it is, for logs.
    pub pool: PoolId,
    /// Where and as whom.
    pub target: Arc<Target>,
    /// Longest time for connect, login and `connect_query` together.
    pub limit: Duration,
}

/// A server connection that has logged in and reported that it is ready.
#[derive(Clone)]
pub struct OpenedServer {
    /// Process id of the backend, for cancel requests.
    pub process_id: i32,
    /// Secret of the backend, for cancel requests.
    pub secret_key: Vec<u8>,
    /// Every ParameterStatus of the login.
    pub parameters: Vec<(String, String)>,
    /// Bytes that came after ReadyForQuery.
    pub leftover: Vec<u8>,
    /// Where it really went, for the console.
    pub peer: Option<SocketAddr>,
    /// From the start of the connect.
    pub login_time: Duration,
}

/// Without the secret of the backend.
impl std::fmt::Debug for OpenedServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OpenedServer")
            .field("process_id", &self.process_id)
            .field("peer", &self.peer)
            .field("login_time", &self.login_time)
            .finish_non_exhaustive()
    }
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub struct OpenFailure {
    /// What it means for further attempts.
    pub cause: Cause,
    /// SQLSTATE, if the server itself answered.
    pub sqlstate: Option<String>,
    /// For the client: the server's own words, or ours. Holds no secret and no address.
    pub client_text: String,
    /// For the log.
    pub log_text: String,
}

/// Asks for a cancel request.
#[derive(Clone)]
pub struct CancelQuery {
    /// The server whose query is to be cancelled; named in the answer.
    pub server: crate::connection::ServerId,
    /// Where to.
    pub address: ServerAddress,
    /// The address that the session really went to, if it is known.
    pub peer: Option<SocketAddr>,
    /// Process id of the backend.
    pub process_id: i32,
    /// Secret of the backend.
    pub secret_key: Vec<u8>,
    /// Longest time for it.
    pub limit: Duration,
}

/// Without the secret of the backend.
impl std::fmt::Debug for CancelQuery {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CancelQuery")
            .field("server", &self.server)
            .field("process_id", &self.process_id)
            .finish_non_exhaustive()
    }
}

/// Names one look at the locks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookId {
    /// Which server: looks at one server have the same, and one connection.
    pub address: usize,
    /// Which look.
    pub number: u64,
}

/// Asks for a look at a server's locks.
#[derive(Clone, Debug)]
pub struct LookAtLocks {
    /// Names the look in the answer.
    pub look: LookId,
    /// Where and as whom.
    pub target: Arc<Target>,
    /// The pools whose servers stand there.
    pub pools: Vec<Ours<PoolId>>,
    /// What is done about a pile-up.
    pub policy: Policy,
    /// How long it may last first.
    pub grace: Duration,
    /// Longest time for the look, its login included.
    pub limit: Duration,
}

/// The answer to [`LookAtLocks`].
#[derive(Clone, Debug)]
pub struct LocksSeen {
    /// Which look.
    pub look: LookId,
    /// The pools that pile up; none if it could not be seen.
    pub piles: Option<Vec<PileUp<PoolId>>>,
    /// What was done.
    pub acted: Vec<Acted>,
    /// How long the server took for the answer.
    pub took: Duration,
}

/// What became of an action.
#[derive(Clone, Debug)]
pub struct Acted {
    /// What was to be done, and to whom.
    pub action: Action,
    /// Whether it was.
    pub outcome: ActOutcome,
}

/// Whether somebody could be told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActOutcome {
    /// It was told.
    Done,
    /// It does not stand there any more.
    Gone,
    /// The role that looks may not: it needs to be a member of the other's role, or of `pg_signal_backend`.
    NotPermitted,
    /// The server did not do it, for another reason.
    Failed,
}

impl ActOutcome {
    /// A word for logs and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Gone => "gone",
            Self::NotPermitted => "not permitted",
            Self::Failed => "failed",
        }
    }
}

/// Asks something of the control connection of a server's budget.
#[derive(Clone, Debug)]
pub enum BudgetRequest {
    /// Carry out an order, on a session to this target. Without an answer within the limit the session is given up.
    Carry {
        /// Where and as whom.
        target: Arc<Target>,
        /// What to do.
        order: Order,
        /// Longest time for it, a login included.
        limit: Duration,
    },
    /// Nothing is needed of that server any more: end the session, which gives back what it holds.
    Leave(ServerAddress),
}

/// The answer to [`BudgetRequest::Carry`].
#[derive(Clone, Debug)]
pub struct BudgetAnswer {
    /// Which server's budget.
    pub address: ServerAddress,
    /// Which order.
    pub id: u64,
    /// What was seen; or why there is no session any more.
    pub look: Result<Look, OpenFailure>,
}

/// Asks for a SCRAM verifier.
#[derive(Clone, Debug)]
pub struct DeriveVerifier {
    /// Whose login waits for it; named in the answer.
    pub client: ClientId,
    /// The user.
    pub user: String,
    /// The password.
    pub secret: Secret,
    /// Iterations.
    pub iterations: u32,
    /// Salt.
    pub salt: [u8; 16],
}

/// The answer to [`DeriveVerifier`].
#[derive(Clone, Debug)]
pub struct DerivedVerifier {
    /// Whose login waits for it.
    pub client: ClientId,
    /// The user.
    pub user: String,
    /// The verifier; `None` if it could not be derived, such as for too many at once.
    pub verifier: Option<Arc<Verifier>>,
}

/// A login to the console.
#[derive(Clone, Debug)]
pub struct ConsoleLogin {
    /// The user.
    pub user: String,
    /// May do more than SHOW.
    pub admin: bool,
    /// Where from.
    pub address: ClientAddress,
    /// Bytes that came behind the login.
    pub pending: Vec<u8>,
}

/// Where a client came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// TCP.
    Tcp {
        /// The client's end.
        peer: SocketAddr,
        /// Our end.
        local: SocketAddr,
    },
    /// A Unix socket.
    Unix {
        /// Port in the socket's name.
        port: u16,
        /// The caller's user id.
        uid: u32,
        /// The caller's process id.
        pid: i32,
    },
}
