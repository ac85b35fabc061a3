//! The ways to a database that a driver's script is run on.

use std::fmt;
use std::process::{Command, Output, Stdio};

use drill::peer::{Peer, PoolerSetup};
use drill::postgres::{DATABASE, PostgresOptions, PrivatePostgres, USER};

use crate::support::holdfast;

/// Not a word that needs no care anywhere.
pub(crate) const PASSWORD: &str = "a word, 'quoted' & ünïcödé";

/// What stands between the driver and the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// Nothing: PostgreSQL itself.
    Direct,
    /// holdfast in session mode.
    Session,
    /// holdfast in transaction mode, with fewer servers than a script has connections.
    Transaction,
}

impl fmt::Display for Between {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Direct => "direct",
            Self::Session => "session",
            Self::Transaction => "transaction",
        })
    }
}

/// A database whose plain user logs in by SCRAM.
pub(crate) fn database() -> PrivatePostgres {
    let options = PostgresOptions::default()
        .hba_line(&format!("host all {USER} 127.0.0.1/32 scram-sha-256"))
        // With the SQLSTATE, so that a test can look for it.
        .setting("log_line_prefix", "%m [%p] %u@%d %e ");
    let postgres = PrivatePostgres::start(options).unwrap();
    let quoted = PASSWORD.replace('\'', "''");
    postgres.admin(&format!("alter role {USER} password '{quoted}'")).unwrap();
    postgres
}

/// A way that is open: dropping it closes the pooler that it leads through.
pub(crate) struct Way {
    between: Between,
    port: u16,
    /// Ends with the way.
    _pooler: Option<Peer>,
}

impl Way {
    /// `servers` is the size of the pool; without meaning for the direct way.
    pub(crate) fn open(postgres: &PrivatePostgres, between: Between, servers: usize) -> Self {
        if between == Between::Direct {
            return Self { between, port: postgres.port(), _pooler: None };
        }
        let setup = PoolerSetup::new(postgres.tcp_address())
            .setting("auth_type", "scram-sha-256")
            .setting("pool_mode", &between.to_string())
            .setting("default_pool_size", &servers.to_string())
            .user(USER, PASSWORD);
        let pooler = holdfast().start(&setup).unwrap();
        Self { between, port: pooler.port(), _pooler: Some(pooler) }
    }

    /// A command whose environment leads libpq, and all drivers that read the same variables, this way.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null());
        for kept in ["PATH", "HOME", "HOLDFAST_NOT_RUN"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command
            .env("LC_ALL", "C.UTF-8")
            .env("DRIVERS_MODE", self.between.to_string())
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", USER)
            .env("PGPASSWORD", PASSWORD)
            .env("PGDATABASE", DATABASE)
            .env("PGSSLMODE", "disable");
        command
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, plain", self.between)
    }
}

/// What a command has printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
