//! One role of a network, as a process that can be killed, stopped, frozen and started again.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use cluster::Account;

use crate::clock;
use crate::daemon::Daemon;
use crate::namespaces::Site;
use crate::port::PortLease;
use crate::process::Signal;

/// How long a role may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(30);

/// What a role is started with.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub name: String,
    pub program: PathBuf,
    pub words: Vec<String>,
    pub account: Account,
    /// The folder of the whole network: its log stands there, and it goes with it.
    pub home: PathBuf,
    /// Where it listens, if it does.
    pub ip: IpAddr,
    /// Where it stands; none: where the drill does.
    pub site: Option<Site>,
}

/// A role. Its methods block; dropping it kills it.
#[derive(Debug)]
pub struct Service {
    start: Start,
    port: Option<PortLease>,
    daemon: Option<Daemon>,
    frozen: bool,
}

impl Service {
    pub(super) const fn new(start: Start, port: Option<PortLease>) -> Self {
        Self { start, port, daemon: None, frozen: false }
    }

    /// What it is called: `relay-0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.start.name
    }

    /// Where it listens; a provider listens nowhere.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.port.as_ref().map(|port| SocketAddr::new(self.start.ip, port.number()))
    }

    pub(super) fn listens_at(&self) -> anyhow::Result<SocketAddr> {
        self.address().with_context(|| format!("{} listens nowhere", self.name()))
    }

    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// It runs already, or does not come up; the error quotes its log.
    pub fn start(&mut self) -> anyhow::Result<()> {
        ensure!(self.daemon.is_none(), "{} still runs", self.name());
        let Start { name, program, words, account, home, ip: _, site } = &self.start;
        let mut command = account.command(program);
        command.args(words);
        for variable in ["HOLDFAST_LOG", "RUST_BACKTRACE"] {
            if let Some(value) = std::env::var_os(variable) {
                command.env(variable, value);
            }
        }
        let spawn = || Daemon::spawn(command, name, &self.log_path(), Signal::KILL, home);
        let mut daemon = match site {
            Some(site) => site.within(spawn)?,
            None => spawn()?,
        };
        if let Some(address) = self.address() {
            daemon.wait_ready(START_LIMIT, || TcpStream::connect(address).is_ok())?;
        }
        self.daemon = Some(daemon);
        Ok(())
    }

    /// SIGKILL: nobody is told anything.
    pub fn kill(&mut self) {
        self.daemon = None;
        self.frozen = false;
    }

    /// SIGTERM, and waits for its end.
    ///
    /// # Errors
    /// It does not run, or does not end within `limit`.
    pub fn stop(&mut self, limit: Duration) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        let name = self.name().to_owned();
        let Some(daemon) = &mut self.daemon else { bail!("{name} does not run") };
        ensure!(daemon.wait_end(limit).is_some(), "{name} did not stop within {limit:?}");
        self.daemon = None;
        Ok(())
    }

    /// Holds its process where it stands (SIGSTOP).
    ///
    /// # Errors
    /// It does not run.
    pub fn freeze(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)?;
        self.frozen = true;
        Ok(())
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// It does not run.
    pub fn thaw(&mut self) -> anyhow::Result<()> {
        self.frozen = false;
        self.signal(Signal::CONT)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let Some(daemon) = &self.daemon else { bail!("{} does not run", self.name()) };
        daemon.signal(signal)
    }

    /// Whether its process is there.
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        self.daemon.as_mut().is_some_and(|daemon| daemon.ended().is_none())
    }

    /// Its process.
    ///
    /// # Errors
    /// It does not run.
    pub fn pid(&self) -> anyhow::Result<u32> {
        self.daemon.as_ref().map(Daemon::id).with_context(|| format!("{} does not run", self.name()))
    }

    /// What it has logged since the network began.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Waits until its log, from byte `from` on, holds a text.
    #[must_use]
    pub fn says(&self, text: &str, from: usize, limit: Duration) -> bool {
        clock::wait_for(limit, || self.log().get(from..).is_some_and(|log| log.contains(text)))
    }

    fn log_path(&self) -> PathBuf {
        log_path(&self.start.home, self.name())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A frozen process does not hear SIGTERM; `Daemon` kills.
        if self.frozen {
            let _ = self.thaw();
        }
    }
}

fn log_path(home: &Path, name: &str) -> PathBuf {
    home.join(format!("{name}.log"))
}
