//! Poolers under test, started on a free port with a generated configuration: holdfast, and PgBouncer beside it.

mod holdfast;
mod pgbouncer;
mod setup;

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

pub use holdfast::Holdfast;
pub use pgbouncer::{MissingPgbouncer, Pgbouncer};
pub use setup::PoolerSetup;

use crate::daemon::Daemon;
use crate::port::PortLease;
use crate::process::Signal;
use crate::scratch::Scratch;
use crate::wire::{Address, ConnectOptions};

/// How long a pooler may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(15);

/// A pooler that can be started.
#[derive(Clone, Debug)]
pub enum PoolerProgram {
    /// Ours.
    Holdfast(Holdfast),
    /// PgBouncer.
    Pgbouncer(Pgbouncer),
}

impl PoolerProgram {
    /// What it is, with its version.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Holdfast(_) => "holdfast".to_owned(),
            Self::Pgbouncer(pgbouncer) => format!("PgBouncer {}", pgbouncer.version()),
        }
    }

    /// Starts one, and waits until it listens.
    ///
    /// # Errors
    /// It does not come up; the error quotes its log.
    pub fn start(&self, setup: &PoolerSetup) -> anyhow::Result<Peer> {
        match self {
            Self::Holdfast(holdfast) => holdfast.start(setup),
            Self::Pgbouncer(pgbouncer) => pgbouncer.start(setup),
        }
    }
}

/// A running pooler. Dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct Peer {
    name: String,
    daemon: Daemon,
    port: PortLease,
    config: PathBuf,
    log: PathBuf,
    _scratch: Scratch,
}

impl Peer {
    /// What it is, with its version: `PgBouncer 1.24.1`, `holdfast`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.daemon.id()
    }

    /// Its configuration file. Tests may rewrite it before a SIGHUP or RELOAD.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// How to log in to it.
    #[must_use]
    pub fn connect_options(&self, user: &str, database: &str) -> ConnectOptions {
        ConnectOptions::new(Address::Tcp(self.address()), user, database)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// As `kill(2)`.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.daemon.signal(signal)
    }

    /// Waits for its end; none if it still runs after `limit`.
    pub fn wait_end(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.daemon.wait_end(limit)
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.daemon.ended().is_none()
    }

    /// Starts `command` and waits until it accepts connections.
    fn start(
        name: String,
        command: Command,
        config: PathBuf,
        port: PortLease,
        scratch: Scratch,
    ) -> anyhow::Result<Self> {
        let log = scratch.path().join("log");
        let mut daemon = Daemon::spawn(command, &name, &log, Signal::KILL, scratch.path())?;
        daemon.wait_ready(START_LIMIT, || TcpStream::connect(port.address()).is_ok())?;
        Ok(Self { name, daemon, port, config, log, _scratch: scratch })
    }
}

#[cfg(test)]
mod tests;
