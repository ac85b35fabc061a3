//! Private Redis or Valkey servers: one, or a Cluster of a few, on loopback ports, gone with their owner.

mod cluster;

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ::cluster::Account;
use anyhow::{Context as _, bail, ensure};

pub use cluster::RedisCluster;

use crate::clock;
use crate::daemon::Daemon;
use crate::port::PortLease;
use crate::process::Signal;
use crate::scratch::Scratch;

/// How long a server may take until it listens, and to end.
const START_LIMIT: Duration = Duration::from_secs(20);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Where servers may be installed beside the path.
const FOLDERS: [&str; 3] = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];

/// The programs of one kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisKind {
    /// `redis-server` and `redis-cli`.
    Redis,
    /// `valkey-server` and `valkey-cli`.
    Valkey,
}

impl RedisKind {
    /// Where its server and its command line are; none if they are not installed.
    #[must_use]
    pub fn programs(self) -> Option<(PathBuf, PathBuf)> {
        let (server, cli) = match self {
            Self::Redis => ("redis-server", "redis-cli"),
            Self::Valkey => ("valkey-server", "valkey-cli"),
        };
        Some((find(server)?, find(cli)?))
    }

    /// All kinds that are installed.
    #[must_use]
    pub fn installed() -> Vec<Self> {
        [Self::Redis, Self::Valkey].into_iter().filter(|kind| kind.programs().is_some()).collect()
    }
}

/// A server without persistence. Dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct PrivateRedis {
    server: PathBuf,
    cli: PathBuf,
    options: Vec<String>,
    daemon: Option<Daemon>,
    port: PortLease,
    paused: bool,
    scratch: Scratch,
}

impl PrivateRedis {
    /// Starts one. `options` are those of its command line (`--requirepass`, `secret`, …).
    ///
    /// # Errors
    /// It is not installed, or does not come up.
    pub fn start(kind: RedisKind, options: &[&str]) -> anyhow::Result<Self> {
        let Some((server, cli)) = kind.programs() else { bail!("no {kind:?} server is installed") };
        let account = Account::unprivileged().context("no account to run a server as")?;
        let mut redis = Self {
            server,
            cli,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            daemon: None,
            port: PortLease::take()?,
            paused: false,
            scratch: Scratch::new("redis", &account)?,
        };
        redis.start_again()?;
        Ok(redis)
    }

    /// Starts a stopped server again, on the same port and empty.
    ///
    /// # Errors
    /// It still runs, or does not come up.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        ensure!(self.daemon.is_none(), "the server still runs");
        let account = Account::unprivileged().context("no account to run a server as")?;
        let mut command = account.command(&self.server);
        command.current_dir(self.scratch.path());
        command.args(["--port", &self.port().to_string(), "--bind", "127.0.0.1"]);
        command.args(["--dir".as_ref(), self.scratch.path().as_os_str()]);
        command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]).args(&self.options);
        let log = self.scratch.path().join("log");
        let mut daemon = Daemon::spawn(command, "Redis", &log, Signal::KILL, self.scratch.path())?;
        daemon.wait_ready(START_LIMIT, || TcpStream::connect(self.address()).is_ok())?;
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Kills it; its port then refuses connections.
    ///
    /// # Errors
    /// It does not run, or does not end.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.paused = false;
        let Some(mut daemon) = self.daemon.take() else { bail!("the server is already stopped") };
        daemon.signal(Signal::KILL)?;
        ensure!(daemon.wait_end(STOP_LIMIT).is_some(), "the server did not end within {STOP_LIMIT:?}");
        Ok(())
    }

    /// Stops it where it stands (SIGSTOP): connections are still accepted by the kernel, nobody answers.
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        self.daemon()?.signal(Signal::STOP)?;
        self.paused = true;
        Ok(())
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.daemon()?.signal(Signal::CONT)?;
        self.paused = false;
        Ok(())
    }

    /// Runs one command through the server's own command line, and returns what it printed.
    ///
    /// # Errors
    /// It cannot be run, or the server answered with an error.
    pub fn command(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.cli);
        command.args(["-p", &self.port().to_string()]).args(arguments).stdin(Stdio::null());
        if let Some(password) = self.password() {
            command.env("REDISCLI_AUTH", password).env("VALKEYCLI_AUTH", password);
        }
        let output = command.output().context("cannot run the command line of Redis")?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let failed = ["ERR ", "MOVED ", "WRONGPASS", "NOAUTH", "CLUSTERDOWN", "Could not connect"];
        if !output.status.success() || failed.iter().any(|start| text.starts_with(start)) {
            bail!("{arguments:?}: {text} {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(text)
    }

    /// 127.0.0.1 and its port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://127.0.0.1:PORT`, with the password if it has one.
    #[must_use]
    pub fn url(&self) -> String {
        match self.password() {
            Some(password) => format!("redis://:{password}@{}", self.address()),
            None => format!("redis://{}", self.address()),
        }
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    fn password(&self) -> Option<&str> {
        let place = self.options.iter().position(|option| option == "--requirepass")?;
        self.options.get(place + 1).map(String::as_str)
    }

    fn daemon(&self) -> anyhow::Result<&Daemon> {
        self.daemon.as_ref().context("the server is stopped")
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        if self.daemon.is_some() && self.kill().is_err() {
            self.daemon = None;
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// Waits until something about servers is so.
fn until(what: &str, mut done: impl FnMut() -> bool) -> anyhow::Result<()> {
    ensure!(clock::wait_for(START_LIMIT, &mut done), "{what}: not within {START_LIMIT:?}");
    Ok(())
}

#[cfg(test)]
mod tests;
