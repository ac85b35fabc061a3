//! What a private server is started with.

use super::{ADMIN_USER, USER};

/// Options of a private server. The default is a small server that trusts everyone on 127.0.0.1 and its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `max_connections`.
    pub max_connections: u32,
    /// Lines of `pg_hba.conf` before the ones that trust everyone, such as
    /// `host all erin 127.0.0.1/32 scram-sha-256` (the user is made with [`super::PrivatePostgres::admin`]).
    pub hba_lines: Vec<String>,
    /// Further settings, each as `name=value`; they come last and so win.
    pub settings: Vec<String>,
    /// Files in the data folder that only the server may read: names and texts.
    pub files: Vec<(String, String)>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { max_connections: 100, hba_lines: Vec::new(), settings: Vec::new(), files: Vec::new() }
    }
}

impl PostgresOptions {
    /// Sets `max_connections`.
    #[must_use]
    pub fn max_connections(mut self, count: u32) -> Self {
        self.max_connections = count;
        self
    }

    /// Adds a line of `pg_hba.conf`.
    #[must_use]
    pub fn hba_line(mut self, line: &str) -> Self {
        self.hba_lines.push(line.to_owned());
        self
    }

    /// Adds a setting.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Adds a file in the data folder.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Switches TLS on, with this certificate and key (PEM). It still takes clients without it.
    #[must_use]
    pub fn tls(self, certificate: &str, key: &str) -> Self {
        self.file("server.crt", certificate).file("server.key", key).setting("ssl", "on")
    }

    pub(super) fn hba_file(&self) -> String {
        let mut lines = vec![format!("local all {ADMIN_USER} trust")];
        lines.extend(self.hba_lines.iter().cloned());
        for kind in ["local all all", "host all all 127.0.0.1/32", "local replication all"] {
            lines.push(format!("{kind} trust"));
        }
        lines.push(format!("host replication {USER},{ADMIN_USER} 127.0.0.1/32 trust"));
        lines.join("\n") + "\n"
    }

    pub(super) fn settings(&self) -> Vec<String> {
        let mut settings: Vec<String> = [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "full_page_writes=off",
            "shared_buffers=32MB",
            "autovacuum=off",
            "logging_collector=off",
            "log_line_prefix=%m [%p] %u@%d ",
            // The log of a test that fails must say who came and went.
            "log_connections=on",
            "log_disconnections=on",
        ]
        .map(str::to_owned)
        .into();
        settings.push(format!("max_connections={}", self.max_connections));
        settings.extend(self.settings.iter().cloned());
        settings
    }
}
