//! What the console, the metrics and the health page are told: plain rows, taken at one moment.
//! Times are durations up to the moment of the snapshot, so that no reader needs the engine's clock.

use crate::close_cause::CloseCause;
use crate::connection::PoolId;
use crate::seam::ClientAddress;
use crate::stall::StallCause;
use locks::PileUp;
use overload::histogram::LatencyHistogram;
use overload::patience::PatienceSource;
use overload::shedding::ShedCause;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// One (database, user).
#[derive(Clone, Debug)]
pub struct PoolRow {
    /// Name that clients ask for.
    pub database: Arc<str>,
    /// User that clients log in as.
    pub user: Arc<str>,
    /// Clients that are idle or have a server.
    pub cl_active: usize,
    /// Clients that wait for a server, or for the first server's greeting.
    pub cl_waiting: usize,
    /// Cancel requests on their way to a server.
    pub cl_active_cancel_req: usize,
    /// Servers in use by a client.
    pub sv_active: usize,
    /// Servers to which a cancel request is on its way.
    pub sv_active_cancel: usize,
    /// Servers that may not be used before a cancel request has ended.
    pub sv_being_canceled: usize,
    /// Servers in use that stay with their client because of what it has left in the session.
    pub sv_pinned: usize,
    /// Servers ready for use.
    pub sv_idle: usize,
    /// Servers being drained and reset after their client left.
    pub sv_used: usize,
    /// Servers being tested or reset.
    pub sv_tested: usize,
    /// Servers logging in.
    pub sv_login: usize,
    /// Servers closed by us whose end has not been seen yet; they still count against the size.
    pub sv_closing: usize,
    /// The longest that a client has waited so far.
    pub maxwait: Duration,
    /// `session`, `transaction` or `statement`.
    pub pool_mode: &'static str,
    /// Most servers.
    pub pool_size: usize,
    /// Servers that wait behind the lock of a pile-up; 0 if there is none.
    pub sv_behind_lock: usize,
    /// Requests that may run at once, as `running_limit` has found; none if it is off.
    pub running_limit: Option<usize>,
    /// Why the last server could not be opened, and since when none could: label of the cause, text.
    pub failure: Option<(&'static str, String, Duration)>,
    /// Why it stands still, and since when it does: [`crate::stall::StallCause::label`].
    pub stall: Option<(&'static str, Duration)>,
    /// Time since a server last answered a query of this pool.
    pub since_last_answer: Option<Duration>,
    /// Its line as the guard against overload sees it.
    pub overload: OverloadRow,
    /// Counters.
    pub counters: PoolCounters,
}

/// The line of one pool: SHOW OVERLOAD.
#[derive(Clone, Debug)]
pub struct OverloadRow {
    /// `off`, `observe` or `on`.
    pub policy: &'static str,
    /// For how long its line has stood.
    pub overloaded: Option<Duration>,
    /// How long a server needs for one who waits, as last measured while somebody waited.
    pub service: Option<Duration>,
    /// How long somebody would wait who joined now.
    pub predicted_wait: Option<Duration>,
    /// The last patience of somebody who waited, indexed by how it was known.
    pub patience: [Option<Duration>; PatienceSource::COUNT],
}

impl Default for OverloadRow {
    fn default() -> Self {
        Self {
            policy: "off",
            overloaded: None,
            service: None,
            predicted_wait: None,
            patience: [None; PatienceSource::COUNT],
        }
    }
}

/// What has been learnt of callers who have not declared their patience: SHOW PATIENCE.
#[derive(Clone, Debug)]
pub struct PatienceRow {
    /// Database.
    pub database: Arc<str>,
    /// User.
    pub user: Arc<str>,
    /// `application_name`.
    pub application_name: Arc<str>,
    /// How long they wait.
    pub patience: Duration,
    /// From how many who gave up.
    pub samples: usize,
}

/// Counters of one pool; they only grow.
#[derive(Clone, Debug, Default)]
pub struct PoolCounters {
    /// Transactions.
    pub xact_count: u64,
    /// Queries.
    pub query_count: u64,
    /// Times that a server was given to a client.
    pub server_assignment_count: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    /// Microseconds in transactions.
    pub xact_time_us: u64,
    /// Microseconds in queries.
    pub query_time_us: u64,
    /// Microseconds that clients waited.
    pub wait_time_us: u64,
    /// Parse messages from clients.
    pub client_parse_count: u64,
    /// Parse messages to servers.
    pub server_parse_count: u64,
    /// Bind messages.
    pub bind_count: u64,
    /// Logins of clients.
    pub client_login_count: u64,
    /// Server connections opened.
    pub server_opens: u64,
    /// Attempts to open one that failed, by [`overload::cause::Cause::label`].
    pub server_open_failures: Vec<(&'static str, u64)>,
    /// Server connections closed, indexed by [`CloseCause`].
    pub server_closes: [u64; CloseCause::COUNT],
    /// Waiters that left before a server was spent on them.
    pub dead_waiters: u64,
    /// Servers that were given to a waiter that had left already.
    pub dead_handoffs: u64,
    /// Waiters that reached `query_wait_timeout`.
    pub wait_timeouts: u64,
    /// Requests refused because no server could be opened.
    pub refusals: u64,
    /// Requests that were not started since their callers would not have waited long enough, indexed by [`ShedCause`].
    pub shed: [u64; ShedCause::COUNT],
    /// Those that would not have been, with `overload_policy = observe`.
    pub would_shed: [u64; ShedCause::COUNT],
    /// Times that the pool stood still, by [`StallCause::label`] as it was at first.
    pub stalls: Vec<(&'static str, u64)>,
    /// Cancel requests sent for clients.
    pub client_cancels: u64,
    /// Cancel requests sent for clients that are gone.
    pub departure_cancels: u64,
    /// Server logins started beyond `pool_size`, for clients that had waited for `reserve_pool_timeout`.
    pub reserve_logins: u64,
    /// Clients closed because they held a server while others waited.
    pub holders_closed: u64,
    /// Servers asked what their session holds.
    pub session_probes: u64,
    /// Requests that waited in line because as many ran as the server carries (`running_limit`).
    pub running_holds: u64,
    /// Requests that would have (`observe`).
    pub running_would_hold: u64,
    /// Servers that began to stay with their client because of what it has left in the session.
    pub pins: u64,
    /// Clients dismissed because of what they had left in the session.
    pub pin_refusals: u64,
    /// Pile-ups behind locks that were seen.
    pub lock_pileups: u64,
    /// What was done about them, by [`crate::seam::ActOutcome::label`] and what became of it.
    pub lock_actions: Vec<(&'static str, u64)>,
    /// From joining the line to getting a server.
    pub wait: LatencyHistogram,
    /// From sending a query to its ReadyForQuery.
    pub query: LatencyHistogram,
    /// Server connect and login.
    pub login: LatencyHistogram,
}

impl PoolCounters {
    /// One more stall.
    pub(crate) fn count_stall(&mut self, cause: StallCause) {
        let label = cause.label();
        match self.stalls.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += 1,
            None => self.stalls.push((label, 1)),
        }
    }
}

/// One client.
#[derive(Clone, Debug)]
pub struct ClientRow {
    /// User; empty before the start-up packet.
    pub user: Arc<str>,
    /// Database; empty before the start-up packet.
    pub database: Arc<str>,
    /// `login`, `waiting`, `idle` or `active`.
    pub state: &'static str,
    /// Where from.
    pub address: ClientAddress,
    /// Time since it connected.
    pub connected: Duration,
    /// Time since its last request.
    pub requested: Duration,
    /// How long it has waited in line.
    pub wait: Duration,
    /// Its server.
    pub link: Option<u64>,
    /// `application_name`.
    pub application_name: Arc<str>,
    /// Named statements that are kept track of.
    pub prepared_statements: usize,
    /// Version and suite of its TLS, which the driver fills in; empty without.
    pub tls: String,
    /// Identity, as SHOW prints it.
    pub id: u64,
}

/// One server.
#[derive(Clone, Debug)]
pub struct ServerRow {
    /// User that clients log in as.
    pub user: Arc<str>,
    /// Database that clients ask for.
    pub database: Arc<str>,
    /// `active`, `idle`, `used`, `tested`, `being_canceled`, `closing`.
    pub state: &'static str,
    /// Where to; none for a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Port of the configured address.
    pub port: u16,
    /// Time since it was opened.
    pub connected: Duration,
    /// Time since its last request.
    pub requested: Duration,
    /// To be closed once it is free.
    pub close_needed: bool,
    /// Its client.
    pub link: Option<u64>,
    /// Process id of the backend.
    pub remote_pid: i32,
    /// `application_name`.
    pub application_name: Arc<str>,
    /// Named statements that are kept track of.
    pub prepared_statements: usize,
    /// Version and suite of its TLS, which the driver fills in; empty without.
    pub tls: String,
    /// Identity, as SHOW prints it.
    pub id: u64,
}

/// A live client that holds a server without using it: SHOW HOLDERS.
#[derive(Clone, Debug)]
pub struct HolderRow {
    /// User.
    pub user: Arc<str>,
    /// Database.
    pub database: Arc<str>,
    /// Where from.
    pub address: ClientAddress,
    /// `application_name`.
    pub application_name: Arc<str>,
    /// `client does not read its result`, `half-sent message`, `idle in transaction` or `batch without Sync`.
    pub reason: &'static str,
    /// For how long.
    pub held: Duration,
    /// Clients that wait in the same pool.
    pub waiting: usize,
    /// Process id of the backend.
    pub remote_pid: i32,
    /// Identity of the client.
    pub id: u64,
}

/// A pool that stands still, or has: SHOW STALLS.
#[derive(Clone, Debug)]
pub struct StallRow {
    /// Database.
    pub database: Arc<str>,
    /// User.
    pub user: Arc<str>,
    /// [`crate::stall::StallCause::label`].
    pub cause: &'static str,
    /// The cause in full.
    pub detail: String,
    /// Clients that wait now; 0 when it is over.
    pub waiting: usize,
    /// Time since its beginning.
    pub began_ago: Duration,
    /// How long it lasted, or has lasted so far.
    pub lasted: Duration,
    /// [`crate::stall::StallEnd::label`]; none while it goes on.
    pub end: Option<&'static str>,
}

/// Something that has happened, perhaps more than once: SHOW EVENTS.
#[derive(Clone, Debug)]
pub struct EventRow {
    /// [`crate::events::EventKind::label`].
    pub event: &'static str,
    /// [`crate::events::EventKind::cause`].
    pub cause: &'static str,
    /// Database of the pool; empty for what concerns no pool.
    pub database: Arc<str>,
    /// User of the pool; empty for what concerns no pool.
    pub user: Arc<str>,
    /// How often.
    pub count: u64,
    /// Time since the first of these.
    pub first_ago: Duration,
    /// Time since the last of these.
    pub last_ago: Duration,
    /// What else is known of the last.
    pub detail: String,
}

/// One lane of one pool: SHOW LANES.
#[derive(Clone, Debug)]
pub struct LaneRow {
    /// Database.
    pub database: Arc<str>,
    /// User.
    pub user: Arc<str>,
    /// Its name.
    pub lane: Arc<str>,
    /// Turns, relative to the other lanes.
    pub weight: u32,
    /// Servers that come first to this lane, of a hundred.
    pub share_percent: u32,
    /// The same of the servers that there are now.
    pub guaranteed: usize,
    /// Clients that wait.
    pub waiting: usize,
    /// Servers that it uses.
    pub active: usize,
    /// The longest that one of its clients has waited so far.
    pub maxwait: Duration,
    /// Servers that it was given, since the lanes are as they are.
    pub served: u64,
}

/// A pool whose servers pile up behind a lock: SHOW LOCKS.
#[derive(Clone, Debug)]
pub struct LockRow {
    /// Database.
    pub database: Arc<str>,
    /// User.
    pub user: Arc<str>,
    /// Who waits for whom.
    pub pile: PileUp<PoolId>,
    /// Time since it was first seen.
    pub seen: Duration,
    /// Clients that wait in the pool.
    pub waiting: usize,
}

/// The budget of one database server: SHOW BUDGET.
#[derive(Clone, Debug)]
pub struct BudgetRow {
    /// Where the server listens.
    pub address: String,
    /// How the lease stands.
    pub lease: budget::LeaseView,
    /// Further connections that its pools could use now.
    pub wanted: usize,
    /// Roles and databases that have been found full.
    pub estimates: Vec<EstimateRow>,
}

/// What a role or a database has been seen to carry.
#[derive(Clone, Debug)]
pub struct EstimateRow {
    /// `role` or `database`.
    pub kind: &'static str,
    /// Its name on the server.
    pub name: String,
    /// The most that is opened now.
    pub limit: usize,
    /// Connections that count.
    pub used: usize,
}

/// A source that does, or lately did, far more than it used to: SHOW STORMS.
#[derive(Clone, Debug)]
pub struct StormRow {
    /// `attempts` (to connect) or `lost_requests` (that got no server).
    pub what: &'static str,
    /// As the client named itself.
    pub user: Arc<str>,
    /// The same.
    pub application_name: Arc<str>,
    /// An address, a /64 of IPv6, or `unix:` with a user id.
    pub origin: String,
    /// A second, in the last whole window, in thousandths.
    pub rate_milli: u64,
    /// The most of this storm.
    pub greatest_rate_milli: u64,
    /// What was usual before it.
    pub usual_rate_milli: u64,
    /// Time since it began.
    pub began: Duration,
    /// Time since it was over; none while it goes on.
    pub ended: Option<Duration>,
}

/// Attempts to connect, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Turned away, since there were too many of that user and address.
    pub too_many: u64,
    /// Turned away, since too many had failed before.
    pub refused_before: u64,
    /// Those that `on` would have turned away (`observe`).
    pub would_refuse: u64,
    /// Users and addresses that are remembered now.
    pub sources: usize,
}

/// Everything for metrics and health.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Budgets of database servers; none without `server_budget`.
    pub budgets: Vec<BudgetRow>,
    /// All pools.
    pub pools: Vec<PoolRow>,
    /// Clients, those in login included.
    pub clients: usize,
    /// Clients in login.
    pub clients_in_login: usize,
    /// The most clients that are let in now.
    pub client_limit: usize,
    /// Clients refused because of that limit, or that of their database or user.
    pub clients_refused: u64,
    /// Logins refused by password, user or database.
    pub logins_refused: u64,
    /// Connections that ended before a start-up packet (probes).
    pub probes: u64,
    /// Bytes that break the protocol, from clients.
    pub protocol_errors: u64,
    /// The lanes of all pools; none if none are declared.
    pub lanes: Vec<LaneRow>,
    /// Attempts to connect.
    pub attempts: AttemptCounts,
    /// Storms that have begun, and those that go on, by what grows.
    pub storms: [(&'static str, u64, usize); 2],
    /// True while draining to a stop.
    pub shutting_down: bool,
}
