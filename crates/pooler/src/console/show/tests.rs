use super::*;
use crate::console::averages::{PerDatabase, StatsHistory};
use crate::console::fixtures::{
    budget_row, client_row, event_row, holder_row, lane_row, lock_row, pool_row, server_row, storm_row,
};
use crate::console::tests::{Parsed, parse};
use overload::Moment;
use pgwire::message::backend::oid;
use pooling::snapshot::StallRow;
use std::time::{Duration, SystemTime};

fn result(write: impl FnOnce(&mut Vec<u8>)) -> Parsed {
    let mut out = Vec::new();
    write(&mut out);
    parse(&out)
}

/// 2026-11-30 11:20:55 UTC.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_037_655)
}

fn kind(columns: &[(String, u32)], name: &str) -> u32 {
    columns.iter().find(|(column, _)| column == name).map(|(_, kind)| *kind).unwrap()
}

#[test]
fn show_pools_has_the_columns_of_pgbouncer_first() {
    let mut pool = pool_row("app", "web");
    pool.cl_waiting = 12;
    pool.maxwait = Duration::from_micros(3_000_042);
    pool.failure = Some(("refused", "connection refused".to_owned(), Duration::from_secs(9)));
    let shown = result(|out| pools(out, &[pool], 2));
    let names: Vec<_> = shown.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names[..17],
        [
            "database",
            "user",
            "cl_active",
            "cl_waiting",
            "cl_active_cancel_req",
            "cl_waiting_cancel_req",
            "sv_active",
            "sv_active_cancel",
            "sv_being_canceled",
            "sv_idle",
            "sv_used",
            "sv_tested",
            "sv_login",
            "maxwait",
            "maxwait_us",
            "pool_mode",
            "load_balance_hosts"
        ]
    );
    assert_eq!(kind(&shown.columns, "user"), oid::TEXT);
    assert_eq!(kind(&shown.columns, "maxwait_us"), oid::INT4);
    assert_eq!((shown.value(0, "database"), shown.value(0, "cl_active")), (Some("pgbouncer"), Some("2")));
    assert_eq!(shown.value(0, "pool_mode"), Some("statement"));
    assert_eq!(shown.value(1, "cl_waiting"), Some("12"));
    assert_eq!((shown.value(1, "maxwait"), shown.value(1, "maxwait_us")), (Some("3"), Some("42")));
    assert_eq!((shown.value(1, "failure"), shown.value(1, "failing")), (Some("refused"), Some("9")));
    assert_eq!(shown.value(1, "load_balance_hosts"), None);
    assert_eq!(shown.tags, ["SHOW"]);
}

#[test]
fn show_clients_tells_where_from_since_when_and_linked_to_what() {
    let mut client = client_row("app", "web");
    client.link = Some(0x8000_0001);
    client.state = "active";
    let mut stranger = client_row("", "");
    stranger.address = ClientAddress::Unix { port: 6432, uid: 0, pid: 55 };
    let shown = result(|out| clients(out, &[client, stranger], &[], now()));
    assert_eq!(shown.value(0, "type"), Some("C"));
    assert_eq!((shown.value(0, "addr"), shown.value(0, "port")), (Some("192.0.2.7"), Some("40000")));
    assert_eq!(
        (shown.value(0, "local_addr"), shown.value(0, "local_port")),
        (Some("192.0.2.1"), Some("6432"))
    );
    assert_eq!(shown.value(0, "connect_time"), Some("2026-11-30 11:19:25 UTC"));
    assert_eq!(shown.value(0, "request_time"), Some("2026-11-30 11:20:50 UTC"));
    assert_eq!((shown.value(0, "ptr"), shown.value(0, "link")), (Some("0x7"), Some("0x80000001")));
    assert_eq!((shown.value(1, "user"), shown.value(1, "database")), (Some("(nouser)"), Some("(nodb)")));
    assert_eq!((shown.value(1, "addr"), shown.value(1, "remote_pid")), (Some("unix"), Some("55")));
    assert_eq!(kind(&shown.columns, "connect_time"), oid::TEXT);
    assert_eq!(shown.columns.last().map(|(name, _)| name.as_str()), Some("id"));
}

#[test]
fn show_servers_has_the_columns_of_show_clients() {
    let mut local = server_row("app", "web");
    local.peer = None;
    local.close_needed = true;
    let shown = result(|out| servers(out, &[server_row("app", "web"), local], now()));
    assert_eq!(shown.columns, result(|out| clients(out, &[], &[], now())).columns);
    assert_eq!((shown.value(0, "addr"), shown.value(0, "remote_pid")), (Some("192.0.2.9"), Some("4711")));
    assert_eq!((shown.value(1, "addr"), shown.value(1, "port")), (Some("unix"), Some("5432")));
    assert_eq!((shown.value(0, "close_needed"), shown.value(1, "close_needed")), (Some("0"), Some("1")));
}

#[test]
fn show_stats_has_totals_then_averages_as_numeric() {
    let history = StatsHistory::new(Moment::ORIGIN);
    let totals = PerDatabase::from([("app".into(), [1, 20, 30, 4, 5, 6, 7, 8, 9, 10, 11, 12])]);
    let shown = result(|out| stats(out, &totals, &history, Moment::from_micros(10_000_000)));
    assert_eq!(shown.columns.len(), 25);
    assert!(shown.columns[1..].iter().all(|(_, kind)| *kind == oid::NUMERIC));
    assert_eq!(shown.columns[1].0, "total_server_assignment_count");
    assert_eq!(shown.columns[12].0, "total_client_login_count");
    assert_eq!(shown.columns[13].0, "avg_server_assignment_count");
    assert_eq!(shown.value(0, "total_client_login_count"), Some("12"));
    assert_eq!((shown.value(0, "avg_xact_count"), shown.value(0, "avg_query_count")), (Some("2"), Some("3")));

    let totals_alone = result(|out| stats_totals(out, &totals));
    assert_eq!(totals_alone.value(0, "bytes_received"), Some("4"));
    let averages_alone =
        result(|out| stats_averages(out, &totals, &history, Moment::from_micros(10_000_000)));
    assert_eq!(averages_alone.value(0, "query_count"), Some("3"));
    assert_eq!(averages_alone.columns[9].0, "avg_client_parse_count");
}

#[test]
fn show_holders_names_who_holds_what_for_how_long() {
    let shown = result(|out| holders(out, &[holder_row("app", "web")]));
    assert_eq!(shown.value(0, "reason"), Some("idle in transaction"));
    assert_eq!((shown.value(0, "held"), shown.value(0, "held_us")), (Some("12"), Some("500000")));
    assert_eq!((shown.value(0, "cl_waiting"), shown.value(0, "addr")), (Some("3"), Some("unix")));
}

#[test]
fn show_budget_tells_what_is_used_of_what_and_who_was_found_full() {
    let shown = result(|out| budget(out, &[budget_row("db:5432")]));
    assert_eq!((shown.value(0, "server"), shown.value(0, "lease")), (Some("db:5432"), Some("unused")));
    assert_eq!((shown.value(0, "budget"), shown.value(0, "reserved")), (Some("30"), Some("5")));
    assert_eq!((shown.value(0, "used"), shown.value(0, "usable")), (Some("12"), Some("11")));
    assert_eq!(
        (shown.value(0, "estimates"), shown.value(0, "server_estimate")),
        (Some("role app 8/9"), None)
    );
    assert_eq!((shown.value(0, "wanted"), shown.value(0, "looked_ms")), (Some("7"), None));
}

#[test]
fn show_lanes_tells_who_waits_in_which_lane() {
    let shown = result(|out| lanes(out, &[lane_row("app", "web", "interactive")]));
    assert_eq!((shown.value(0, "lane"), shown.value(0, "guaranteed")), (Some("interactive"), Some("10")));
    assert_eq!((shown.value(0, "maxwait"), shown.value(0, "maxwait_us")), (Some("1"), Some("500000")));
    assert_eq!((shown.value(0, "cl_waiting"), shown.value(0, "served")), (Some("3"), Some("99")));
}

#[test]
fn show_locks_names_blocker_waiter_and_statement_once_per_pool() {
    let mut held = lock_row("app", "web");
    held.pile.waiter = None;
    held.pile.longest = None;
    let shown = result(|out| locks(out, &[lock_row("app", "web"), held]));
    assert_eq!((shown.value(0, "sv_behind"), shown.value(0, "cl_waiting")), (Some("19"), Some("40")));
    assert_eq!((shown.value(0, "waiter_pid"), shown.value(0, "blocker_pids")), (Some("77"), Some("55,56")));
    assert_eq!(shown.value(0, "waiter_statement"), Some("ALTER TABLE orders ADD note text"));
    assert_eq!(shown.value(0, "blocker_state"), Some("idle in transaction"));
    assert_eq!((shown.value(1, "waiter_pid"), shown.value(1, "longest_wait_ms")), (None, None));
}

#[test]
fn show_storms_names_who_does_how_much_more_than_before() {
    let shown = result(|out| storms(out, &[storm_row("web")]));
    assert_eq!((shown.value(0, "user"), shown.value(0, "addr")), (Some("web"), Some("192.0.2.7")));
    assert_eq!((shown.value(0, "rate"), shown.value(0, "usual_rate")), (Some("250.050"), Some("2.000")));
    assert_eq!((shown.value(0, "began"), shown.value(0, "ended")), (Some("30"), None));
}

#[test]
fn show_help_is_a_notice() {
    let shown = result(help);
    assert_eq!(shown.notices, ["Console usage"]);
    assert!(shown.columns.is_empty());
    assert_eq!(shown.tags, ["SHOW"]);
}

#[test]
fn show_events_tells_what_happened_how_often_and_when_to_the_millisecond() {
    let shown = result(|out| events(out, &[event_row("app", "web")], now()));
    assert_eq!(shown.value(0, "first_time"), Some("2026-11-30 11:20:52.500 UTC"));
    assert_eq!(shown.value(0, "last_time"), Some("2026-11-30 11:20:55.000 UTC"));
    assert_eq!((shown.value(0, "event"), shown.value(0, "cause")), (Some("login_failed"), Some("refused")));
    assert_eq!((shown.value(0, "count"), shown.value(0, "database")), (Some("12"), Some("app")));
    assert_eq!(kind(&shown.columns, "count"), oid::INT8);
}

#[test]
fn show_overload_tells_how_the_line_stands_and_who_was_told_to_go() {
    let mut pool = pool_row("app", "web");
    pool.cl_waiting = 40;
    pool.overload.policy = "on";
    pool.overload.overloaded = Some(Duration::from_millis(2_500));
    pool.overload.service = Some(Duration::from_millis(50));
    pool.overload.predicted_wait = Some(Duration::from_millis(102));
    pool.overload.patience = [Some(Duration::from_secs(5)), None, None];
    pool.counters.shed = [7, 8, 9];
    pool.counters.would_shed = [0, 0, 3];
    let shown = result(|out| overloads(out, &[pool, pool_row("other", "web")]));
    let value = |name| shown.value(0, name);
    assert_eq!((value("policy"), value("overloaded_ms")), (Some("on"), Some("2500")));
    assert_eq!((value("cl_waiting"), value("service_us")), (Some("40"), Some("50000")));
    assert_eq!(value("predicted_wait_ms"), Some("102"));
    assert_eq!((value("patience_declared_ms"), value("patience_learnt_ms")), (Some("5000"), None));
    assert_eq!((value("shed_predicted"), value("shed_deadline")), (Some("7"), Some("8")));
    assert_eq!((value("shed_standing"), value("would_shed_standing")), (Some("9"), Some("3")));
    assert_eq!((shown.value(1, "policy"), shown.value(1, "overloaded_ms")), (Some("off"), None));
}

#[test]
fn show_patience_tells_what_was_learnt_of_whom() {
    let row = pooling::snapshot::PatienceRow {
        database: "app".into(),
        user: "web".into(),
        application_name: "checkout".into(),
        patience: Duration::from_millis(4_980),
        samples: 12,
    };
    let shown = result(|out| patience(out, &[row]));
    assert_eq!(shown.value(0, "application_name"), Some("checkout"));
    assert_eq!((shown.value(0, "patience_ms"), shown.value(0, "samples")), (Some("4980"), Some("12")));
}

#[test]
fn show_stalls_tells_what_goes_on_from_what_is_over() {
    let going_on = StallRow {
        database: "app".into(),
        user: "web".into(),
        cause: "held_by_clients",
        detail: "who".to_owned(),
        waiting: 3,
        began_ago: Duration::from_secs(7),
        lasted: Duration::from_micros(7_000_001),
        end: None,
    };
    let over = StallRow { end: Some("answered"), ..going_on.clone() };
    let shown = result(|out| stalls(out, &[going_on, over], now()));
    assert_eq!((shown.value(0, "state"), shown.value(1, "state")), (Some("going_on"), Some("answered")));
    assert_eq!(shown.value(0, "began"), Some("2026-11-30 11:20:48.000 UTC"));
    assert_eq!((shown.value(0, "lasted"), shown.value(0, "lasted_us")), (Some("7"), Some("1")));
    assert_eq!((shown.value(0, "cl_waiting"), shown.value(0, "detail")), (Some("3"), Some("who")));
}
