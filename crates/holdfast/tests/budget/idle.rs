//! Clients that do nothing cost next to no memory, and a process where nobody does anything does nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use drill::cost::idle_cost;
use drill::process::raise_descriptor_limit;
use tokio::time::sleep;

use crate::release;
use crate::support::connect;

const CLIENTS: usize = 2000;

/// Resident memory of the process for each plain client that is logged in and idle, bytes.
const BYTES_PER_CLIENT: f64 = 512.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_costs_half_a_kilobyte() {
    raise_descriptor_limit();
    let house = release::house(|setup| setup.setting("max_client_conn", "3000"));
    // A first client brings what all share.
    connect(&house.options()).await.query("select 1").await.unwrap();
    let report = idle_cost(&house.pooler, CLIENTS, Duration::from_secs(1)).unwrap();
    eprintln!("{report:?}");
    assert!(report.bytes_per_idle_client <= BYTES_PER_CLIENT, "{report:?}");
    assert!(report.bytes_per_client_after_a_query <= BYTES_PER_CLIENT, "{report:?}");
}

/// For each thread: nanoseconds on a processor, and how often it went to sleep.
fn activity(pid: u32) -> BTreeMap<String, (u64, u64)> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = task.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
        let ran_ns = read("schedstat").split_whitespace().next().unwrap().parse().unwrap();
        let status = read("status");
        let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        let name = format!("{} {}", path.file_name().unwrap().display(), read("comm").trim());
        threads.insert(name, (ran_ns, slept.trim().parse().unwrap()));
    }
    threads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_process_uses_no_cpu_at_all() {
    raise_descriptor_limit();
    let house = release::house(|setup| setup);
    house.warm(5).await;
    let mut clients = Vec::new();
    for _ in 0..500 {
        clients.push(connect(&house.options()).await);
    }
    for client in &mut clients {
        client.query("select 1").await.unwrap();
    }
    let pool = house.pool().await;
    assert_eq!((pool["cl_active"].as_str(), pool["sv_idle"].as_str()), ("500", "5"));
    // Whoever had to wait left a timer behind for a notice (`query_wait_notify`).
    sleep(Duration::from_secs(7)).await;
    let before = activity(house.pooler.pid());
    sleep(Duration::from_secs(5)).await;
    assert_eq!(activity(house.pooler.pid()), before, "nanoseconds run and voluntary switches of each thread");
}
