//! What runs: the pooler's configuration after every value has been read, typed and checked.

use super::tls::Tls;
use crate::written::Dialect;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How clients prove who they are (`auth_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthType {
    /// Anyone, as the user that the `[databases]` line names (`any`).
    Any,
    /// MD5 challenge; a stored SCRAM verifier makes it SCRAM, as in PgBouncer.
    Md5,
    /// Password in clear text.
    Plain,
    /// SCRAM-SHA-256 (RFC 5802, RFC 7677).
    ScramSha256,
    /// No proof; the user must be in `auth_file`.
    Trust,
}

/// When a server goes back to its pool (`pool_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// When its client leaves.
    Session,
    /// After each statement; transactions of several are refused.
    Statement,
    /// After each transaction.
    Transaction,
}

impl PoolMode {
    /// The value of the setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Statement => "statement",
            Self::Transaction => "transaction",
        }
    }
}

/// What becomes of a running query when its client is gone (`client_disconnect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDisconnect {
    /// Cancel the query, drain its answer, keep the connection.
    Cancel,
    /// Close the server connection.
    Close,
    /// Let the query finish, drain its answer, keep the connection. PgBouncer's way for writes that were sent without waiting.
    Finish,
}

/// What is done when servers pile up behind a lock (`lock_pileup`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPileup {
    /// End whoever keeps the DDL waiting.
    CancelBlocker,
    /// Cancel the DDL that waits.
    CancelWaitingDdl,
    /// Nobody looks. PgBouncer's way.
    Off,
    /// It is said, and no further server is opened behind it.
    Warn,
}

/// What becomes of a client of transaction or statement mode whose transaction leaves something in its server's session
/// that cannot follow it, such as an advisory lock (`session_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Nothing: nobody looks. PgBouncer's way.
    Ignore,
    /// The client keeps the server for as long as it is there.
    Pin,
    /// The client is told and dismissed.
    Refuse,
}

/// Whether a guard acts (`overload_policy`, `connection_attempts`, `running_limit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardPolicy {
    /// Nobody looks.
    Off,
    /// It decides and counts what it would have done, and does it not.
    Observe,
    /// It acts.
    On,
}

impl GuardPolicy {
    /// The value of the setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::On => "on",
        }
    }
}

/// A secret of `auth_file` or of a `[databases]` line. Its `Debug` never shows the secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The password itself.
    Plain(String),
    /// `md5` followed by 32 hexadecimal digits: md5(password + user).
    Md5(String),
    /// `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`, as in `pg_authid`.
    ScramVerifier(String),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Plain(_) => "Plain(…)",
            Self::Md5(_) => "Md5(…)",
            Self::ScramVerifier(_) => "ScramVerifier(…)",
        })
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// Host name or address literal, and port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// Folder of the Unix socket, and the port in its name (`.s.PGSQL.PORT`).
    Unix {
        /// Folder.
        directory: PathBuf,
        /// Port.
        port: u16,
    },
}

/// The budget of connections of each database server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetSettings {
    /// How large it is (`server_budget`).
    pub size: ServerBudget,
    /// Connections of it that no pool gets.
    pub reserved: usize,
    /// Connections that are leased at once.
    pub chunk: usize,
    /// How long a fresh lease rests before use.
    pub settle: Duration,
    /// Database of the control connection.
    pub database: String,
    /// User of the control connection; its secret stands in `auth_file`.
    pub user: String,
}

/// How large the budget of each database server is (`server_budget`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerBudget {
    /// There is none.
    Off,
    /// What the server says that it carries, less a margin.
    Automatic,
    /// So many connections.
    Connections(usize),
}

/// Shape of log lines on standard error (`log_format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Everything that `holdfast pooler FILE` needs to run. Durations of zero mean "off".
#[derive(Clone, Debug)]
pub struct PoolerConfig {
    /// Kind of file that it was written in; the two differ in some defaults.
    pub dialect: Dialect,
    /// Section `[pgbouncer]`.
    pub general: General,
    /// Section `[databases]` without `*`, by the name that clients ask for.
    pub databases: BTreeMap<String, Arc<Database>>,
    /// The `*` line: any other name. Its `dbname`, if not given, is the name that the client asked for.
    pub fallback_database: Option<Arc<Database>>,
    /// Section `[users]`.
    pub users: BTreeMap<String, UserSettings>,
    /// Section `[lanes]`, in the order in which they are tried, behind the one of whoever is in no other. Empty if nothing
    /// is written.
    pub lanes: Vec<Lane>,
    /// The entries of `auth_file`, by user name.
    pub secrets: BTreeMap<String, Secret>,
}

/// Section `[pgbouncer]`.
#[derive(Clone, Debug)]
pub struct General {
    /// The file that this came from (`conffile`).
    pub conffile: Option<PathBuf>,
    /// File of users and secrets.
    pub auth_file: Option<PathBuf>,
    /// TCP addresses to listen on: `listen_addr` × `listen_port`, resolved.
    pub listen: Vec<SocketAddr>,
    /// Port, also part of the Unix socket's name.
    pub listen_port: u16,
    /// Folder for the Unix socket; none if empty.
    pub unix_socket_dir: Option<PathBuf>,
    /// Mode of the Unix socket.
    pub unix_socket_mode: u32,
    /// Group of the Unix socket, by name or number.
    pub unix_socket_group: Option<String>,
    /// Other processes may listen on the same TCP port.
    pub so_reuseport: bool,
    /// `listen(2)` backlog.
    pub listen_backlog: u32,
    /// User to become after the sockets are bound.
    pub user: Option<String>,
    /// File to write the process id to.
    pub pidfile: Option<PathBuf>,
    /// File to log to, beside standard error.
    pub logfile: Option<PathBuf>,
    /// Shape of log lines.
    pub log_format: LogFormat,
    /// Log each login.
    pub log_connections: bool,
    /// Log each end of a connection, with its reason.
    pub log_disconnections: bool,
    /// Log the errors that the pooler sends to clients.
    pub log_pooler_errors: bool,
    /// Log totals every `stats_period`.
    pub log_stats: bool,
    /// Averaging window.
    pub stats_period: Duration,
    /// More log lines (0 to 3).
    pub verbose: u8,
    /// How clients prove who they are.
    pub auth_type: AuthType,
    /// Users who may do everything on the console.
    pub admin_users: Vec<String>,
    /// Users who may read on the console.
    pub stats_users: Vec<String>,
    /// Iterations for SCRAM verifiers made from plain passwords.
    pub scram_iterations: u32,
    /// Startup parameters that are accepted and dropped.
    pub ignore_startup_parameters: Vec<String>,
    /// Append the client's address to `application_name`.
    pub application_name_add_host: bool,
    /// Most clients at once.
    pub max_client_conn: usize,
    /// Server connections per (user, database).
    pub default_pool_size: usize,
    /// Server connections kept open per pool.
    pub min_pool_size: usize,
    /// Extra server connections of a pool whose clients have waited for `reserve_pool_timeout`.
    pub reserve_pool_size: usize,
    /// Wait before the extra ones are used.
    pub reserve_pool_timeout: Duration,
    /// Most clients per database; 0 = off.
    pub max_db_client_connections: usize,
    /// Most clients per login user; 0 = off.
    pub max_user_client_connections: usize,
    /// Most server connections per database; 0 = off.
    pub max_db_connections: usize,
    /// Most server connections per user; 0 = off.
    pub max_user_connections: usize,
    /// Longest wait for a server.
    pub query_wait_timeout: Duration,
    /// Wait after which a client is told that it waits.
    pub query_wait_notify: Duration,
    /// Silence of a pool with waiting clients after which it says why.
    pub stall_after: Duration,
    /// Longest query.
    pub query_timeout: Duration,
    /// Longest silence of a client inside a transaction.
    pub idle_transaction_timeout: Duration,
    /// Longest transaction.
    pub transaction_timeout: Duration,
    /// Longest silence of a client outside a transaction.
    pub client_idle_timeout: Duration,
    /// Longest client login.
    pub client_login_timeout: Duration,
    /// Longest server connect and login.
    pub server_connect_timeout: Duration,
    /// How long a failing server is asked again before waiting clients hear of it.
    pub server_login_retry: Duration,
    /// Age after which an unused server connection is replaced.
    pub server_lifetime: Duration,
    /// Idle time after which a server connection is closed.
    pub server_idle_timeout: Duration,
    /// Idle time after which a server connection is tested before use; 0 = before each use.
    pub server_check_delay: Duration,
    /// That test; empty = an empty query.
    pub server_check_query: String,
    /// Oldest-used idle server first.
    pub server_round_robin: bool,
    /// Longest life of a cancel request, and of a cancel-and-drain.
    pub cancel_wait_timeout: Duration,
    /// Largest message from a client, in bytes.
    pub max_packet_size: u32,
    /// Named prepared statements that a server holds for its clients; 0 = they are passed on as they are.
    pub max_prepared_statements: usize,
    /// Bytes of their texts.
    pub max_prepared_statement_bytes: usize,
    /// TCP keepalive on every socket: on, count, idle, interval (0 = the system's).
    pub tcp_keepalive: Keepalive,
    /// The callers' declared patience (`client_patience`): `query_wait_timeout` must stay below it.
    pub client_patience: Option<Duration>,
    /// When a server goes back to its pool.
    pub pool_mode: PoolMode,
    /// Run when a client of session mode leaves; empty for none.
    pub server_reset_query: String,
    /// Run it after each transaction in the other modes too.
    pub server_reset_query_always: bool,
    /// In session mode a server that a reload replaces goes at the end of its transaction.
    pub server_fast_close: bool,
    /// Notice to each client at login; none if empty.
    pub login_notify_message: Option<String>,
    /// Refuse the simple query protocol.
    pub disable_pqexec: bool,
    /// Time without clients and servers after which a pool of a name that the `*` line serves is forgotten.
    pub autodb_idle_timeout: Duration,
    /// The same for every pool.
    pub pool_idle_timeout: Duration,
    /// What becomes of a running query when its client is gone.
    pub client_disconnect: ClientDisconnect,
    /// What becomes of a client that leaves something in a session.
    pub session_state: SessionState,
    /// What is done when servers pile up behind a lock.
    pub lock_pileup: LockPileup,
    /// How long they may stand there first.
    pub lock_pileup_grace: Duration,
    /// What is done while a pool has more to do than it can.
    pub overload_policy: GuardPolicy,
    /// While others wait: longest time that a client may refuse to read its result.
    pub client_write_timeout: Duration,
    /// While others wait: longest time for the rest of a half-sent message.
    pub client_message_timeout: Duration,
    /// Bytes of a waiting client's requests that are read and watched.
    pub waiter_buffer: usize,
    /// Bytes of an abandoned result that are drained before the connection is closed instead.
    pub drain_limit: u64,
    /// Whether attempts to connect are limited by user and address.
    pub connection_attempts: GuardPolicy,
    /// Attempts a second of one user from one address; 0 = no limit.
    pub connection_attempt_rate: u32,
    /// Attempts at once after a quiet time.
    pub connection_attempt_burst: u32,
    /// Failed logins in a row from which on attempts are refused unseen for a while; 0 = none.
    pub failed_login_limit: u32,
    /// Whether requests that run at once are limited to what the server carries.
    pub running_limit: GuardPolicy,
    /// Server logins in flight at once, per server address.
    pub server_login_concurrency: usize,
    /// Server logins started a second, per server address; 0 = no limit.
    pub server_login_rate: u32,
    /// Longest drain after TERM or INT; 0 = as long as clients stay.
    pub drain_timeout: Duration,
    /// Where metrics and health are served (HTTP).
    pub metrics_listen: Option<SocketAddr>,
    /// The budget of connections of each database server.
    pub budget: BudgetSettings,
    /// TLS towards clients.
    pub client_tls: Tls,
    /// TLS towards servers.
    pub server_tls: Tls,
}

impl General {
    /// True if a server is reset after each transaction too, and with something.
    #[must_use]
    pub const fn resets_after_transactions(&self) -> bool {
        self.server_reset_query_always && !self.server_reset_query.is_empty()
    }
}

/// What every TCP socket gets: keepalive (`tcp_keepalive`, `tcp_keepcnt`, `tcp_keepidle`, `tcp_keepintvl`,
/// `tcp_user_timeout`) and `tcp_socket_buffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// On at all.
    pub enabled: bool,
    /// Probes before giving up; 0 = the system's.
    pub count: u32,
    /// Idle seconds before the first probe; 0 = the system's.
    pub idle_s: u32,
    /// Seconds between probes; 0 = the system's.
    pub interval_s: u32,
    /// `TCP_USER_TIMEOUT` in milliseconds; 0 = the system's.
    pub user_timeout_ms: u32,
    /// Bytes of the system's buffers for each direction (`SO_SNDBUF`, `SO_RCVBUF`); 0 = the system's.
    pub buffer_bytes: u32,
}

/// A line of `[databases]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Name on the server; on the `*` line, none means the name that the client asked for.
    pub dbname: Option<String>,
    /// Where the server listens.
    pub address: ServerAddress,
    /// User to log in as, whoever the client is.
    pub user: Option<String>,
    /// That user's secret.
    pub password: Option<Secret>,
    /// Overrides `default_pool_size`.
    pub pool_size: Option<usize>,
    /// Overrides `min_pool_size`.
    pub min_pool_size: Option<usize>,
    /// Overrides `reserve_pool_size`.
    pub reserve_pool_size: Option<usize>,
    /// Overrides `max_db_client_connections`.
    pub max_db_client_connections: Option<usize>,
    /// Overrides `max_db_connections`.
    pub max_db_connections: Option<usize>,
    /// Overrides `query_wait_timeout`.
    pub query_wait_timeout: Option<Duration>,
    /// Overrides `query_timeout`.
    pub query_timeout: Option<Duration>,
    /// Overrides `idle_transaction_timeout`.
    pub idle_transaction_timeout: Option<Duration>,
    /// Overrides `transaction_timeout`.
    pub transaction_timeout: Option<Duration>,
    /// Overrides `client_idle_timeout`.
    pub client_idle_timeout: Option<Duration>,
    /// Overrides `server_lifetime`.
    pub server_lifetime: Option<Duration>,
    /// Overrides `pool_mode`.
    pub pool_mode: Option<PoolMode>,
    /// Overrides `client_disconnect`.
    pub client_disconnect: Option<ClientDisconnect>,
    /// Overrides `session_state`.
    pub session_state: Option<SessionState>,
    /// Run on each new server connection.
    pub connect_query: Option<String>,
    /// Server-side start-up value.
    pub client_encoding: Option<String>,
    /// Server-side start-up value.
    pub datestyle: Option<String>,
    /// Server-side start-up value.
    pub timezone: Option<String>,
}

/// A line of `[users]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSettings {
    /// Overrides the database's and the default pool size.
    pub pool_size: Option<usize>,
    /// Overrides the database's and the general `reserve_pool_size`.
    pub reserve_pool_size: Option<usize>,
    /// Overrides `max_user_client_connections`.
    pub max_user_client_connections: Option<usize>,
    /// Overrides `max_user_connections`.
    pub max_user_connections: Option<usize>,
    /// Overrides `query_timeout`.
    pub query_timeout: Option<Duration>,
    /// Overrides `query_wait_timeout`.
    pub query_wait_timeout: Option<Duration>,
    /// Overrides `idle_transaction_timeout`.
    pub idle_transaction_timeout: Option<Duration>,
    /// Overrides `transaction_timeout`.
    pub transaction_timeout: Option<Duration>,
    /// Overrides `client_idle_timeout`.
    pub client_idle_timeout: Option<Duration>,
    /// Overrides `pool_mode`.
    pub pool_mode: Option<PoolMode>,
    /// Overrides `client_disconnect`.
    pub client_disconnect: Option<ClientDisconnect>,
    /// Overrides `session_state`.
    pub session_state: Option<SessionState>,
}

/// A line of `[lanes]`: a class of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Patterns of `application_name`; none is any.
    pub application_name: Vec<String>,
    /// Patterns of the user that logs in; none is any.
    pub user: Vec<String>,
    /// Patterns of the database that is asked for; none is any.
    pub database: Vec<String>,
    /// Turns, relative to the other lanes.
    pub weight: u32,
    /// Servers that come first to this lane, of a hundred.
    pub share_percent: u32,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            name: String::new(),
            application_name: Vec::new(),
            user: Vec::new(),
            database: Vec::new(),
            weight: 1,
            share_percent: 0,
        }
    }
}
