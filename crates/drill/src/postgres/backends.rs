//! The processes that serve clients: seen through `/proc`, and through the server's own eyes.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};

use super::{ADMIN_USER, PrivatePostgres};
use crate::process::{self, Signal};

/// A client's session, as `pg_stat_activity` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Process id of the backend.
    pub pid: u32,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// `application_name`.
    pub application_name: String,
    /// `active`, `idle`, `idle in transaction`, …
    pub state: String,
    /// The running query, or the last one.
    pub query: String,
}

impl PrivatePostgres {
    /// Sends a signal to every process that serves a client, found by its title, so that it works whatever state the
    /// server is in. Returns their ids. With SIGKILL the postmaster then restarts the whole cluster by itself.
    ///
    /// # Errors
    /// The server is not running, or a process cannot be signalled.
    pub fn kill_backends(&self, signal: Signal) -> anyhow::Result<Vec<u32>> {
        let pids = self.backend_processes()?;
        for pid in &pids {
            process::signal(*pid, signal)?;
        }
        Ok(pids)
    }

    /// Sends a signal to one process of this server.
    ///
    /// # Errors
    /// The process is not one of this server's.
    pub fn kill_backend(&self, pid: u32, signal: Signal) -> anyhow::Result<()> {
        ensure!(process::children(self.pid()?).contains(&pid), "process {pid} is none of this server's");
        process::signal(pid, signal).context("cannot signal a backend")
    }

    /// The processes that serve a client now, from `/proc`: works while the server is paused, and sees sessions that
    /// still log in.
    ///
    /// # Errors
    /// The server is not running.
    pub fn backend_processes(&self) -> anyhow::Result<Vec<u32>> {
        let serves = |pid: &u32| process::title(*pid).is_some_and(|title| serves_client(&title));
        Ok(process::children(self.pid()?).into_iter().filter(serves).collect())
    }

    /// The sessions of clients, asked of the server itself over the administrator's socket; that session is left out.
    ///
    /// # Errors
    /// The server does not answer within 20 s.
    pub fn backends(&self) -> anyhow::Result<Vec<Backend>> {
        let rows = self.admin(
            "select pid, usename, datname, application_name, state, query from pg_stat_activity \
             where backend_type = 'client backend' and pid <> pg_backend_pid() order by backend_start, pid",
        )?;
        let backend = |row: Vec<Option<String>>| {
            let mut fields = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || fields.next().unwrap_or_default();
            let pid = next().parse().context("pg_stat_activity.pid is not a number")?;
            let (user, database, application_name, state, query) = (next(), next(), next(), next(), next());
            Ok(Backend { pid, user, database, application_name, state, query })
        };
        rows.into_iter().map(backend).collect()
    }

    /// Process ids of [`Self::backends`].
    ///
    /// # Errors
    /// As there.
    pub fn backend_pids(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.backends()?.into_iter().map(|backend| backend.pid).collect())
    }

    /// Number of [`Self::backends`].
    ///
    /// # Errors
    /// As there.
    pub fn backend_count(&self) -> anyhow::Result<usize> {
        Ok(self.backends()?.len())
    }
}

/// Titles of client processes are `postgres: USER DATABASE HOST STATE`; HOST is `[local]` or `ADDRESS(PORT)`.
/// The server's own processes have no such word. Our own administrator's sessions are no clients.
fn serves_client(title: &str) -> bool {
    let words: BTreeSet<&str> = title.split(' ').skip(1).collect();
    let ours = title.starts_with(&format!("postgres: {ADMIN_USER} ")) && words.contains("[local]");
    title.starts_with("postgres:")
        && !ours
        && words.iter().any(|word| *word == "[local]" || (word.contains('(') && word.ends_with(')')))
}

#[cfg(test)]
mod tests {
    use super::serves_client;

    #[test]
    fn only_titles_of_client_processes_are_taken_for_backends() {
        assert!(serves_client("postgres: bench bench [local] idle"));
        assert!(serves_client("postgres: a b 127.0.0.1(5234) SELECT waiting"));
        assert!(!serves_client("postgres: postgres bench [local] idle"));
        assert!(!serves_client("postgres: checkpointer"));
        assert!(!serves_client("postgres: logical replication launcher"));
        assert!(!serves_client("/usr/lib/postgresql/15/bin/postgres -D /tmp/x"));
    }
}
