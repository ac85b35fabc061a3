//! Classes of work: a backlog holds up nobody else.

use crate::support::{House, PATIENCE, connect, number, value, within};
use drill::wire::frame;

const LANES: &str =
    "[lanes]\ninteractive = application_name=web* share_percent=50\nbacklog = application_name=batch\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_waiting_requests_of_a_backlog_do_not_hold_up_an_interactive_one() {
    let house = House::start(|setup| {
        setup.setting("default_pool_size", "4").setting("max_client_conn", "700").section(LANES)
    });
    house.warm(4).await;
    let mut backlog = Vec::new();
    for _ in 0..504 {
        backlog.push(connect(&house.options().parameter("application_name", "batch")).await);
    }
    let mut web = connect(&house.options().parameter("application_name", "web-1")).await;
    for client in &mut backlog {
        client.send(&frame::query("select pg_sleep(0.1)")).await.unwrap();
    }
    let waiting = |rows: &[crate::support::Row]| {
        rows.iter().find(|row| row["lane"] == "backlog").map_or(0, |row| number(row, "cl_waiting"))
    };
    let before = waiting(&house.show("LANES").await);
    for turn in 0..10 {
        let request = value(&mut web, "select 1");
        assert_eq!(within(PATIENCE, &format!("request {turn}"), request).await, "1");
    }
    // A server is free every 25 ms or so. First come, first served, the whole backlog would have gone before.
    let left = waiting(&house.show("LANES").await);
    assert!(before >= 300 && left + 200 > before, "of {before}, {left} wait still");
    assert!(house.metric_of("lane_server_assignments_total", "lane=\"interactive\"").await >= 10.0);
}
