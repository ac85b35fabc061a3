//! The pages over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use drill::postgres::StopMode;
use drill::wire::Connection;
use serde_json::Value;
use tokio::time::sleep;

use crate::support::{House, eventually, http_body, value};

async fn database(house: &House) -> Value {
    serde_json::from_str(&http_body(house.metrics_address(), "/healthz/database").await).unwrap()
}

async fn asleep(house: &House, count: usize) -> Vec<tokio::task::JoinHandle<()>> {
    let mut tasks = Vec::new();
    for _ in 0..count {
        let mut client: Connection = house.client().await;
        tasks.push(tokio::spawn(async move {
            // Its outcome is not what is looked at.
            let _ = client.query("select pg_sleep(60)").await;
        }));
    }
    tasks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_page_tells_fine_from_saturated_from_gone() {
    let mut house =
        House::start(|setup| setup.setting("default_pool_size", "2").setting("server_login_retry", "1"));
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    assert_eq!(database(&house).await["state"], "fine");

    let tasks = asleep(&house, 5).await;
    house.wait_waiting(3).await;
    let page = database(&house).await;
    assert_eq!(page["state"], "saturated");
    assert_eq!(page["pools"][0]["clients_waiting"], 3);
    for task in tasks {
        task.abort();
    }
    house.wait_pool("all is idle again", |pool| pool["sv_idle"] == "2" && pool["cl_waiting"] == "0").await;
    assert_eq!(database(&house).await["state"], "fine");

    house.postgres.stop(StopMode::Fast).unwrap();
    assert!(client.query("select 1").await.unwrap().error().is_some());
    let page = database(&house).await;
    assert_eq!(page["state"], "database gone");
    assert_eq!(page["pools"][0]["cause"], "refused");
    house.postgres.start_again().unwrap();
    sleep(Duration::from_secs(1)).await;
    value(&mut client, "select 1").await;
    assert_eq!(database(&house).await["state"], "fine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_database_is_gone_though_its_sockets_are_open() {
    let house = House::start_behind_relay(|setup| setup.setting("default_pool_size", "1"));
    house.warm(1).await;
    let (mut one, mut two) = (house.client().await, house.client().await);
    house.relay().freeze();
    let asked = tokio::spawn(async move {
        let _ = tokio::join!(one.query("select 1"), two.query("select 2"));
    });
    house.wait_waiting(1).await;
    sleep(Duration::from_secs(6)).await;
    assert_eq!(database(&house).await["state"], "database gone");
    let live: Value =
        serde_json::from_str(&http_body(house.metrics_address(), "/healthz/live").await).unwrap();
    let ready: Value =
        serde_json::from_str(&http_body(house.metrics_address(), "/healthz/ready").await).unwrap();
    assert_eq!((&live["state"], &ready["state"]), (&"live".into(), &"ready".into()));
    house.relay().thaw();
    asked.await.unwrap();
    assert_eq!(database(&house).await["state"], "fine");
}

/// Lines of the text format: `name{labels} value`.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, number) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
        let number = number.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        assert!(name.starts_with("holdfast_pooler_"), "{line}");
        assert!(!name.contains('{') || name.ends_with('}'), "{line}");
        assert!(samples.insert(name.to_owned(), number).is_none(), "twice: {line}");
    }
    samples
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_of_the_metrics_is_a_sample_and_histograms_add_up() {
    let house = House::start(|setup| setup);
    let mut client = house.client().await;
    for _ in 0..20 {
        value(&mut client, "select 1").await;
    }
    let text = http_body(house.metrics_address(), "/metrics").await;
    let samples = samples(&text);
    let histograms: Vec<&String> = samples.keys().filter(|name| name.contains("_count{")).collect();
    assert!(histograms.len() >= 3, "{histograms:?}");
    for count in histograms {
        let (family, labels) = count.split_once("_count{").unwrap();
        let labels = labels.trim_end_matches('}');
        let bucket = format!("{family}_bucket{{");
        let mut steps: Vec<f64> = Vec::new();
        for (name, number) in &samples {
            if name.starts_with(&bucket) && labels.split(',').all(|label| name.contains(label)) {
                steps.push(*number);
            }
        }
        let largest = steps.iter().copied().fold(0.0, f64::max);
        assert_eq!(largest, samples[count], "{family}: {steps:?}");
    }
    let queries = text.lines().find(|line| line.contains("query") && line.contains("_count{")).unwrap();
    assert!(queries.ends_with(" 20"), "{queries}");
    assert!(house.metric("transactions_total").await >= 20.0, "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_pooler_is_live_and_not_ready() {
    let house = House::start(|setup| setup);
    let _client = house.client().await;
    house.pooler.signal(drill::process::Signal::TERM).unwrap();
    eventually(Duration::from_secs(3), "the log says so", || house.pooler.log().contains("shutting down"))
        .await;
    let page: Value =
        serde_json::from_str(&http_body(house.metrics_address(), "/healthz/ready").await).unwrap();
    assert_eq!((&page["state"], &page["reason"]), (&"not ready".into(), &"shutting down".into()));
    let page: Value =
        serde_json::from_str(&http_body(house.metrics_address(), "/healthz/live").await).unwrap();
    assert_eq!(page["state"], "live");
}
