use super::*;

fn report(ours: f64) -> MapReport {
    let spot = |pooler: &str, kind, answered_after| Spot {
        pooler: pooler.to_owned(),
        kind,
        answered_after,
        good_per_s: 180.0,
        normal_after_s: None,
        servers_lost: 3,
        late_ms: 1.0,
    };
    let cell = |load, stall_s| Cell {
        load,
        stall_s,
        spots: vec![spot("holdfast", PoolerKind::Ours, ours), spot("peer <1>", PoolerKind::Peer, 0.0)],
    };
    MapReport {
        seed: 1,
        pool_size: 20,
        query_ms: 100,
        patience_s: 1.0,
        capacity_per_s: 200.0,
        machine_busy: 0.5,
        server_version: "15".to_owned(),
        cells: [0.5, 0.9].iter().flat_map(|load| [cell(*load, 1.0), cell(*load, 3.0)]).collect(),
    }
}

#[test]
fn only_ours_has_to_come_back() {
    assert!(report(1.0).holds());
    assert!(!report(0.1).holds());
}

#[test]
fn the_picture_has_each_cell_of_each_pooler_and_no_raw_names() {
    let svg = report(0.97).picture();
    assert_eq!(svg.matches("97 %").count(), 4);
    assert_eq!(svg.matches("hsl(0,").count(), 4);
    assert!(svg.contains("peer &lt;1&gt;") && !svg.contains("<1>"));
}

#[test]
fn the_table_has_a_row_for_each_cell() {
    let table = report(0.97).table();
    assert_eq!(table.lines().filter(|line| line.contains("97 %")).count(), 4);
    assert!(table.contains("| 90 % | 3 s | 97 % | never | 3 |"), "{table}");
}
