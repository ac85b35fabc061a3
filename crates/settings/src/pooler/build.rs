//! From everything that was written to a configuration that can run.

use super::apply::{Places, Scope, apply, apply_defaults, refused};
use super::model::{
    AuthType, BudgetSettings, ClientDisconnect, General, GuardPolicy, Keepalive, LockPileup, LogFormat,
    PoolMode, PoolerConfig, Secret, ServerBudget, SessionState, UserSettings,
};
use super::tls::Tls;
use super::value::Refusal;
use super::{auth_file, databases, lanes, listen, table, validate};
use crate::diagnostic::{Diagnostic, Report};
use crate::source::{Place, Sources};
use crate::written::{Dialect, Entry, Written, ini};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Where the settings of `[pgbouncer]` are written.
pub(super) type GeneralPlaces = BTreeMap<&'static str, Place>;

pub(super) fn build(
    written: &Written,
    sources: &dyn Sources,
    report: &mut Report,
) -> Option<(PoolerConfig, GeneralPlaces)> {
    let dialect = written.dialect;
    let mut general = blank();
    apply_defaults(table::general(), dialect, &mut general, report);
    let scope = Scope { section: "pgbouncer", dialect };
    let places = apply(table::general(), &written.general, scope, &mut general, report);
    joint(&mut general, &places, written, sources, report);
    let secrets = secrets(&general, &places, sources, report);
    let mut databases = databases::read(&written.databases, dialect, sources, report);
    let users = users(written, report);
    let lanes = lanes::read(&written.lanes, dialect, report);
    if let Some(peer) = written.peers.first() {
        report.add(
            Diagnostic::error("not-built", "[peers] is not built yet").at(&peer.place).help("leave it out"),
        );
    }
    validate::validate(&general, &places, &databases, &users, written, sources, report);
    if report.has_errors() {
        return None;
    }
    let fallback_database = databases.remove("*").map(|written| Arc::new(written.database));
    let places = places.iter().map(|(&name, entry)| (name, entry.place.clone())).collect();
    let config = PoolerConfig {
        dialect,
        general,
        databases: databases.into_iter().map(|(name, written)| (name, Arc::new(written.database))).collect(),
        fallback_database,
        users: users.into_iter().map(|(name, written)| (name, written.settings)).collect(),
        lanes,
        secrets,
    };
    Some((config, places))
}

/// A user with the places of its settings.
pub(super) struct WrittenUser<'a> {
    pub(super) settings: UserSettings,
    pub(super) places: Places<'a>,
}

fn users<'a>(written: &'a Written, report: &mut Report) -> BTreeMap<String, WrittenUser<'a>> {
    let scope = Scope { section: "users", dialect: written.dialect };
    let mut users = BTreeMap::new();
    for group in &written.users {
        if databases::is_unnamed("user", group, report) {
            continue;
        }
        let mut settings = UserSettings::default();
        let places = apply(table::USERS.iter(), &group.entries, scope, &mut settings, report);
        if users.insert(group.name.clone(), WrittenUser { settings, places }).is_some() {
            databases::note_duplicate("user", group, report);
        }
    }
    users
}

/// The settings that are not one field each.
fn joint(
    general: &mut General,
    places: &Places<'_>,
    written: &Written,
    sources: &dyn Sources,
    report: &mut Report,
) {
    general.conffile = written.files.first().cloned();
    if general.client_patience == Some(Duration::ZERO) {
        general.client_patience = None;
    }
    if let Some(entry) = places.get("conffile") {
        let message = "`conffile` is not built yet: the file is the one that the command line names";
        report.add(Diagnostic::error("not-built", message).at(&entry.key_place).help("leave it out"));
    }
    general.server_check_query = match places.get("server_check_query") {
        None => String::new(),
        Some(entry) => check_query(entry, written.dialect, report),
    };
    if let Some(entry) = places.get("listen_addr") {
        general.listen = listen::addresses(entry, general.listen_port, sources, report);
    }
}

fn check_query(entry: &Entry, dialect: Dialect, report: &mut Report) -> String {
    match entry.value.as_str() {
        "" => {
            let refusal = Refusal::NotBuilt("a query, or `<empty>` for an empty one".into());
            report.add(refused("server_check_query", entry, refusal, dialect));
            String::new()
        }
        "<empty>" => String::new(),
        query => query.to_owned(),
    }
}

fn secrets(
    general: &General,
    places: &Places<'_>,
    sources: &dyn Sources,
    report: &mut Report,
) -> BTreeMap<String, Secret> {
    let (Some(path), Some(entry)) = (&general.auth_file, places.get("auth_file")) else {
        return BTreeMap::new();
    };
    if sources.readable_by_others(path) == Some(true) {
        let message = "`auth_file` holds secrets and every user of this machine may read it";
        report.add(
            Diagnostic::warning("secret-file", message)
                .at(&entry.place)
                .help("take the right to read it from others"),
        );
    }
    let Some(source) = ini::open(path, sources, Some(&entry.place), report) else {
        return BTreeMap::new();
    };
    let secrets = auth_file::read(&source, report);
    auth_file::check_for(general.auth_type, &secrets, entry, report);
    secrets
}

/// Every field that the table fills next; nothing here is a default.
fn blank() -> General {
    General {
        conffile: None,
        auth_file: None,
        listen: Vec::new(),
        listen_port: 0,
        unix_socket_dir: None,
        unix_socket_mode: 0,
        unix_socket_group: None,
        so_reuseport: false,
        listen_backlog: 0,
        user: None,
        pidfile: None,
        logfile: None,
        log_format: LogFormat::Text,
        log_connections: false,
        log_disconnections: false,
        log_pooler_errors: false,
        log_stats: false,
        stats_period: Duration::ZERO,
        verbose: 0,
        auth_type: AuthType::Md5,
        admin_users: Vec::new(),
        stats_users: Vec::new(),
        scram_iterations: 0,
        ignore_startup_parameters: Vec::new(),
        application_name_add_host: false,
        max_client_conn: 0,
        default_pool_size: 0,
        min_pool_size: 0,
        reserve_pool_size: 0,
        reserve_pool_timeout: Duration::ZERO,
        max_db_client_connections: 0,
        max_user_client_connections: 0,
        max_db_connections: 0,
        max_user_connections: 0,
        query_wait_timeout: Duration::ZERO,
        query_wait_notify: Duration::ZERO,
        stall_after: Duration::ZERO,
        query_timeout: Duration::ZERO,
        idle_transaction_timeout: Duration::ZERO,
        transaction_timeout: Duration::ZERO,
        client_idle_timeout: Duration::ZERO,
        client_login_timeout: Duration::ZERO,
        server_connect_timeout: Duration::ZERO,
        server_login_retry: Duration::ZERO,
        server_lifetime: Duration::ZERO,
        server_idle_timeout: Duration::ZERO,
        server_check_delay: Duration::ZERO,
        server_check_query: String::new(),
        server_round_robin: false,
        cancel_wait_timeout: Duration::ZERO,
        max_packet_size: 0,
        max_prepared_statements: 0,
        max_prepared_statement_bytes: 0,
        tcp_keepalive: Keepalive {
            enabled: false,
            count: 0,
            idle_s: 0,
            interval_s: 0,
            user_timeout_ms: 0,
            buffer_bytes: 0,
        },
        client_patience: None,
        pool_mode: PoolMode::Session,
        server_reset_query: "DISCARD ALL".to_owned(),
        server_reset_query_always: false,
        server_fast_close: false,
        login_notify_message: None,
        disable_pqexec: false,
        autodb_idle_timeout: Duration::ZERO,
        pool_idle_timeout: Duration::ZERO,
        client_disconnect: ClientDisconnect::Cancel,
        session_state: SessionState::Pin,
        lock_pileup: LockPileup::Off,
        lock_pileup_grace: Duration::ZERO,
        overload_policy: GuardPolicy::Off,
        client_write_timeout: Duration::ZERO,
        client_message_timeout: Duration::ZERO,
        waiter_buffer: 0,
        drain_limit: 0,
        connection_attempts: GuardPolicy::Off,
        connection_attempt_rate: 0,
        connection_attempt_burst: 0,
        failed_login_limit: 0,
        running_limit: GuardPolicy::Off,
        server_login_concurrency: 0,
        server_login_rate: 0,
        drain_timeout: Duration::ZERO,
        metrics_listen: None,
        budget: BudgetSettings {
            size: ServerBudget::Off,
            reserved: 0,
            chunk: 0,
            settle: Duration::ZERO,
            database: String::new(),
            user: String::new(),
        },
        client_tls: Tls::disabled(),
        server_tls: Tls::disabled(),
    }
}
