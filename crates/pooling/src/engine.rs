//! The pooler's state machine: entry points for the driver. Each concern has a file of its own below `engine/`.
//!
//! Nothing here reads a clock or touches a socket. [`Engine::advance`] sets the time for all that follows in a turn.

mod addresses;
mod answer;
mod attempts;
mod budget;
mod cancel;
mod caps;
mod client_limits;
mod departure;
mod encryption;
mod forward;
mod handoff;
mod lanes;
mod lifetime;
mod locks;
mod login;
mod notices;
mod pools;
mod probe;
mod refill;
mod reload;
mod request;
mod reserve;
mod running;
mod session;
mod shedding;
mod show;
mod shutdown;
mod stalls;
mod storms;
mod timers;
mod transaction_end;
mod unused;
mod wishes;

use crate::client::{CancelKeyBytes, Client, ClientState};
use crate::connection::{ClientId, ConnectionId, PoolId, ServerId, Slab};
use crate::events::{EventKind, Recorder};
use crate::guard::Caller;
use crate::parameters::{Parameters, Tracked};
use crate::pool::Pool;
use crate::seam::{AttemptId, ClientAddress, Flow, Transport};
use crate::server::{Server, ServerState};
use crate::statements::Statements;
use overload::Moment;
use overload::patience::learnt::LearntPatience;
use pgwire::scram::{DEFAULT_ITERATIONS, MockSecret, Verifier};
use settings::pooler::{BudgetSettings, PoolerConfig};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

pub use login::CONSOLE_DATABASE;
pub use shutdown::Shutdown;

/// Most pools at once; beyond it, pools that nobody uses are forgotten first.
pub const MAX_POOLS: usize = 65_536;

/// Connections above the client limit that are kept for a moment, to be refused by a message, for cancel requests, and
/// for the console. Drivers must have descriptors for them.
pub const REFUSAL_ALLOWANCE: usize = 32;

/// The pooler's state machine.
pub struct Engine {
    pub(crate) now: Moment,
    config: Arc<PoolerConfig>,
    /// What the process's descriptors allow.
    descriptor_limit: usize,
    clients: Slab<ClientId, Client>,
    servers: Slab<ServerId, Server>,
    pools: Vec<Pool>,
    free_pools: Vec<PoolId>,
    pool_index: HashMap<(Arc<str>, Arc<str>), PoolId>,
    /// Pools without clients and servers, and since when.
    unused_pools: BTreeSet<(Moment, PoolId)>,
    addresses: addresses::Addresses,
    caps: caps::Caps,
    /// The terms of each server's budget, as they were at the start; none without one.
    budget_terms: Option<::budget::Terms>,
    budget_settings: BudgetSettings,
    connection_attempts: attempts::ConnectionAttempts,
    storms: storms::StormWatch,
    client_counts: client_limits::ClientCounts,
    /// Servers that were ever opened: spreads their lifetimes.
    servers_opened: u64,
    keys: HashMap<CancelKeyBytes, ClientId>,
    attempts: HashMap<AttemptId, refill::Attempt>,
    next_attempt: u64,
    verifiers: HashMap<String, Arc<Verifier>>,
    /// The salt of the verifiers that are being derived, for each user: an answer with another one is of a secret that
    /// has changed meanwhile.
    deriving: HashMap<String, [u8; 16]>,
    lock_watches: locks::LockWatches,
    timers: timers::Timers,
    parameters: Parameters,
    statements: Statements,
    /// A request with the server's names for statements, while it is sent.
    translated: Vec<u8>,
    no_parameters: Arc<Tracked>,
    in_login: usize,
    /// Those who are in login and some who were, the oldest first.
    logins: VecDeque<ClientId>,
    totals: Totals,
    recorder: Recorder,
    /// How long clients wait that have not said so.
    learnt: LearntPatience<Caller>,
    stalls: stalls::Stalls,
    shutdown: Option<Shutdown>,
    /// The user id of this process: the same one over the Unix socket may use the console.
    own_uid: Option<u32>,
    /// Makes the challenge for users that are not known.
    mock: MockSecret,
    /// Waiters are being refused: what they ask next is not looked at within that.
    refusing: bool,
    /// Whose cancel request is on its way to a server.
    cancellers: HashMap<ServerId, Vec<ClientId>>,
}

/// Counters of the whole process.
#[derive(Debug, Default)]
struct Totals {
    clients_refused: u64,
    logins_refused: u64,
    probes: u64,
    protocol_errors: u64,
}

/// Only counts: the sessions hold cancel keys.
impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("clients", &self.clients.len())
            .field("servers", &self.servers.len())
            .field("pools", &self.pool_index.len())
            .field("addresses", &self.addresses.len())
            .field("caps", &self.caps.len())
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine without connections. `descriptor_limit` is how many clients the process's descriptors allow.
    #[must_use]
    pub fn new(config: Arc<PoolerConfig>, descriptor_limit: usize, now: Moment) -> Self {
        let budget_settings = config.general.budget.clone();
        Self {
            now,
            config,
            descriptor_limit,
            clients: Slab::default(),
            servers: Slab::default(),
            pools: Vec::new(),
            free_pools: Vec::new(),
            pool_index: HashMap::new(),
            unused_pools: BTreeSet::new(),
            addresses: addresses::Addresses::default(),
            caps: caps::Caps::default(),
            budget_terms: budget::terms_of(&budget_settings),
            budget_settings,
            connection_attempts: attempts::ConnectionAttempts::default(),
            storms: storms::StormWatch::default(),
            client_counts: client_limits::ClientCounts::default(),
            servers_opened: 0,
            keys: HashMap::new(),
            attempts: HashMap::new(),
            next_attempt: 0,
            verifiers: HashMap::new(),
            deriving: HashMap::new(),
            lock_watches: locks::LockWatches::default(),
            timers: timers::Timers::default(),
            parameters: Parameters::new(),
            statements: Statements::default(),
            translated: Vec::new(),
            no_parameters: Arc::default(),
            in_login: 0,
            logins: VecDeque::new(),
            totals: Totals::default(),
            recorder: Recorder::default(),
            learnt: LearntPatience::default(),
            stalls: stalls::Stalls::default(),
            shutdown: None,
            own_uid: None,
            mock: MockSecret::new([0; 32], DEFAULT_ITERATIONS),
            refusing: false,
            cancellers: HashMap::new(),
        }
    }

    /// Begins: opens the minimum of each pool whose user is known.
    pub fn start(&mut self, transport: &mut impl Transport) {
        self.mock = MockSecret::new(transport.random(), self.config.general.scram_iterations);
        self.open_minimum_pools(transport);
    }

    /// Tells the engine the user id of its process, once it is settled.
    pub fn set_own_uid(&mut self, uid: u32) {
        self.own_uid = Some(uid);
    }

    /// Sets the time; once a turn, before the other calls. Time never goes back.
    pub fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
    }

    /// The configuration that runs.
    #[must_use]
    pub const fn config(&self) -> &Arc<PoolerConfig> {
        &self.config
    }

    /// A client has connected. `None`: it is not wanted, close it.
    pub fn accept(&mut self, transport: &mut impl Transport, address: ClientAddress) -> Option<ClientId> {
        if self.shutdown.is_some() {
            return None;
        }
        let most = self.descriptor_limit.saturating_add(REFUSAL_ALLOWANCE);
        if self.clients.len() >= most && !self.dismiss_oldest_login(transport) {
            return None;
        }
        let client = Client::new(address, self.no_parameters.clone(), self.now);
        let id = self.clients.insert(client)?;
        self.in_login += 1;
        self.note_login(id);
        self.arm_client(id, self.now + self.config.general.client_login_timeout);
        Some(id)
    }

    /// Bytes have come.
    pub fn on_bytes(&mut self, transport: &mut impl Transport, id: ConnectionId, bytes: &[u8]) {
        match id {
            ConnectionId::Client(client) => self.on_client_bytes(transport, client, bytes),
            ConnectionId::Server(server) => self.on_server_bytes(transport, server, bytes),
        }
    }

    /// The peer has closed the connection, or it has failed.
    pub fn on_end(&mut self, transport: &mut impl Transport, id: ConnectionId) {
        match id {
            ConnectionId::Client(client) => self.client_gone(transport, client, "client unexpected eof"),
            ConnectionId::Server(server) => self.server_gone(transport, server),
        }
    }

    /// What the peer sends cannot be read, since its TLS is broken: it goes, for that reason.
    pub fn on_broken(&mut self, transport: &mut impl Transport, id: ConnectionId, reason: &str) {
        match id {
            ConnectionId::Client(client) => self.client_broken(transport, client, reason),
            ConnectionId::Server(server) => {
                tracing::warn!(reason, "a server connection cannot be read");
                self.server_gone(transport, server);
            }
        }
    }

    /// The peer has hung up, while bytes of it are still unread. A reset is the end; a closed sending side is the end
    /// for a client that waits, since nobody is there to read the answer.
    pub fn on_hangup(&mut self, transport: &mut impl Transport, id: ConnectionId, reset: bool) {
        if let ConnectionId::Client(client) = id
            && let Some(found) = self.clients.find(client)
            && (reset
                || matches!(
                    found.state,
                    ClientState::Waiting(_) | ClientState::AwaitingWelcome(_) | ClientState::Preparing { .. }
                ))
        {
            self.client_gone(transport, client, "client unexpected eof");
        }
    }

    /// The peer took some of what is kept for it: it is slow, not stopped.
    pub fn on_progress(&mut self, id: ConnectionId) {
        if let ConnectionId::Client(client) = id
            && let Some(client) = self.clients.find_mut(client)
            && client.blocked_since.is_some()
        {
            client.blocked_since = Some(self.now);
        }
    }

    /// The peer took all of what was kept for it: whoever sends to it may be read again.
    pub fn on_flushed(&mut self, transport: &mut impl Transport, id: ConnectionId) {
        match id {
            ConnectionId::Client(id) => {
                let Some(client) = self.clients.find_mut(id) else { return };
                client.blocked_since = None;
                if let ClientState::Active { server, .. } = client.state {
                    transport.set_reading(server.into(), true);
                }
                if !client.throttled && !client.server_full {
                    transport.set_reading(id.into(), true);
                }
            }
            ConnectionId::Server(id) => {
                let Some(server) = self.servers.find(id) else { return };
                let ServerState::Active(client_id) = server.state else { return };
                let now = self.now;
                let Some(client) = self.clients.find_mut(client_id) else { return };
                client.server_full = false;
                if !client.throttled {
                    transport.set_reading(client_id.into(), true);
                }
                if client.partial_since.is_some() {
                    client.partial_since = Some(now);
                    self.arm_partial(client_id);
                }
            }
        }
    }

    fn pool(&self, id: PoolId) -> &Pool {
        &self.pools[id.0 as usize]
    }

    fn pool_mut(&mut self, id: PoolId) -> &mut Pool {
        &mut self.pools[id.0 as usize]
    }

    /// Something has happened that is worth remembering, in a pool or to the whole process.
    fn record(&mut self, pool: Option<PoolId>, kind: EventKind) {
        let (database, user) = self.names(pool);
        self.recorder.record(self.now, kind, &database, &user);
    }

    /// Sends to a client; notes when it does not take it, and then reads no more from where the bytes come.
    fn send_to_client(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        bytes: &[u8],
        from: Option<ServerId>,
    ) {
        if transport.send(id.into(), &[bytes]) == Flow::Flushed {
            return;
        }
        match from {
            Some(server) => transport.set_reading(server.into(), false),
            None => transport.set_reading(id.into(), false),
        }
        self.note_blocked(id);
    }

    fn note_blocked(&mut self, id: ClientId) {
        let Some(client) = self.clients.find_mut(id) else { return };
        if client.blocked_since.is_none() {
            client.blocked_since = Some(self.now);
            let limit = self.config.general.client_write_timeout;
            if !limit.is_zero() {
                self.arm_client(id, self.now + limit);
            }
        }
    }
}
