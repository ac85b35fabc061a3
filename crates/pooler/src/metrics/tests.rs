use super::*;
use crate::console::fixtures::{budget_row, lane_row, overview, pool_row};
use pooling::close_cause::CloseCause;
use pooling::snapshot::PoolRow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const FACTS: ProcessFacts = ProcessFacts {
    version: "0.1.0",
    started: SystemTime::UNIX_EPOCH,
    log_lines_lost: 3,
    config: Some(ConfigFacts { not_reloaded: 2, pending_restart: 1, broken: false }),
};

fn text(pools: Vec<PoolRow>, format: Format) -> String {
    encode(overview(pools), FACTS, format).unwrap()
}

/// Every sample by its series, read by the rules of the text format; fails on anything else.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    for line in text.lines() {
        if line == "# EOF" {
            continue;
        }
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (kind, name) = (words.next().unwrap(), words.next().unwrap());
            assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
            assert!(words.next().is_some_and(|rest| !rest.is_empty()), "{line}");
            families.insert(name.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(name.starts_with("holdfast_pooler_"), "{line}");
        assert!(families.iter().any(|family| name.starts_with(family.as_str())), "{line} has no family");
        let labels = series.strip_prefix(name).unwrap();
        let key = if labels.is_empty() { name.to_owned() } else { format!("{name}{}", sorted(labels)) };
        let value = value.parse().unwrap();
        assert!(samples.insert(key, value).is_none(), "{series} stands there twice");
    }
    samples
}

/// Reads `{a="b",c="d"}` with nothing but the three escapes inside the quotes. The two formats differ in the order of
/// labels and in how they write bounds, so both are brought into one shape.
fn sorted(labels: &str) -> String {
    let mut all = Vec::new();
    let mut rest = labels.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
    loop {
        let (name, value) = rest.split_once("=\"").unwrap();
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{labels}");
        let mut characters = value.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => assert!(matches!(characters.next(), Some((_, '\\' | '"' | 'n'))), "{labels}"),
                (_, character) => assert_ne!(character, '\n'),
            }
        };
        let bound = value[..end].parse::<f64>().ok().filter(|_| name == "le");
        let shown = bound.map_or_else(|| value[..end].to_owned(), |bound| bound.to_string());
        all.push(format!("{name}=\"{shown}\""));
        rest = &value[end + 1..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    assert_eq!(rest, "", "{labels}");
    all.sort();
    format!("{{{}}}", all.join(","))
}

fn busy_pool() -> PoolRow {
    let mut pool = pool_row("app", "web");
    pool.cl_waiting = 4;
    pool.sv_active = 2;
    pool.maxwait = Duration::from_millis(1_500);
    pool.since_last_answer = Some(Duration::from_millis(250));
    pool.failure = Some(("refused", "secret-free text".to_owned(), Duration::from_secs(9)));
    pool.stall = Some(("server_silent", Duration::from_secs(6)));
    pool.counters.stalls = vec![("held_by_clients", 2), ("server_silent", 1)];
    pool.counters.received = 1_000;
    pool.counters.xact_time_us = 2_500_000;
    pool.counters.server_open_failures = vec![("refused", 5)];
    pool.counters.server_closes[CloseCause::Lifetime as usize] = 6;
    pool.counters.departure_cancels = 7;
    pool.counters.shed = [11, 0, 12];
    pool.counters.would_shed = [0, 13, 0];
    pool.overload.overloaded = Some(Duration::from_secs(2));
    pool.overload.patience = [Some(Duration::from_secs(5)), None, Some(Duration::from_millis(300))];
    pool.counters.wait.record(Duration::from_millis(3));
    pool.counters.wait.record(Duration::from_secs(900));
    pool
}

#[test]
fn both_formats_hold_the_same_samples_and_can_be_read() {
    let open_metrics = text(vec![busy_pool()], Format::OpenMetrics);
    assert!(open_metrics.ends_with("# EOF\n"));
    let prometheus = text(vec![busy_pool()], Format::Prometheus);
    assert_eq!(samples(&open_metrics), samples(&prometheus));
    assert!(open_metrics.contains("# UNIT holdfast_pooler_wait_seconds seconds\n"));
}

#[test]
fn a_busy_pool_is_seen_in_every_respect() {
    let samples = samples(&text(vec![busy_pool()], Format::Prometheus));
    for (series, value) in [
        (r#"clients_waiting{database="app",user="web"}"#, 4.0),
        (r#"longest_wait_seconds{database="app",user="web"}"#, 1.5),
        (r#"since_last_answer_seconds{database="app",user="web"}"#, 0.25),
        (r#"failing_seconds{cause="refused",database="app",user="web"}"#, 9.0),
        (r#"stalled_seconds{cause="server_silent",database="app",user="web"}"#, 6.0),
        (r#"stalls_total{cause="held_by_clients",database="app",user="web"}"#, 2.0),
        (r#"servers{database="app",state="active",user="web"}"#, 2.0),
        (r#"server_open_failures_total{cause="refused",database="app",user="web"}"#, 5.0),
        (r#"server_closes_total{cause="lifetime",database="app",user="web"}"#, 6.0),
        (r#"cancels_total{client="gone",database="app",user="web"}"#, 7.0),
        (r#"shed_total{cause="predicted",database="app",user="web"}"#, 11.0),
        (r#"shed_total{cause="standing",database="app",user="web"}"#, 12.0),
        (r#"would_shed_total{cause="deadline",database="app",user="web"}"#, 13.0),
        (r#"overloaded{database="app",user="web"}"#, 1.0),
        (r#"patience_seconds{database="app",source="declared",user="web"}"#, 5.0),
        (r#"patience_seconds{database="app",source="learnt",user="web"}"#, 0.3),
        (r#"client_received_bytes_total{database="app",user="web"}"#, 1_000.0),
        (r#"transaction_time_seconds_total{database="app",user="web"}"#, 2.5),
        (r#"wait_seconds_count{database="app",user="web"}"#, 2.0),
        (r#"wait_seconds_sum{database="app",user="web"}"#, 900.003),
        (r#"wait_seconds_bucket{database="app",le="0.005",user="web"}"#, 1.0),
        (r#"wait_seconds_bucket{database="app",le="200",user="web"}"#, 1.0),
        (r#"wait_seconds_bucket{database="app",le="inf",user="web"}"#, 2.0),
        (r#"build_info{version="0.1.0"}"#, 1.0),
        ("client_limit", 100.0),
        ("log_lines_lost_total", 3.0),
        ("config_not_reloaded", 2.0),
        ("config_pending_restart", 1.0),
        ("config_broken", 0.0),
    ] {
        assert_eq!(samples.get(&format!("holdfast_pooler_{series}")), Some(&value), "{series}");
    }
    let quiet = |series: &String| series.contains("desync") || series.contains("\"asked\"");
    assert!(!samples.keys().any(quiet), "causes that never happened have no series");
}

#[test]
fn time_since_the_last_answer_is_shown_only_while_someone_waits() {
    let mut pool = busy_pool();
    pool.cl_waiting = 0;
    assert!(!text(vec![pool], Format::Prometheus).contains("since_last_answer_seconds{"));
}

#[test]
fn names_with_quotes_and_line_ends_stay_inside_their_labels() {
    let pools = vec![pool_row("a\"b\\c\nd", "x\"} 1\nfake 1")];
    for format in [Format::OpenMetrics, Format::Prometheus] {
        let text = text(pools.clone(), format);
        assert!(samples(&text).keys().any(|series| series.contains(r#"database="a\"b\\c\nd""#)));
        assert!(!text.contains("\nfake"));
    }
}

#[test]
fn pools_beyond_the_limit_are_summed_and_none_is_lost() {
    let pools: Vec<_> = (0..MAX_LABELLED_POOLS + 5)
        .map(|number| {
            let mut pool = pool_row(&format!("db{number}"), "web");
            pool.counters.query_count = 1;
            pool.counters.query.record(Duration::from_millis(1));
            pool
        })
        .collect();
    let samples = samples(&text(pools, Format::Prometheus));
    let queries: Vec<_> =
        samples.iter().filter(|(series, _)| series.starts_with("holdfast_pooler_queries_total")).collect();
    assert_eq!(queries.len(), MAX_LABELLED_POOLS + 1);
    let other = r#"holdfast_pooler_queries_total{database="other",user="other"}"#;
    assert_eq!(samples[other], 5.0);
    let other = r#"holdfast_pooler_query_seconds_count{database="other",user="other"}"#;
    assert_eq!(samples[other], 5.0);
}

#[test]
fn a_pool_that_is_really_named_other_is_summed_with_the_others() {
    let mut pools = vec![pool_row(OTHER, OTHER)];
    pools.extend((0..3).map(|number| pool_row(&format!("db{number}"), "web")));
    for pool in &mut pools {
        pool.counters.query_count = 1;
    }
    let folded = fold::fold(pools, 2);
    assert_eq!(folded.iter().filter(|pool| &*pool.database == OTHER).count(), 1);
    assert_eq!(folded.iter().map(|pool| pool.counters.query_count).sum::<u64>(), 4);
}

#[test]
fn the_format_follows_the_accept_header() {
    let asks = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    assert_eq!(Format::from_accept(asks), Format::OpenMetrics);
    assert_eq!(Format::from_accept("*/*"), Format::Prometheus);
}

#[test]
fn budgets_have_series_by_server_and_none_without_one() {
    let none = encode(overview(Vec::new()), FACTS, Format::Prometheus).unwrap();
    assert!(!none.contains("budget"), "{none}");
    let mut rows = overview(Vec::new());
    rows.budgets = vec![budget_row("db:5432")];
    let text = encode(rows, FACTS, Format::Prometheus).unwrap();
    for line in [
        "holdfast_pooler_budget_connections{server=\"db:5432\"} 30",
        "holdfast_pooler_budget_used{server=\"db:5432\"} 12",
        "holdfast_pooler_budget_wanted{server=\"db:5432\"} 7",
        "holdfast_pooler_budget_lost{server=\"db:5432\"} 0",
        "holdfast_pooler_budget_losses_total{server=\"db:5432\"} 2",
    ] {
        assert!(text.lines().any(|at| at == line), "{line} is missing:\n{text}");
    }
}

#[test]
fn lanes_are_summed_over_the_pools() {
    let mut rows = overview(Vec::new());
    rows.lanes =
        vec![lane_row("app", "web", "night"), lane_row("app", "api", "night"), lane_row("app", "web", "day")];
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let samples = samples(&encode(rows.clone(), FACTS, format).unwrap());
        assert_eq!(samples["holdfast_pooler_lane_clients_waiting{lane=\"night\"}"], 6.0);
        assert_eq!(samples["holdfast_pooler_lane_server_assignments_total{lane=\"night\"}"], 198.0);
        assert_eq!(samples["holdfast_pooler_lane_longest_wait_seconds{lane=\"day\"}"], 1.5);
    }
}
