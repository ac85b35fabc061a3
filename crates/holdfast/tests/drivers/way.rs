//! The ways to a database that a driver's script is run on.

use std::fmt;
use std::process::{Command, Output, Stdio};

use drill::peer::{Peer, PoolerSetup};
use drill::postgres::{DATABASE, PostgresOptions, PrivatePostgres, USER};

use crate::certificates::Files;
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

/// A database whose plain user logs in by SCRAM, with TLS or without.
pub(crate) struct Database {
    pub(crate) postgres: PrivatePostgres,
    files: Files,
}

impl Database {
    pub(crate) fn start() -> Self {
        let files = Files::new();
        // Some drivers ask for the name localhost where they were given an address.
        let names = ["127.0.0.1", "localhost"];
        files.put("server", &files.authority.certify_all(&names, &rcgen::PKCS_ECDSA_P256_SHA256));
        let options = PostgresOptions::default()
            .tls(&files.read("server.pem"), &files.read("server.key"))
            .hba_line(&format!("host all {USER} 127.0.0.1/32 scram-sha-256"))
            // With the SQLSTATE, so that a test can look for it.
            .setting("log_line_prefix", "%m [%p] %u@%d %e ");
        let postgres = PrivatePostgres::start(options).unwrap();
        let quoted = PASSWORD.replace('\'', "''");
        postgres.admin(&format!("alter role {USER} password '{quoted}'")).unwrap();
        Self { postgres, files }
    }
}

/// A way that is open: dropping it closes the pooler that it leads through.
pub(crate) struct Way {
    between: Between,
    port: u16,
    /// The authority of whoever is at the port, if it is to be spoken to by TLS.
    authority: Option<String>,
    /// Ends with the way.
    _pooler: Option<Peer>,
}

impl Way {
    /// `servers` is the size of the pool; without meaning for the direct way. With `tls` both the client's connection and
    /// the server's are encrypted, and each end is checked by its name.
    pub(crate) fn open(database: &Database, between: Between, tls: bool, servers: usize) -> Self {
        let (postgres, files) = (&database.postgres, &database.files);
        let authority = tls.then(|| files.path("ca.pem"));
        if between == Between::Direct {
            return Self { between, port: postgres.port(), authority, _pooler: None };
        }
        let setup = PoolerSetup::new(postgres.tcp_address())
            .setting("auth_type", "scram-sha-256")
            .setting("pool_mode", &between.to_string())
            .setting("default_pool_size", &servers.to_string())
            .user(USER, PASSWORD);
        let setup = if tls {
            let setup = setup.setting("server_tls_sslmode", "verify-full");
            files.offer(setup.setting("server_tls_ca_file", &files.path("ca.pem")), "require")
        } else {
            setup.setting("server_tls_sslmode", "disable")
        };
        let pooler = holdfast().start(&setup).unwrap();
        Self { between, port: pooler.port(), authority, _pooler: Some(pooler) }
    }

    /// A command whose environment leads libpq, and all drivers that read the same variables, this way.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null());
        for kept in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        match &self.authority {
            Some(file) => command.env("PGSSLMODE", "verify-full").env("PGSSLROOTCERT", file),
            None => command.env("PGSSLMODE", "disable"),
        };
        command
            .env("LC_ALL", "C.UTF-8")
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", USER)
            .env("PGPASSWORD", PASSWORD)
            .env("PGDATABASE", DATABASE);
        command
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}", self.between, if self.authority.is_some() { "TLS" } else { "plain" })
    }
}

/// What a command has printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
