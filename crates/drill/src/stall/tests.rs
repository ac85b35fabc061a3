use super::*;
use crate::peer::{Pgbouncer, PoolerProgram};
use crate::postgres::PrivatePostgres;

fn short(pooler: Address) -> StallOptions {
    let mut options = StallOptions::new(pooler);
    options.clients = 10;
    options.patience = Duration::from_secs(1);
    options.ramp = Duration::from_millis(200);
    options.login_delay = Duration::ZERO;
    (options.before, options.fault_for, options.after) =
        (Duration::from_secs(2), Duration::from_secs(2), Duration::from_secs(3));
    options.hold_s = 1;
    options.fault = Fault::Freeze;
    options
}

/// Clients straight at the database, through the relay: the load and the fault work, and a healthy way back is seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_load_sees_the_fault_and_the_way_back() {
    let server = PrivatePostgres::start_default().unwrap();
    let relay = Relay::start(server.tcp_address()).unwrap();
    let mut seconds = 0;
    let report = run(&short(Address::Tcp(relay.address())), &relay, |_, _| seconds += 1).await.unwrap();
    assert!(report.goodput_before >= 50, "{report:?}");
    assert!(!report.stalled && report.seconds_to_recover.is_some_and(|seconds| seconds <= 1), "{report:?}");
    let frozen = &report.seconds[2..4];
    assert!(
        frozen[1].good == 0 && frozen.iter().map(|second| second.gave_up).sum::<u64>() >= 10,
        "{report:?}"
    );
    assert_eq!(seconds, 7);
}

#[tokio::test]
async fn a_pooler_that_nobody_can_reach_is_reported_as_stalled_with_its_errors() {
    let relay = Relay::start(([127, 0, 0, 1], 1).into()).unwrap();
    let report = run(&short(Address::Tcp(relay.address())), &relay, |_, _| {}).await.unwrap();
    assert!(report.stalled && report.seconds_to_recover.is_none());
    assert!(report.errors_by_text.values().sum::<u64>() > 10, "{report:?}");
}

#[test]
fn the_bench_runs_each_pooler_in_each_variant_and_reports_one_that_does_not_start() {
    let broken =
        PoolerProgram::Holdfast(crate::peer::Holdfast::new(std::path::Path::new("/bin/sh")).unwrap());
    let mut programs = vec![broken];
    programs.extend(Pgbouncer::find(None).map(PoolerProgram::Pgbouncer));
    let mut options = BenchOptions::new(programs);
    options.variants.truncate(1);
    options.clients = 10;
    (options.before, options.fault_for, options.after) =
        (Duration::from_secs(2), Duration::from_secs(1), Duration::from_secs(5));
    let report = bench(&options, &|_| {}).unwrap();
    assert_eq!(report.rows.len(), options.programs.len());
    assert!(report.rows[0].error.as_ref().unwrap().contains("ended at start"));
    if let Some(row) = report.rows.get(1) {
        let good = row.report.as_ref().map(|report| report.goodput_before);
        assert!(good.is_some_and(|rate| rate > 50), "{}", report.table());
    }
    assert!(report.table().lines().count() > 1);
}

#[test]
fn a_padded_query_has_the_size_that_was_asked_for() {
    let variant = Variant { query_bytes: bench::LARGE_QUERY_BYTES, ..Variant::all()[0] };
    assert_eq!(variant.query("select 1").len(), bench::LARGE_QUERY_BYTES);
    assert_eq!(Variant::all().len(), 24);
}
