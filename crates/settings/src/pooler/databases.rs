//! The lines of `[databases]`.

use super::apply::{Places, Scope, apply, bad_value, refused};
use super::model::{Database, Secret, ServerAddress};
use super::table;
use super::value::{self, Refusal};
use crate::diagnostic::{Diagnostic, Report};
use crate::source::Sources;
use crate::written::{Dialect, Entry, Group};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The console's name, which no database may have.
const CONSOLE: &str = "pgbouncer";
const DEFAULT_PORT: u16 = 5432;
/// Folders of PostgreSQL's Unix socket: Debian's, then upstream's.
const DEBIAN_SOCKET_DIRECTORY: &str = "/var/run/postgresql";
const UPSTREAM_SOCKET_DIRECTORY: &str = "/tmp";

/// A database with the places of its settings.
pub(super) struct WrittenDatabase<'a> {
    pub(super) database: Database,
    pub(super) group: &'a Group,
    pub(super) places: Places<'a>,
}

/// The databases by name; `*` is one of them.
pub(super) fn read<'a>(
    groups: &'a [Group],
    dialect: Dialect,
    sources: &dyn Sources,
    report: &mut Report,
) -> BTreeMap<String, WrittenDatabase<'a>> {
    let mut databases = BTreeMap::new();
    for group in groups {
        if group.name == CONSOLE {
            let message = format!("the name `{CONSOLE}` is the console's; no database may have it");
            report.add(Diagnostic::error("bad-value", message).at(&group.place));
            continue;
        }
        if is_unnamed("database", group, report) {
            continue;
        }
        let written = database(group, dialect, sources, report);
        if databases.insert(group.name.clone(), written).is_some() {
            note_duplicate("database", group, report);
        }
    }
    databases
}

/// Refuses an empty name, which TOML allows.
pub(super) fn is_unnamed(what: &str, group: &Group, report: &mut Report) -> bool {
    if group.name.is_empty() {
        report.add(Diagnostic::error("bad-value", format!("the name of a {what} is empty")).at(&group.place));
    }
    group.name.is_empty()
}

/// Notes that `group` takes the place of an earlier one of its name.
pub(super) fn note_duplicate(what: &str, group: &Group, report: &mut Report) {
    let name = crate::diagnostic::quoted(&group.name);
    let message = format!("the {what} {name} is written twice; this later line counts");
    report.add(Diagnostic::note("duplicate", message).at(&group.place));
}

fn database<'a>(
    group: &'a Group,
    dialect: Dialect,
    sources: &dyn Sources,
    report: &mut Report,
) -> WrittenDatabase<'a> {
    let mut database = Database {
        dbname: (group.name != "*").then(|| group.name.clone()),
        address: ServerAddress::Unix { directory: PathBuf::new(), port: 0 },
        user: None,
        password: None,
        pool_size: None,
        min_pool_size: None,
        reserve_pool_size: None,
        max_db_client_connections: None,
        max_db_connections: None,
        query_wait_timeout: None,
        query_timeout: None,
        idle_transaction_timeout: None,
        transaction_timeout: None,
        client_idle_timeout: None,
        server_lifetime: None,
        pool_mode: None,
        client_disconnect: None,
        session_state: None,
        connect_query: None,
        client_encoding: None,
        datestyle: None,
        timezone: None,
    };
    let scope = Scope { section: "databases", dialect };
    let places = apply(table::DATABASES.iter(), &group.entries, scope, &mut database, report);
    let port = places.get("port").map_or(DEFAULT_PORT, |entry| port(entry, dialect, report));
    database.address = match places.get("host") {
        Some(entry) => host(entry, port, dialect, report),
        None => {
            let directory = default_directory(sources);
            let message =
                format!("without `host` the server is reached by its Unix socket in {}", directory.display());
            report.add(Diagnostic::note("unix-socket", message).at(&group.place));
            ServerAddress::Unix { directory, port }
        }
    };
    if let (Some(Secret::ScramVerifier(_)), Some(entry)) = (&database.password, places.get("password")) {
        let message = "nobody can log in to a server with a SCRAM verifier; the password itself is needed";
        report.add(Diagnostic::error("bad-value", message).at(&entry.key_place));
    }
    WrittenDatabase { database, group, places }
}

fn port(entry: &Entry, dialect: Dialect, report: &mut Report) -> u16 {
    let kind = table::DATABASES.iter().find(|setting| setting.name == "port").map(|setting| setting.kind);
    match kind.map(|kind| <u16 as value::Value>::read(&entry.value, &kind)) {
        Some(Ok(port)) => port,
        Some(Err(refusal)) => {
            report.add(refused("port", entry, refusal, dialect));
            DEFAULT_PORT
        }
        None => DEFAULT_PORT,
    }
}

fn host(entry: &Entry, port: u16, dialect: Dialect, report: &mut Report) -> ServerAddress {
    let host = entry.value.as_str();
    if host.starts_with('/') {
        return ServerAddress::Unix { directory: PathBuf::from(host), port };
    }
    if host.contains(',') || host.starts_with('@') {
        let refusal = Refusal::NotBuilt("one host, or the folder of a Unix socket".into());
        report.add(refused("host", entry, refusal, dialect));
    } else if host.is_empty() || host.contains(char::is_whitespace) {
        report.add(bad_value("host", entry, "a name, an address or a folder is expected", dialect));
    }
    ServerAddress::Tcp { host: host.to_owned(), port }
}

fn default_directory(sources: &dyn Sources) -> PathBuf {
    let debian = Path::new(DEBIAN_SOCKET_DIRECTORY);
    if sources.is_directory(debian) { debian.into() } else { UPSTREAM_SOCKET_DIRECTORY.into() }
}
