//! A private PostgreSQL server: own data folder, own Unix socket, own port on 127.0.0.1, gone when dropped.

mod backends;
mod options;
mod template;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

pub use backends::Backend;
pub use cluster::{Binaries, MissingServer};
pub use options::PostgresOptions;

use crate::clock;
use crate::daemon::Daemon;
use crate::port::PortLease;
use crate::process::{self, Signal};
use crate::scratch::Scratch;
use crate::wire::{self, Address};
use cluster::Account;

/// The superuser of every private server; always trusted on the Unix socket.
pub const ADMIN_USER: &str = "postgres";
/// The plain user that owns [`DATABASE`].
pub const USER: &str = "bench";
/// The database that every private server has.
pub const DATABASE: &str = "bench";

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const ADMIN_LIMIT: Duration = Duration::from_secs(20);
/// How long the processes of a server may take to stand still; a process in the middle of a write stops after it.
const PAUSE_LIMIT: Duration = Duration::from_secs(10);

/// How a server is asked to stop (the signals of the postmaster).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// SIGINT: sessions are ended, then a checkpoint.
    Fast,
    /// SIGQUIT: everything ends at once; recovery at the next start.
    Immediate,
}

/// A private server. Its methods block (they drive processes); dropping it stops it at once and removes its folder.
#[derive(Debug)]
pub struct PrivatePostgres {
    daemon: Option<Daemon>,
    binaries: Binaries,
    account: Account,
    options: PostgresOptions,
    port: PortLease,
    scratch: Scratch,
    paused: bool,
}

impl PrivatePostgres {
    /// Starts one with the default options.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_default() -> anyhow::Result<Self> {
        Self::start(PostgresOptions::default())
    }

    /// Makes a data folder from the template of this server's version (built once a machine) and starts a server on it.
    ///
    /// # Errors
    /// [`MissingServer`] when no server is installed; else what failed, with the end of the server's log.
    pub fn start(options: PostgresOptions) -> anyhow::Result<Self> {
        let binaries = Binaries::find()?;
        let account = Account::unprivileged()?;
        let template = template::prepare(&binaries, &account)?;
        let scratch = Scratch::new("pg", &account)?;
        template::copy(&template, &scratch.path().join("data"), &account)?;
        for (name, text) in &options.files {
            let path = scratch.path().join("data").join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            account.give(&path)?;
        }
        let port = PortLease::take()?;
        let mut server = Self { daemon: None, binaries, account, options, port, scratch, paused: false };
        server.launch()?;
        Ok(server)
    }

    /// Starts a stopped server again, on the same port and data.
    ///
    /// # Errors
    /// It still runs, or does not come up.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        ensure!(self.daemon.is_none(), "the server still runs");
        self.launch()
    }

    /// Stops the server; its port then refuses connections. A paused server is resumed first.
    ///
    /// # Errors
    /// It is not running, or does not end in time.
    pub fn stop(&mut self, mode: StopMode) -> anyhow::Result<()> {
        self.resume()?;
        let Some(mut daemon) = self.daemon.take() else { bail!("the server is already stopped") };
        daemon.signal(match mode {
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        })?;
        ensure!(daemon.wait_end(STOP_LIMIT).is_some(), "the server did not stop within {STOP_LIMIT:?}");
        Ok(())
    }

    /// [`Self::stop`], then [`Self::start_again`].
    ///
    /// # Errors
    /// As those.
    pub fn restart(&mut self, mode: StopMode) -> anyhow::Result<()> {
        self.stop(mode)?;
        self.start_again()
    }

    /// Stops every process of the server where it stands (SIGSTOP): the kernel still accepts connections and bytes,
    /// nobody answers. This is what a stalled disk or a frozen machine looks like from outside.
    ///
    /// # Errors
    /// The server is not running, or a process cannot be signalled.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        let root = self.pid()?;
        self.paused = true;
        let running = |pid: &u32| process::state(*pid).is_some_and(|state| state != 'T' && state != 'Z');
        let end = clock::now() + PAUSE_LIMIT;
        while clock::now() < end {
            let family: Vec<u32> = self.pids()?.into_iter().filter(running).collect();
            if family.is_empty() && !running(&root) {
                return Ok(());
            }
            for pid in family {
                process::signal(pid, Signal::STOP)?;
            }
            clock::rest(Duration::from_millis(1));
        }
        bail!("the server's processes did not all stop")
    }

    /// Lets every process go on (SIGCONT). Does nothing if it is not paused.
    ///
    /// # Errors
    /// A process cannot be signalled.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        if self.paused {
            for pid in self.pids()?.into_iter().rev() {
                process::signal(pid, Signal::CONT)?;
            }
            self.paused = false;
        }
        Ok(())
    }

    /// Runs SQL as the superuser in database [`DATABASE`], on a connection of its own over the Unix socket; returns
    /// the rows of the last statement that had any, as text.
    ///
    /// # Errors
    /// The server's error, or no answer within 20 s.
    pub fn admin(&self, sql: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
        self.admin_in(DATABASE, sql)
    }

    /// [`Self::admin`] in another database.
    ///
    /// # Errors
    /// As there.
    pub fn admin_in(&self, database: &str, sql: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
        let options = wire::ConnectOptions::new(self.socket_address(), ADMIN_USER, database);
        let ask = async {
            let mut connection = wire::Connection::connect(&options).await?;
            let reply = connection.query(sql).await?;
            connection.terminate().await?;
            reply.into_result()
        };
        let rows = wire::block_on(async { tokio::time::timeout(ADMIN_LIMIT, ask).await })?
            .map_err(|_| anyhow::anyhow!("no answer from the private server within {ADMIN_LIMIT:?}"))?
            .with_context(|| format!("the private server refused: {sql}"))?;
        Ok(rows.rows)
    }

    /// Process id of the postmaster.
    ///
    /// # Errors
    /// The server is not running.
    pub fn pid(&self) -> anyhow::Result<u32> {
        self.daemon.as_ref().map(Daemon::id).context("the private server is stopped")
    }

    /// Every process of this server, the postmaster first.
    ///
    /// # Errors
    /// The server is not running.
    pub fn pids(&self) -> anyhow::Result<Vec<u32>> {
        let root = self.pid()?;
        Ok(std::iter::once(root).chain(process::children(root)).collect())
    }

    /// TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// TCP address.
    #[must_use]
    pub fn tcp_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port()).into()
    }

    /// Folder of the Unix socket (`host=` of libpq, with [`Self::port`]).
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        self.scratch.path()
    }

    /// Path of the Unix socket.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.socket_dir().join(format!(".s.PGSQL.{}", self.port()))
    }

    /// The Unix socket as an address for [`wire`].
    #[must_use]
    pub fn socket_address(&self) -> Address {
        Address::Unix(self.socket_path())
    }

    /// `postgresql://bench@127.0.0.1:PORT/bench`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgresql://{USER}@{}/{DATABASE}", self.tcp_address())
    }

    /// The installed programs that this server runs on (for `pgbench`, `psql` of the same version).
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The server's log so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.scratch.path().join("log")
    }

    fn data_dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    fn launch(&mut self) -> anyhow::Result<()> {
        let data = self.data_dir();
        let hba = data.join("pg_hba.conf");
        fs::write(&hba, self.options.hba_file())
            .with_context(|| format!("cannot write {}", hba.display()))?;
        let mut command = self.account.command(&self.binaries.program("postgres"));
        command.arg("-D").arg(&data).arg("-p").arg(self.port().to_string());
        command.arg("-k").arg(self.socket_dir());
        for setting in self.options.settings() {
            command.arg("-c").arg(setting);
        }
        let mut daemon =
            Daemon::spawn(command, "PostgreSQL", &self.log_path(), Signal::QUIT, self.scratch.path())?;
        let pid_file = data.join("postmaster.pid");
        let pid = daemon.id().to_string();
        daemon.wait_ready(START_LIMIT, || says_ready(&pid_file, &pid))?;
        self.daemon = Some(daemon);
        Ok(())
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if self.daemon.is_some() && self.stop(StopMode::Immediate).is_err() {
            // `stop` has taken the daemon: dropping that killed the postmaster and its children.
            self.daemon = None;
        }
    }
}

/// The postmaster writes its state into the eighth line of its file (from PostgreSQL 10 on).
fn says_ready(pid_file: &Path, pid: &str) -> bool {
    let text = fs::read_to_string(pid_file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.first() == Some(&pid) && lines.get(7) == Some(&"ready")
}

#[cfg(test)]
mod tests;
