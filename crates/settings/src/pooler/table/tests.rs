use super::super::{reference, value};
use super::*;
use std::collections::BTreeSet;

/// The settings of PgBouncer 1.25 in `[pgbouncer]`.
const PGBOUNCER: &str = "
logfile pidfile listen_addr listen_port unix_socket_dir unix_socket_mode unix_socket_group user conffile
service_name job_name resolv_conf pool_mode max_client_conn default_pool_size min_pool_size reserve_pool_size
reserve_pool_timeout max_db_connections max_db_client_connections max_user_connections
max_user_client_connections server_round_robin track_extra_parameters ignore_startup_parameters peer_id
disable_pqexec application_name_add_host stats_period max_prepared_statements scram_iterations auth_type
auth_hba_file auth_ident_file auth_file auth_user auth_query auth_dbname auth_ldap_options syslog syslog_ident
syslog_facility log_connections log_disconnections log_pooler_errors log_stats verbose admin_users stats_users
server_reset_query server_reset_query_always server_check_delay server_check_query server_fast_close
server_lifetime server_idle_timeout server_connect_timeout server_login_retry client_login_timeout
autodb_idle_timeout pool_idle_timeout dns_max_ttl dns_nxdomain_ttl dns_zone_check_period query_wait_notify
login_notify_message client_tls_sslmode client_tls_key_file client_tls_cert_file client_tls_ca_file
client_tls_protocols client_tls_ciphers client_tls13_ciphers client_tls_ecdhcurve client_tls_dheparams
server_tls_sslmode server_tls_ca_file server_tls_key_file server_tls_cert_file server_tls_protocols
server_tls_ciphers server_tls13_ciphers query_timeout query_wait_timeout cancel_wait_timeout client_idle_timeout
idle_transaction_timeout transaction_timeout suspend_timeout pkt_buf max_packet_size sbuf_loopcnt listen_backlog
so_reuseport tcp_defer_accept tcp_socket_buffer tcp_keepalive tcp_keepcnt tcp_keepidle tcp_keepintvl
tcp_user_timeout";

const OWN: &str = "
max_prepared_statement_bytes client_patience client_disconnect client_write_timeout client_message_timeout waiter_buffer drain_limit
server_login_concurrency server_login_rate drain_timeout metrics_listen log_format session_state
lock_pileup lock_pileup_grace overload_policy \
connection_attempts connection_attempt_rate connection_attempt_burst failed_login_limit running_limit \
server_budget budget_reserved budget_chunk budget_settle budget_database budget_user stall_after";

#[test]
fn every_setting_of_pgbouncer_and_every_own_one_is_known_once() {
    let names = |own: bool| -> BTreeSet<&str> {
        general().filter(|setting| setting.is_own == own).map(|setting| setting.name).collect()
    };
    assert_eq!(names(false), PGBOUNCER.split_whitespace().collect());
    assert_eq!(names(true), OWN.split_whitespace().collect());
    assert_eq!(general().count(), names(false).len() + names(true).len());
}

#[test]
fn defaults_are_values_of_their_settings() {
    for dialect in [Dialect::Ini, Dialect::Toml] {
        for setting in general() {
            let default = setting.default_in(dialect);
            let read = match setting.kind {
                Kind::Duration { .. } => <Option<Duration> as Value>::read(default, &setting.kind).map(drop),
                Kind::Bytes { .. } | Kind::Integer { .. } => value::number(default, &setting.kind).map(drop),
                Kind::Boolean => bool::read(default, &setting.kind).map(drop),
                Kind::FileMode => u32::read(default, &setting.kind).map(drop),
                Kind::Choice { .. } if setting.name == "pool_mode" => Ok(()),
                Kind::Choice { .. } => value::choice(default, &setting.kind).map(drop),
                Kind::Text | Kind::List | Kind::Path | Kind::Address => Ok(()),
            };
            assert_eq!(read, Ok(()), "{}", setting.name);
        }
    }
}

#[test]
fn in_toml_the_default_of_what_is_not_built_is_how_it_runs() {
    for setting in general() {
        if let Status::NotBuilt([accepted, ..]) = &setting.status {
            assert_eq!(setting.default_in(Dialect::Toml), *accepted, "{}", setting.name);
        }
    }
}

#[test]
fn reference_page_is_made_from_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let page = reference();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/settings.md is out of date; run `UPDATE=1 cargo test -p holdfast-settings`"
    );
}
