use super::super::model::General;
use super::Status::{Joint, NoEffect, NotBuilt};
use super::{Binding, COUNT, COUNT_FROM_1, Kind, POOL_MODE, PORT, Setting, Status, field};

const AUTH_TYPE: Kind = Kind::Choice {
    built: &["any", "trust", "plain", "md5", "scram-sha-256"],
    not_built: &["cert", "hba", "pam", "ldap", "peer"],
};

/// Octal, as it is written.
const UNIX_SOCKET_MODE: Status<General> = Status::Built(Binding {
    read: |target, text, kind| {
        target.unix_socket_mode = super::super::value::Value::read(text, kind)?;
        Ok(())
    },
    show: |target| format!("{:04o}", target.unix_socket_mode),
});

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<General>] = &[
    // Files and sockets.
    Setting::new("logfile", Kind::Path, "", field!(General, logfile), "File to log to, beside standard error; opened anew by a reload.").restart(),
    Setting::new("log_format", Kind::Choice { built: &["text", "json"], not_built: &[] }, "text", field!(General, log_format), "Shape of the log lines.").own().restart(),
    Setting::new("pidfile", Kind::Path, "", field!(General, pidfile), "File to write the process id to.").restart(),
    Setting::new("conffile", Kind::Path, "", Joint, "The file that RELOAD reads; named on the command line alone."),
    Setting::new("listen_addr", Kind::List, "", Joint, "TCP addresses to listen on; `*` is all; none leaves the Unix socket.").restart(),
    Setting::new("listen_port", PORT, "6432", field!(General, listen_port), "Port to listen on, also in the Unix socket's name.").restart(),
    Setting::new("listen_backlog", Kind::Integer { minimum: 1, maximum: 65535 }, "128", field!(General, listen_backlog), "Connections that the system holds before they are accepted.").restart(),
    Setting::new("metrics_listen", Kind::Address, "", field!(General, metrics_listen), "Address and port where metrics and health are served over HTTP.").own().restart(),
    Setting::new("unix_socket_dir", Kind::Path, "/tmp", field!(General, unix_socket_dir), "Folder of the Unix socket; empty for none.").restart(),
    Setting::new("unix_socket_mode", Kind::FileMode, "0777", UNIX_SOCKET_MODE, "Mode of the Unix socket.").restart(),
    Setting::new("unix_socket_group", Kind::Text, "", field!(General, unix_socket_group), "Group of the Unix socket, by name or number.").restart(),
    Setting::new("user", Kind::Text, "", field!(General, user), "User to become after the sockets are bound.").restart(),
    Setting::new("service_name", Kind::Text, "", NoEffect("it names a Windows service"), "Name of the Windows service.").restart(),
    Setting::new("job_name", Kind::Text, "pgbouncer", NoEffect("it names a Windows service"), "Name of the Windows service.").restart(),
    Setting::new("resolv_conf", Kind::Path, "", NotBuilt(&[""]), "Another resolv.conf.").restart(),
    Setting::new("peer_id", COUNT, "0", NotBuilt(&["0"]), "Own number among peers."),
    Setting::new("so_reuseport", Kind::Boolean, "0", field!(General, so_reuseport), "Let other processes of this user listen on the same TCP port; the system spreads the clients.").restart(),
    Setting::new("pkt_buf", Kind::Bytes { minimum: 1, maximum: 1 << 30 }, "4096", NoEffect("an idle client owns no buffer, and the shared ones have their own size"), "Buffer of each active connection.").restart(),
    Setting::new("max_packet_size", Kind::Bytes { minimum: 1024, maximum: 0x7fff_ffff }, "2147483647", field!(General, max_packet_size), "Largest message from a client."),
    Setting::new("sbuf_loopcnt", COUNT, "5", NoEffect("turns between connections are shared by bytes"), "Reads of one socket in a row."),
    Setting::new("tcp_defer_accept", COUNT, "1", NoEffect("a connection that sends nothing costs no pool slot and is closed by `client_login_timeout`"), "Accept only once there is data."),
    Setting::new("tcp_socket_buffer", Kind::Bytes { minimum: 0, maximum: 1 << 30 }, "0", field!(General, tcp_keepalive.buffer_bytes), "Size of the system's socket buffers; 0 = the system's."),
    Setting::new("tcp_keepalive", Kind::Boolean, "1", field!(General, tcp_keepalive.enabled), "TCP keepalive on every socket."),
    Setting::new("tcp_keepcnt", Kind::Integer { minimum: 0, maximum: 127 }, "0", field!(General, tcp_keepalive.count), "Keepalive probes before giving up; 0 = the system's."),
    Setting::new("tcp_keepidle", Kind::Integer { minimum: 0, maximum: 32767 }, "0", field!(General, tcp_keepalive.idle_s), "Idle seconds before the first keepalive probe; 0 = the system's."),
    Setting::new("tcp_keepintvl", Kind::Integer { minimum: 0, maximum: 32767 }, "0", field!(General, tcp_keepalive.interval_s), "Seconds between keepalive probes; 0 = the system's."),
    Setting::new("tcp_user_timeout", Kind::Integer { minimum: 0, maximum: 0x7fff_ffff }, "0", field!(General, tcp_keepalive.user_timeout_ms), "Milliseconds that sent data may stay unacknowledged; 0 = the system's."),
    // Pools and limits.
    Setting::new("pool_mode", POOL_MODE, "session", field!(General, pool_mode), "When a server goes back to its pool: when its client leaves, after each transaction, or after each statement.").toml("transaction"),
    Setting::new("max_client_conn", COUNT_FROM_1, "100", field!(General, max_client_conn), "Most clients at once.").toml("10000"),
    Setting::new("default_pool_size", COUNT_FROM_1, "20", field!(General, default_pool_size), "Server connections for each pair of user and database."),
    Setting::new("min_pool_size", COUNT, "0", field!(General, min_pool_size), "Server connections kept open in each pool that has clients, and without clients where the database's line names its user."),
    Setting::new("reserve_pool_size", COUNT, "0", field!(General, reserve_pool_size), "Extra server connections for a pool whose clients have waited for `reserve_pool_timeout`."),
    Setting::new("reserve_pool_timeout", super::DURATION, "5", field!(General, reserve_pool_timeout), "Wait before the extra ones are used; 0 = they are not.").toml("1"),
    Setting::new("max_db_connections", COUNT, "0", field!(General, max_db_connections), "Most server connections of a database; 0 = no limit."),
    Setting::new("max_db_client_connections", COUNT, "0", field!(General, max_db_client_connections), "Most clients of a database; 0 = no limit."),
    Setting::new("max_user_connections", COUNT, "0", field!(General, max_user_connections), "Most server connections of a user; 0 = no limit."),
    Setting::new("max_user_client_connections", COUNT, "0", field!(General, max_user_client_connections), "Most clients that log in as one user; 0 = no limit."),
    Setting::new("waiter_buffer", Kind::Bytes { minimum: 4 << 10, maximum: 1 << 20 }, "65536", field!(General, waiter_buffer), "Bytes of a waiting client's requests that are read and watched, so that a client that has gone is noticed.").own(),
    Setting::new("drain_limit", Kind::Bytes { minimum: 0, maximum: 1 << 40 }, "16777216", field!(General, drain_limit), "Bytes of an abandoned result that are drained before the server connection is closed instead.").own(),
    Setting::new("client_disconnect", super::CLIENT_DISCONNECT, "cancel", field!(General, client_disconnect), "What becomes of a running query when its client is gone: cancel it, close the server connection, or let it finish.").own(),
    Setting::new("session_state", super::SESSION_STATE, "pin", field!(General, session_state), "In transaction and statement mode, what becomes of a client whose transaction leaves something in the session that cannot follow it (an advisory lock, a temporary table, LISTEN, …): it keeps its server, it is told and dismissed, or nobody looks.").own(),
    Setting::new("lock_pileup", super::LOCK_PILEUP, "warn", field!(General, lock_pileup), "What is done when a quarter of a pool's servers wait for a lock while clients wait for a server: nobody looks; it is said, and the pool opens no further server behind DDL; or, beside that, the DDL that waits is cancelled, or whoever keeps it waiting.").toml("cancel-waiting-ddl").own(),
    Setting::new("overload_policy", super::OVERLOAD_POLICY, "off", field!(General, overload_policy), "While a pool has more to do than it can: `off`, first come, first served; `on`, whoever cannot be served within its patience is told so at once, and the newest is served first while the line stands; `observe`, it is only counted what `on` would do.").toml("on").own(),
    Setting::new("connection_attempts", super::GUARD_POLICY, "off", field!(General, connection_attempts), "Attempts to connect of one user from one address are limited by the three settings that follow: who is above them is turned away before anything is done for him. `observe` counts what `on` would refuse.").toml("on").own(),
    Setting::new("connection_attempt_rate", Kind::Integer { minimum: 0, maximum: 1_000_000 }, "100", field!(General, connection_attempt_rate), "Attempts a second of one user from one address (of IPv6, one /64); 0 = no limit.").own(),
    Setting::new("connection_attempt_burst", Kind::Integer { minimum: 1, maximum: 1_000_000 }, "1000", field!(General, connection_attempt_burst), "Attempts at once after a quiet time.").own(),
    Setting::new("failed_login_limit", Kind::Integer { minimum: 0, maximum: 10_000 }, "10", field!(General, failed_login_limit), "Failed logins in a row of one user from one address, from which on attempts are refused unseen: for 1 s, doubled with each further failure, at most 60 s; 0 = never.").own(),
    Setting::new("running_limit", super::GUARD_POLICY, "off", field!(General, running_limit), "In each pool, no more requests run at once than the server carries: the limit finds itself, between 4 and the size of the pool, by how fast queries are. Who is above it waits in line. `observe` finds the limit and holds nobody back.").own(),
    Setting::new("server_login_concurrency", Kind::Integer { minimum: 1, maximum: 10_000 }, "64", field!(General, server_login_concurrency), "Server logins in flight at once, for each server address.").own(),
    Setting::new("server_login_rate", Kind::Integer { minimum: 0, maximum: 1_000_000 }, "200", field!(General, server_login_rate), "Server logins started a second, for each server address; 0 = no limit.").own(),
    Setting::new("server_round_robin", Kind::Boolean, "0", field!(General, server_round_robin), "Take the server that has rested longest, instead of the one used last."),
    Setting::new("server_check_query", Kind::Text, "<empty>", Joint, "The test of a server that has rested; `<empty>` is an empty query."),
    Setting::new("server_reset_query", Kind::Text, "DISCARD ALL", field!(General, server_reset_query), "Query when a client of session mode leaves; empty for none."),
    Setting::new("server_reset_query_always", Kind::Boolean, "0", field!(General, server_reset_query_always), "Run it after each transaction in the other modes too."),
    Setting::new("server_fast_close", Kind::Boolean, "0", field!(General, server_fast_close), "In session mode, a server that a reload replaces goes at the end of its transaction, and its client with it, and not at the end of the session."),
    Setting::new("track_extra_parameters", Kind::List, "IntervalStyle", NoEffect("every parameter that a server reports is kept for each client"), "Further reported parameters that are kept for each client.").restart(),
    Setting::new("ignore_startup_parameters", Kind::List, "", field!(General, ignore_startup_parameters), "Startup parameters that are accepted and dropped."),
    Setting::new("disable_pqexec", Kind::Boolean, "0", field!(General, disable_pqexec), "Refuse the simple query protocol: a client that uses it is closed.").restart(),
    Setting::new("application_name_add_host", Kind::Boolean, "0", field!(General, application_name_add_host), "Append the client's address to application_name."),
    Setting::new("max_prepared_statements", COUNT, "200", field!(General, max_prepared_statements), "Named prepared statements that a server connection holds for its clients, outside session mode; 0 = they are passed on as they are."),
    Setting::new("max_prepared_statement_bytes", Kind::Bytes { minimum: 4 << 10, maximum: 1 << 40 }, "8388608", field!(General, max_prepared_statement_bytes), "Bytes of their texts.").own(),
    // Who may log in.
    Setting::new("auth_type", AUTH_TYPE, "md5", field!(General, auth_type), "How clients prove who they are."),
    Setting::new("auth_file", Kind::Path, "", field!(General, auth_file), "File of users and secrets (`userlist.txt`)."),
    Setting::new("auth_hba_file", Kind::Path, "", NotBuilt(&[""]), "Rules of who may log in how."),
    Setting::new("auth_ident_file", Kind::Path, "", NotBuilt(&[""]), "Maps of names."),
    Setting::new("auth_user", Kind::Text, "", NotBuilt(&[""]), "User that looks others up in the database."),
    Setting::new("auth_query", Kind::Text, "", NotBuilt(&[""]), "Query that looks a user up."),
    Setting::new("auth_dbname", Kind::Text, "", NotBuilt(&[""]), "Database in which users are looked up."),
    Setting::new("auth_ldap_options", Kind::Text, "", NotBuilt(&[""]), "LDAP address and search."),
    Setting::new("scram_iterations", Kind::Integer { minimum: 1, maximum: 2_000_000 }, "4096", field!(General, scram_iterations), "Iterations of verifiers that are made from plain passwords."),
    Setting::new("admin_users", Kind::List, "", field!(General, admin_users), "Users who may do everything on the console."),
    Setting::new("stats_users", Kind::List, "", field!(General, stats_users), "Users who may read on the console."),
    // What is said.
    Setting::new("syslog", Kind::Boolean, "0", NotBuilt(&["0"]), "Log to syslog."),
    Setting::new("syslog_ident", Kind::Text, "pgbouncer", NoEffect("nothing is sent to syslog (`syslog`)"), "Name in syslog."),
    Setting::new("syslog_facility", Kind::Text, "daemon", NoEffect("nothing is sent to syslog (`syslog`)"), "Facility in syslog."),
    Setting::new("log_connections", Kind::Boolean, "1", field!(General, log_connections), "Log each login."),
    Setting::new("log_disconnections", Kind::Boolean, "1", field!(General, log_disconnections), "Log each end of a connection, with its reason."),
    Setting::new("log_pooler_errors", Kind::Boolean, "1", field!(General, log_pooler_errors), "Log the errors that are sent to clients."),
    Setting::new("log_stats", Kind::Boolean, "1", field!(General, log_stats), "Log totals every `stats_period`."),
    Setting::new("stats_period", Kind::Duration { minimum: std::time::Duration::from_secs(1) }, "60", field!(General, stats_period), "Averaging window, and time between log lines of totals."),
    Setting::new("verbose", Kind::Integer { minimum: 0, maximum: 3 }, "0", field!(General, verbose), "More log lines."),
    Setting::new("login_notify_message", Kind::Text, "", field!(General, login_notify_message), "Notice to each client at login; empty for none."),
    Setting::new("query_wait_notify", super::DURATION, "5", field!(General, query_wait_notify), "Notice to a client that has waited so long for a server, once for each wait; 0 = none.").toml("2"),
];
