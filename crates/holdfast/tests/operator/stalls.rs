//! A pool that stands still says why.

use std::time::Duration;

use crate::support::{House, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_database_is_explained_once_in_log_metric_and_console() {
    let house = House::start_behind_relay(|setup| {
        setup.setting("default_pool_size", "1").setting("stall_after", "500ms")
    });
    house.warm(1).await;
    let (mut one, mut two) = (house.client().await, house.client().await);
    house.relay().freeze();
    let asked = tokio::spawn(async move {
        let _ = tokio::join!(one.query("select 1"), two.query("select 2"));
    });
    eventually(Duration::from_secs(10), "the log says so", || {
        house.pooler.log().contains("pool stands still: 1 servers owe an answer")
    })
    .await;
    let rows = house.show("STALLS").await;
    assert_eq!(
        (&*rows[0]["state"], &*rows[0]["cause"], &*rows[0]["cl_waiting"]),
        ("going_on", "server_silent", "1")
    );
    assert!(house.metric_of("stalled_seconds", "cause=\"server_silent\"").await >= 0.5);
    house.relay().thaw();
    asked.await.unwrap();
    eventually(Duration::from_secs(10), "its end is told", || {
        house.pooler.log().contains("pool no longer stands still")
    })
    .await;
    assert_eq!(house.pooler.log().matches("pool stands still").count(), 1);
    assert_eq!(house.show("STALLS").await[0]["state"], "answered");
    assert_eq!((house.metric("stalled_seconds").await, house.metric("stalls_total").await), (0.0, 1.0));
    let events = house.show("EVENTS").await;
    assert!(events.iter().any(|row| row["event"] == "stalled"), "{events:?}");
}
