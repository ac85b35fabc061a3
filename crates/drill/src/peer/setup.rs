//! One `pgbouncer.ini` for every pooler under test, so that they are compared with the same settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use crate::postgres::{ADMIN_USER, USER};

/// What a pooler is started with.
#[derive(Clone, Debug)]
pub struct PoolerSetup {
    server: SocketAddr,
    settings: BTreeMap<String, String>,
    databases: Vec<String>,
    users: Vec<(String, String)>,
    sections: String,
}

impl PoolerSetup {
    /// Transaction pooling of every database at `server` (PostgreSQL, or a relay in front of it): `auth_type = trust`,
    /// 20 servers a pool, 2000 clients, no log line for each connection; user `postgres` is the console's administrator.
    #[must_use]
    pub fn new(server: SocketAddr) -> Self {
        let settings = [
            ("auth_type", "trust"),
            ("pool_mode", "transaction"),
            ("default_pool_size", "20"),
            ("max_client_conn", "2000"),
            ("admin_users", ADMIN_USER),
            ("log_connections", "0"),
            ("log_disconnections", "0"),
        ];
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            server,
            settings: settings.map(own).into(),
            databases: Vec::new(),
            users: [(USER, ""), (ADMIN_USER, "")].map(own).into(),
            sections: String::new(),
        }
    }

    /// Sets a setting of `[pgbouncer]`; it replaces an earlier one.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a line of `[databases]`, before `*` (which leads to the server).
    #[must_use]
    pub fn database(mut self, line: &str) -> Self {
        self.databases.push(line.to_owned());
        self
    }

    /// Adds a user to `auth_file`, with a password or verifier.
    #[must_use]
    pub fn user(mut self, name: &str, secret: &str) -> Self {
        self.users.retain(|(known, _)| known != name);
        self.users.push((name.to_owned(), secret.to_owned()));
        self
    }

    /// Adds text after all (a section of its own, such as `[users]`).
    #[must_use]
    pub fn section(mut self, text: &str) -> Self {
        self.sections.push_str(text);
        self.sections.push('\n');
        self
    }

    /// The configuration file, for a pooler that listens on `port`.
    #[must_use]
    pub fn ini(&self, port: u16, auth_file: &Path) -> String {
        let mut lines = vec!["[databases]".to_owned()];
        lines.extend(self.databases.iter().cloned());
        lines.push(format!("* = host={} port={}", self.server.ip(), self.server.port()));
        lines.push("[pgbouncer]".to_owned());
        lines.push("listen_addr = 127.0.0.1".to_owned());
        lines.push(format!("listen_port = {port}"));
        lines.push("unix_socket_dir =".to_owned());
        lines.push(format!("auth_file = {}", auth_file.display()));
        lines.extend(self.settings.iter().map(|(name, value)| format!("{name} = {value}")));
        lines.push(self.sections.clone());
        lines.join("\n") + "\n"
    }

    /// `userlist.txt`: `"name" "secret"`, quotes doubled.
    #[must_use]
    pub fn user_list(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        self.users.iter().map(|(name, secret)| format!("{} {}\n", quoted(name), quoted(secret))).collect()
    }
}
