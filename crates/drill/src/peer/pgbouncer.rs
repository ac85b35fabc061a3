//! PgBouncer, if it is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use super::{Peer, PoolerSetup};
use crate::port::PortLease;
use crate::scratch::Scratch;
use cluster::Account;

/// Names the program, if none is given by the caller.
const PROGRAM_VARIABLE: &str = "PGBOUNCER";
/// Where Debian puts it, which is not on everyone's `PATH`.
const DEBIAN_PROGRAM: &str = "/usr/sbin/pgbouncer";

/// PgBouncer is not installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "no PgBouncer found (looked at PGBOUNCER, PATH and {DEBIAN_PROGRAM}); install it: apt-get install pgbouncer"
)]
pub struct MissingPgbouncer;

/// An installed PgBouncer.
#[derive(Clone, Debug)]
pub struct Pgbouncer {
    program: PathBuf,
    version: String,
    account: Account,
}

impl Pgbouncer {
    /// Finds it: the given path, else the environment variable `PGBOUNCER`, `PATH`, `/usr/sbin`.
    ///
    /// # Errors
    /// [`MissingPgbouncer`]; or the given program does not run as the account that it would run as (PgBouncer refuses
    /// root).
    pub fn find(program: Option<&Path>) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let program = match program
            .map(Path::to_path_buf)
            .or_else(|| std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from))
        {
            Some(program) => fs::canonicalize(&program)
                .with_context(|| format!("no PgBouncer at {}", program.display()))?,
            None => installed().ok_or(MissingPgbouncer)?,
        };
        let output = account
            .command(&program)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {} as an unprivileged user", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.lines().next().and_then(|line| line.strip_prefix("PgBouncer ")) {
            Some(version) => Ok(Self { program, version: version.trim().to_owned(), account }),
            None => bail!("{} does not say that it is PgBouncer", program.display()),
        }
    }

    /// Its version, such as `1.24.1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Starts one, and waits until it listens.
    ///
    /// # Errors
    /// It does not come up; the error quotes its log.
    pub fn start(&self, setup: &PoolerSetup) -> anyhow::Result<Peer> {
        let scratch = Scratch::new("pgbouncer", &self.account)?;
        let port = PortLease::take()?;
        let (config, users) = (scratch.path().join("pgbouncer.ini"), scratch.path().join("userlist.txt"));
        fs::write(&users, setup.user_list()).context("cannot write userlist.txt")?;
        fs::write(&config, setup.ini(port.number(), &users)).context("cannot write pgbouncer.ini")?;
        let mut command: Command = self.account.command(&self.program);
        command.arg(&config);
        Peer::start(format!("PgBouncer {}", self.version), command, config, port, scratch)
    }
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join("pgbouncer"));
    folders.chain([PathBuf::from(DEBIAN_PROGRAM)]).find(|program| program.is_file())
}
