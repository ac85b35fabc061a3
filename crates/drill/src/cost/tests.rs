use super::*;
use crate::peer::Pgbouncer;

#[test]
fn a_pooler_beside_itself_costs_about_the_same() {
    // Without PgBouncer there is nothing to measure; its own test says how to install it.
    let Ok(pgbouncer) = Pgbouncer::find(None) else { return };
    let program = PoolerProgram::Pgbouncer(pgbouncer);
    let mut options = CostOptions::new(program.clone(), program);
    options.cases = vec!["simple/4".parse().unwrap()];
    (options.blocks, options.scale, options.idle_clients) = (2, 1, 50);
    options.idle_for = Duration::from_millis(200);
    let report = bench(&options, &|_| {}).unwrap();
    let case = &report.cases[0];
    assert_eq!((case.pairs.len(), case.error.as_ref()), (2, None), "{}", report.table());
    // Wide, because two short blocks on a busy machine say little.
    assert!((0.4..2.5).contains(&case.cpu_ratio.unwrap().median), "{}", report.table());
    assert!(case.subject_cpu_us > 0.5, "{}", report.table());
    assert_eq!(report.idle.len(), 2);
    assert!(report.table().contains("simple/4"));
}
