//! PostgreSQL's own client.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::House;

/// How psql ended.
pub(crate) struct Psql {
    pub(crate) worked: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Where psql connects.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    Tcp,
    /// The folder of the socket.
    Unix(&'a Path),
}

/// Runs one command: unaligned, with column names, without a prompt for a password.
pub(crate) fn psql(
    house: &House,
    way: Way<'_>,
    user: &str,
    database: &str,
    password: Option<&str>,
    sql: &str,
) -> Psql {
    let mut command = Command::new(house.postgres.binaries().program("psql"));
    command.env_clear().env("LC_ALL", "C").env("PGCONNECT_TIMEOUT", "10").stdin(Stdio::null());
    match way {
        Way::Tcp => command.env("PGHOST", "127.0.0.1"),
        Way::Unix(folder) => command.env("PGHOST", folder),
    };
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    command.args([
        "-X",
        "-A",
        "-w",
        "-p",
        &house.pooler.port().to_string(),
        "-U",
        user,
        "-d",
        database,
        "-c",
        sql,
    ]);
    let output = command.output().unwrap();
    Psql {
        worked: output.status.success(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
