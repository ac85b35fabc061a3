//! A private PostgreSQL, the built pooler in front of it, and clients of both: what the integration tests stand on.
//! A test binary takes it in with `#[path]`, and uses what it needs of it.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and one that is not run says so"
)]

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use drill::peer::{Holdfast, Peer, PoolerSetup};
use drill::port::PortLease;
use drill::postgres::{ADMIN_USER, DATABASE, PostgresOptions, PrivatePostgres, USER};
use drill::relay::Relay;
use drill::wire::{Address, ConnectOptions, Connection, Error, Reply, ServerError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

/// No test waits longer than this for anything that is not itself about time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Rest between two looks at something that only can be asked for.
const LOOK: Duration = Duration::from_millis(10);

/// The program under test.
pub(crate) fn holdfast() -> Holdfast {
    Holdfast::new(Path::new(env!("CARGO_BIN_EXE_holdfast"))).unwrap()
}

/// One row of a SHOW command: column and text (empty for NULL).
pub(crate) type Row = BTreeMap<String, String>;

/// A database, perhaps a relay in front of it, and the pooler in front of that. Dropping it ends them all.
pub(crate) struct House {
    pub(crate) pooler: Peer,
    pub(crate) relay: Option<Relay>,
    pub(crate) postgres: PrivatePostgres,
    metrics: PortLease,
}

impl House {
    /// The pooler right in front of the database. `tune` changes the pooler's settings.
    pub(crate) fn start(tune: impl FnOnce(PoolerSetup) -> PoolerSetup) -> Self {
        Self::build(&holdfast(), PostgresOptions::default(), false, tune)
    }

    /// With a relay between the pooler and the database.
    pub(crate) fn start_behind_relay(tune: impl FnOnce(PoolerSetup) -> PoolerSetup) -> Self {
        Self::build(&holdfast(), PostgresOptions::default(), true, tune)
    }

    /// With other options of the database, or another way to start the program.
    pub(crate) fn build(
        program: &Holdfast,
        options: PostgresOptions,
        with_relay: bool,
        tune: impl FnOnce(PoolerSetup) -> PoolerSetup,
    ) -> Self {
        let postgres = PrivatePostgres::start(options).unwrap();
        Self::build_on(program, postgres, with_relay, |setup, _| tune(setup))
    }

    /// On a database that runs already, which `tune` may look at.
    pub(crate) fn build_on(
        program: &Holdfast,
        postgres: PrivatePostgres,
        with_relay: bool,
        tune: impl FnOnce(PoolerSetup, &PrivatePostgres) -> PoolerSetup,
    ) -> Self {
        let relay = with_relay.then(|| Relay::start(postgres.tcp_address()).unwrap());
        let server = relay.as_ref().map_or_else(|| postgres.tcp_address(), Relay::address);
        let metrics = PortLease::take().unwrap();
        let setup = PoolerSetup::new(server).setting("metrics_listen", &metrics.address().to_string());
        let pooler = program.start(&tune(setup, &postgres)).unwrap();
        Self { pooler, relay, postgres, metrics }
    }

    /// The relay of a house that was started with one.
    pub(crate) fn relay(&self) -> &Relay {
        self.relay.as_ref().expect("this house was started without a relay")
    }

    /// How the plain user logs in to the pooler.
    pub(crate) fn options(&self) -> ConnectOptions {
        self.pooler.connect_options(USER, DATABASE)
    }

    /// A client, logged in.
    pub(crate) async fn client(&self) -> Connection {
        connect(&self.options()).await
    }

    /// A client of the database itself, past the pooler.
    pub(crate) async fn direct(&self) -> Connection {
        connect(&ConnectOptions::new(Address::Tcp(self.postgres.tcp_address()), USER, DATABASE)).await
    }

    /// Opens `count` server connections of the plain user's pool, and lets go of them.
    pub(crate) async fn warm(&self, count: usize) {
        let mut clients = Vec::new();
        for _ in 0..count {
            let mut client = self.client().await;
            value(&mut client, "begin; select 1").await;
            clients.push(client);
        }
        for client in &mut clients {
            client.query("commit").await.unwrap();
        }
        for client in clients {
            client.terminate().await.unwrap();
        }
        self.wait_pool("servers are idle after warming up", |pool| number(pool, "sv_idle") == count).await;
    }

    /// A session of the console's administrator.
    pub(crate) async fn console(&self) -> Connection {
        connect(&self.pooler.connect_options(ADMIN_USER, "pgbouncer")).await
    }

    /// The rows of `SHOW …`, asked in a session of its own.
    pub(crate) async fn show(&self, what: &str) -> Vec<Row> {
        let mut console = self.console().await;
        let rows = show(&mut console, what).await;
        console.terminate().await.unwrap();
        rows
    }

    /// The row of SHOW POOLS of the plain user; empty before there is one.
    pub(crate) async fn pool(&self) -> Row {
        let rows = self.show("POOLS").await;
        rows.into_iter().find(|row| row["database"] == DATABASE && row["user"] == USER).unwrap_or_default()
    }

    /// Waits until the plain user's pool looks as it should.
    pub(crate) async fn wait_pool(&self, what: &str, done: impl Fn(&Row) -> bool) -> Row {
        let end = Instant::now() + PATIENCE;
        loop {
            let pool = self.pool().await;
            if !pool.is_empty() && done(&pool) {
                return pool;
            }
            assert!(Instant::now() < end, "not so within {PATIENCE:?}: {what}; SHOW POOLS says {pool:?}");
            sleep(LOOK).await;
        }
    }

    /// Waits until so many clients wait for a server.
    pub(crate) async fn wait_waiting(&self, count: usize) {
        self.wait_pool(&format!("{count} clients wait"), |pool| number(pool, "cl_waiting") == count).await;
    }

    /// Where metrics and health are served.
    pub(crate) fn metrics_address(&self) -> SocketAddr {
        self.metrics.address()
    }

    /// A metric without its prefix `holdfast_pooler_`, summed over all its labels; 0 if it has no series.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        self.metric_of(name, "").await
    }

    /// The same over the series that have this label, such as `cause="desync"`.
    pub(crate) async fn metric_of(&self, name: &str, label: &str) -> f64 {
        let text = http_body(self.metrics.address(), "/metrics").await;
        sum_of(&text, &format!("holdfast_pooler_{name}"), label)
    }

    /// Process ids of the sessions at the database, without those that ask for them (an earlier one may end late).
    pub(crate) fn backend_pids(&self) -> Vec<u32> {
        let backends = self.postgres.backends().unwrap();
        // A look at locks has a connection of its own, of the reserved slice, while a queue stands.
        let is_counted = |name: &str, user: &str| user != ADMIN_USER && name != "holdfast locks";
        let counted = backends.iter().filter(|backend| is_counted(&backend.application_name, &backend.user));
        counted.map(|backend| backend.pid).collect()
    }

    /// How many sessions were at the database at one moment, at least. One look at `pg_stat_activity` is no moment: it
    /// may meet a session before its end and, further on, the one that came after it. Those in two looks were there
    /// together between them.
    pub(crate) fn sessions_at_once(&self) -> usize {
        let (first, second) = (self.backend_pids(), self.backend_pids());
        first.iter().filter(|pid| second.contains(pid)).count()
    }

    /// Memory of the pooler.
    pub(crate) fn resident_bytes(&self) -> u64 {
        drill::process::resident_bytes(self.pooler.pid()).unwrap()
    }
}

/// Logs in, or fails the test.
pub(crate) async fn connect(options: &ConnectOptions) -> Connection {
    within(PATIENCE, "log in", Connection::connect(options)).await.unwrap()
}

/// Runs SQL that has to work, and returns the first value (empty if there is none).
pub(crate) async fn value(client: &mut Connection, sql: &str) -> String {
    let reply = within(PATIENCE, sql, client.query(sql)).await.unwrap().into_result().unwrap();
    reply.value().unwrap_or_default().to_owned()
}

/// Runs SQL that has to fail in an orderly way (the session goes on), and returns the error.
pub(crate) async fn error(client: &mut Connection, sql: &str) -> ServerError {
    let reply = within(PATIENCE, sql, client.query(sql)).await.unwrap();
    reply.error().unwrap_or_else(|| panic!("no error from {sql}: {reply:?}")).clone()
}

/// The rest of a reply that is under way.
pub(crate) async fn reply(client: &mut Connection) -> Result<Reply, Error> {
    within(PATIENCE, "a reply", client.read_reply()).await
}

/// The rows of `SHOW …` in a session of the console.
pub(crate) async fn show(console: &mut Connection, what: &str) -> Vec<Row> {
    let reply = within(PATIENCE, what, console.query(&format!("SHOW {what}"))).await.unwrap();
    let reply = reply.into_result().unwrap();
    let named = |row: &Vec<Option<String>>| {
        let values = row.iter().map(|value| value.clone().unwrap_or_default());
        reply.columns.iter().cloned().zip(values).collect()
    };
    reply.rows.iter().map(named).collect()
}

/// A number in a row of a SHOW command.
pub(crate) fn number(row: &Row, column: &str) -> usize {
    let text = row.get(column).unwrap_or_else(|| panic!("no column {column} in {row:?}"));
    text.parse().unwrap_or_else(|_| panic!("{column} is {text:?}, not a number"))
}

/// What a future gives, which may take no longer than `limit`.
pub(crate) async fn within<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    match timeout(limit, future).await {
        Ok(output) => output,
        Err(_) => panic!("not within {limit:?}: {what}"),
    }
}

/// Asks again and again until it is so.
pub(crate) async fn eventually(limit: Duration, what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !so() {
        assert!(Instant::now() < end, "not so within {limit:?}: {what}");
        sleep(LOOK).await;
    }
}

/// Says that a test is not run, and why. `scripts/test` repeats it at its end, from the file that it names.
pub(crate) fn not_run(reason: &str) {
    use std::io::Write as _;
    eprintln!("not run: {reason}");
    if let Some(list) = std::env::var_os("HOLDFAST_NOT_RUN") {
        let thread = std::thread::current();
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        writeln!(list, "{}: {reason}", thread.name().unwrap_or_default()).unwrap();
    }
}

/// The SQLSTATE that an error of a client carries; empty if the other side said nothing.
pub(crate) fn code(error: &Error) -> String {
    error.server().map(|error| error.code.clone()).unwrap_or_default()
}

/// Starts the program with at most `count` open descriptors.
pub(crate) fn holdfast_with_descriptors(count: u32, folder: &Path) -> Holdfast {
    use std::os::unix::fs::PermissionsExt as _;
    let script = folder.join("few-descriptors");
    let text = format!("#!/bin/sh\nulimit -n {count}\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_holdfast"));
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    Holdfast::new(&script).unwrap()
}

/// The body of an answer to a GET request.
pub(crate) async fn http_body(address: SocketAddr, path: &str) -> String {
    let get = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = within(PATIENCE, path, get).await.unwrap();
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

fn sum_of(metrics: &str, name: &str, label: &str) -> f64 {
    let value = |line: &str| {
        let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
        let is_it = (labels.is_empty() || labels.starts_with('{')) && labels.contains(label);
        is_it.then(|| value.parse::<f64>().ok())?
    };
    metrics.lines().filter_map(value).sum()
}
