//! The account that servers run as: PostgreSQL and PgBouncer refuse to run as root.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Accounts that are taken, in this order, when the caller is root.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// Who runs a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// The caller's own account, which is not root.
    Own,
    /// Another account, because the caller is root.
    Other {
        /// Name in `/etc/passwd`.
        name: String,
        /// User id.
        user_id: u32,
        /// Primary group id.
        group_id: u32,
    },
}

/// The caller is root and there is no account to give a server to.
#[derive(Debug, thiserror::Error)]
#[error("PostgreSQL never runs as root, and this machine has neither an account `postgres` nor `nobody`")]
pub struct NoAccount;

impl Account {
    /// The account for servers that refuse root: the caller's own, or `postgres` (else `nobody`) if the caller is root.
    ///
    /// # Errors
    /// The caller is root and neither account exists.
    pub fn unprivileged() -> Result<Self, NoAccount> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let table = fs::read_to_string("/etc/passwd").unwrap_or_default();
        CANDIDATES.iter().find_map(|name| Self::find(&table, name)).ok_or(NoAccount)
    }

    /// A command that runs as this account, with a small environment (`PATH`, `LC_ALL=C`), in `/`, in a process group
    /// of its own (so that Ctrl-C at a terminal reaches the owner first), without standard input.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("LC_ALL", "C").current_dir("/").process_group(0).stdin(Stdio::null());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        if let Self::Other { user_id, group_id, .. } = self {
            // Supplementary groups are dropped by the standard library when root sets a user id.
            command.uid(*user_id).gid(*group_id);
        }
        command
    }

    /// Gives a file or folder to this account.
    ///
    /// # Errors
    /// As `chown(2)`.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Other { user_id, group_id, .. } => chown(path, Some(*user_id), Some(*group_id)),
        }
    }

    fn find(table: &str, wanted: &str) -> Option<Self> {
        table.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| *name == wanted)?;
            let user_id = fields.nth(1)?.parse().ok()?;
            let group_id = fields.next()?.parse().ok()?;
            Some(Self::Other { name: name.to_owned(), user_id, group_id })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let table =
            "root:x:0:0::/:/bin/sh\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:x,,,:/:/bin/bash\n";
        let expected = Account::Other { name: "postgres".into(), user_id: 101, group_id: 104 };
        assert_eq!(Account::find(table, "postgres"), Some(expected));
        assert_eq!(Account::find(table, "nobody"), None);
    }
}
