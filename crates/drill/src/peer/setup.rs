//! One `pgbouncer.ini` for every pooler under test, so that they are compared with the same settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, ensure};

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

    /// The same in TOML, with further settings.
    ///
    /// # Errors
    /// There is a section of its own, or a line of `[databases]` without `=`.
    pub fn toml(&self, port: u16, auth_file: &Path, more: &[(String, String)]) -> anyhow::Result<String> {
        ensure!(self.sections.is_empty(), "sections are written for an .ini");
        let mut pooler = toml::Table::new();
        let text = |value: &str| toml::Value::from(value);
        pooler.insert("listen_addr".to_owned(), text("127.0.0.1"));
        pooler.insert("listen_port".to_owned(), text(&port.to_string()));
        pooler.insert("unix_socket_dir".to_owned(), text(""));
        pooler.insert("auth_file".to_owned(), text(&auth_file.display().to_string()));
        for (name, value) in self.settings.iter().chain(more.iter().map(|(name, value)| (name, value))) {
            pooler.insert(name.clone(), text(value));
        }
        let mut databases = toml::Table::new();
        for line in &self.databases {
            let (name, target) = line.split_once('=').context("a line of [databases] without =")?;
            databases.insert(name.trim().to_owned(), text(target.trim()));
        }
        let server = format!("host={} port={}", self.server.ip(), self.server.port());
        databases.insert("*".to_owned(), text(&server));
        let file = [("pooler", pooler), ("databases", databases)];
        let file: toml::Table =
            file.into_iter().map(|(name, table)| (name.to_owned(), table.into())).collect();
        Ok(toml::to_string(&file)?)
    }

    /// `userlist.txt`: `"name" "secret"`, quotes doubled.
    #[must_use]
    pub fn user_list(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        self.users.iter().map(|(name, secret)| format!("{} {}\n", quoted(name), quoted(secret))).collect()
    }
}
