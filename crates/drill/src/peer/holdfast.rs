//! Our own pooler, as a process.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Peer, PoolerSetup};
use crate::port::PortLease;
use crate::scratch::Scratch;
use cluster::Account;

/// A built `holdfast` program. It runs as the caller, root or not.
#[derive(Clone, Debug)]
pub struct Holdfast {
    program: PathBuf,
    environment: Vec<(String, String)>,
    /// Settings of its own beside the shared ones, in TOML; none: a `pgbouncer.ini`.
    own: Option<Vec<(String, String)>>,
}

impl Holdfast {
    /// The program at `program` (tests: `env!("CARGO_BIN_EXE_holdfast")`; the bench: its own executable).
    ///
    /// # Errors
    /// There is no such file.
    pub fn new(program: &Path) -> anyhow::Result<Self> {
        let program =
            fs::canonicalize(program).with_context(|| format!("no program at {}", program.display()))?;
        Ok(Self { program, environment: Vec::new(), own: None })
    }

    /// Sets an environment variable of the process.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// It gets its settings in TOML, with the defaults that holdfast has there.
    #[must_use]
    pub fn toml(mut self) -> Self {
        self.own.get_or_insert_default();
        self
    }

    /// Sets a setting that others need not know; in TOML.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.own.get_or_insert_default().push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts `holdfast pooler FILE` with the same `pgbouncer.ini` that PgBouncer would get (or the same settings in TOML), and
    /// waits until it listens.
    ///
    /// # Errors
    /// It does not come up; the error quotes its log.
    pub fn start(&self, setup: &PoolerSetup) -> anyhow::Result<Peer> {
        let name = if self.own.is_some() { "pooler.toml" } else { "pgbouncer.ini" };
        self.start_with(name, |port, folder| {
            let users = folder.join("userlist.txt");
            fs::write(&users, setup.user_list()).context("cannot write userlist.txt")?;
            fs::set_permissions(&users, fs::Permissions::from_mode(0o600))?;
            match &self.own {
                Some(own) => setup.toml(port, &users, own),
                None => Ok(setup.ini(port, &users)),
            }
        })
    }

    /// Starts `holdfast pooler FILE` with any text (the file's ending decides how it is read). `text` is given the port
    /// that the pooler has to listen on (on 127.0.0.1) and its folder, which goes when it does.
    ///
    /// # Errors
    /// It does not come up; the error quotes its log.
    pub fn start_with(
        &self,
        file_name: &str,
        text: impl FnOnce(u16, &Path) -> anyhow::Result<String>,
    ) -> anyhow::Result<Peer> {
        let scratch = Scratch::new("holdfast", &Account::Own)?;
        let port = PortLease::take()?;
        let config = scratch.path().join(file_name);
        let text = text(port.number(), scratch.path())?;
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let mut command = Account::Own.command(&self.program);
        command.arg("pooler").arg(&config).envs(self.environment.iter().cloned());
        Peer::start("holdfast".to_owned(), command, config, port, scratch)
    }
}
