//! One pooler with a PostgreSQL and paths of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::load::{Load, LoadOptions, Seen};
use super::{POOL_SIZE, capacity};
use crate::peer::{Peer, PoolerProgram, PoolerSetup};
use crate::port::PortLease;
use crate::postgres::{DATABASE, PostgresOptions, PrivatePostgres};
use crate::relay::Relay;
use crate::wire::Address;

/// Room beside the pools: cancel requests, closing connections, our own looks.
const SPARE_CONNECTIONS: u32 = 100;
/// More than a load ever holds.
const CLIENTS: usize = super::load::MOST_IN_FLIGHT + 1_000;

/// Whose figures these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolerKind {
    /// It has to hold.
    Ours,
    /// It is there to compare with.
    Peer,
}

/// What stands between callers and the database.
#[derive(Clone, Debug)]
pub struct SideOptions {
    /// Servers of each pool.
    pub pool_size: u32,
    /// Each pool's database name, and which path leads from it to the server. Behind every name is the same database.
    pub pools: Vec<(String, usize)>,
    /// Paths (relays) to the server.
    pub paths: usize,
    /// Every request sleeps so long at the database, ms.
    pub query_ms: u64,
    /// Further settings of the pooler.
    pub settings: Vec<(String, String)>,
    /// Settings that only holdfast has.
    pub own_settings: Vec<(String, String)>,
}

impl SideOptions {
    /// One pool of 20, and a query of 50 ms: 400 answers a second.
    #[must_use]
    pub fn new() -> Self {
        Self {
            pool_size: POOL_SIZE,
            pools: vec![(DATABASE.to_owned(), 0)],
            paths: 1,
            query_ms: 50,
            settings: Vec::new(),
            own_settings: Vec::new(),
        }
    }

    /// What is asked.
    #[must_use]
    pub fn query(&self) -> String {
        format!("select pg_sleep({})", self.query_ms as f64 / 1e3)
    }

    /// What the database is built to give, answers a second.
    #[must_use]
    pub fn nominal_per_s(&self) -> f64 {
        f64::from(self.servers()) * 1e3 / self.query_ms as f64
    }

    /// Servers of all pools.
    #[must_use]
    pub fn servers(&self) -> u32 {
        self.pool_size * u32::try_from(self.pools.len()).unwrap_or(u32::MAX)
    }
}

impl Default for SideOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A running pooler, its server, and the paths between.
#[derive(Debug)]
pub struct Side {
    /// What it is, with its version.
    pub name: String,
    /// Whether it has to hold.
    pub kind: PoolerKind,
    // In the order in which they go.
    pub(super) load: Option<Load>,
    pub(super) seen: Seen,
    /// The pooler.
    pub pooler: Peer,
    /// The paths to the server.
    pub paths: Vec<Relay>,
    /// The server.
    pub server: PrivatePostgres,
    /// Where holdfast serves metrics and health.
    pub metrics: PortLease,
    options: SideOptions,
}

impl Side {
    pub(super) fn start(program: &PoolerProgram, options: &SideOptions) -> anyhow::Result<Self> {
        let connections = options.servers() * 2 + SPARE_CONNECTIONS;
        let server = PrivatePostgres::start(
            // Thousands of lines a minute help nobody.
            PostgresOptions::default()
                .max_connections(connections)
                .setting("log_connections", "off")
                .setting("log_disconnections", "off"),
        )?;
        let address = server.tcp_address();
        let paths: Vec<Relay> =
            (0..options.paths).map(|_| Relay::start(address)).collect::<anyhow::Result<_>>()?;
        let mut setup = PoolerSetup::new(address)
            .setting("default_pool_size", &options.pool_size.to_string())
            .setting("max_client_conn", &CLIENTS.to_string());
        for (name, path) in &options.pools {
            let port = paths.get(*path).map_or(address, Relay::address).port();
            setup = setup.database(&format!("{name} = host=127.0.0.1 port={port} dbname={DATABASE}"));
        }
        let own = match program {
            PoolerProgram::Holdfast(_) => options.own_settings.as_slice(),
            PoolerProgram::Pgbouncer(_) => &[],
        };
        for (name, value) in options.settings.iter().chain(own) {
            setup = setup.setting(name, value);
        }
        let metrics = PortLease::take()?;
        if matches!(program, PoolerProgram::Holdfast(_)) {
            setup = setup.setting("metrics_listen", &metrics.address().to_string());
        }
        let pooler = program.start(&setup)?;
        let kind = match program {
            PoolerProgram::Holdfast(_) => PoolerKind::Ours,
            PoolerProgram::Pgbouncer(_) => PoolerKind::Peer,
        };
        let (load, seen) = (None, Seen::default());
        let (name, options) = (program.name(), options.clone());
        Ok(Self { name, kind, load, seen, pooler, paths, server, metrics, options })
    }

    /// What the server gives through as many connections as the pools have, without the pooler.
    pub(super) fn capacity_per_s(&self, span: Duration) -> anyhow::Result<f64> {
        let server = Address::Tcp(self.server.tcp_address());
        capacity::measure(&server, self.options.servers(), &self.options.query(), span)
    }

    /// Startup parameters of a caller with that patience.
    pub(super) fn parameters(&self, patience: Duration) -> Vec<(String, String)> {
        let mut parameters = vec![("application_name".to_owned(), "drill".to_owned())];
        // Others refuse what they do not know.
        if self.kind == PoolerKind::Ours {
            parameters.push(("holdfast.patience".to_owned(), format!("{}ms", patience.as_millis())));
        }
        parameters
    }

    pub(super) fn begin(&mut self, load: LoadOptions) -> anyhow::Result<()> {
        self.load = Some(Load::start(load)?);
        Ok(())
    }

    pub(super) fn finish_load(&mut self) -> anyhow::Result<()> {
        if let Some(load) = self.load.take() {
            self.seen = load.finish()?;
        }
        Ok(())
    }

    /// The processes that serve the pooler now.
    ///
    /// # Errors
    /// The server is not running.
    pub fn backends(&self) -> anyhow::Result<BTreeSet<u32>> {
        Ok(self.server.backend_processes()?.into_iter().collect())
    }

    /// Connections that came to the server's paths so far, cancel requests too.
    #[must_use]
    pub fn dials(&self) -> u64 {
        self.paths.iter().map(|path| path.counts().opened).sum()
    }
}
