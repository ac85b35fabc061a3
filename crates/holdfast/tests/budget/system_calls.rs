//! System calls of the reactor for each transaction, counted by strace.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use drill::process::{Signal, signal};

use crate::release;
use crate::support::not_run;
use crate::work::Clients;

/// Servers of the pool.
const POOL: usize = 16;

/// Transactions that are counted, at least.
const TRANSACTIONS: usize = 3200;

/// Room for what does not belong to a transaction: strace comes and goes, a last wait.
const NOISE: f64 = 0.01;

/// strace on one thread.
struct Count {
    strace: Child,
    report: tempfile::NamedTempFile,
}

impl Count {
    /// Starts counting; none if strace cannot.
    fn start(thread: u32) -> Option<Self> {
        let report = tempfile::NamedTempFile::new().unwrap();
        let mut strace = Command::new("strace")
            .args(["-c", "-U", "calls,errors,name", "-p", &thread.to_string(), "-o"])
            .arg(report.path())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(strace.stderr.take().unwrap()).read_line(&mut line).unwrap();
        if line.contains("attached") {
            return Some(Self { strace, report });
        }
        strace.wait().unwrap();
        not_run(&format!("strace cannot attach: {}", line.trim()));
        None
    }

    /// Calls and errors by name.
    fn finish(mut self) -> BTreeMap<String, (f64, f64)> {
        signal(self.strace.id(), Signal::INT).unwrap();
        self.strace.wait().unwrap();
        let text = std::fs::read_to_string(self.report.path()).unwrap();
        let mut calls = BTreeMap::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(count), Some(name)) =
                (fields.first().and_then(|field| field.parse().ok()), fields.last())
            else {
                continue;
            };
            let errors = if fields.len() == 3 { fields[1].parse().unwrap() } else { 0.0 };
            if *name != "total" {
                calls.insert((*name).to_owned(), (count, errors));
            }
        }
        assert!(!calls.is_empty(), "nothing counted: {text}");
        calls
    }
}

/// Calls a transaction, by name, and the sum.
async fn measure(clients: usize) -> Option<(BTreeMap<String, (f64, f64)>, f64)> {
    if !release::installed("strace") {
        not_run("strace is not installed");
        return None;
    }
    let house = release::house(|setup| setup.setting("default_pool_size", &POOL.to_string()));
    let mut load = Clients::start(&house.options(), clients).await;
    let count = Count::start(release::reactor_thread(house.pooler.pid()))?;
    let each = TRANSACTIONS.div_ceil(clients);
    load.run(each).await;
    let transactions = (each * clients) as f64;
    let calls: BTreeMap<String, (f64, f64)> = count
        .finish()
        .into_iter()
        .map(|(name, (calls, errors))| (name, (calls / transactions, errors / transactions)))
        .collect();
    let sum = calls.values().map(|(calls, _)| calls).sum();
    eprintln!("{clients} clients: {sum:.2} system calls a transaction: {calls:.3?}");
    load.leave().await;
    Some((calls, sum))
}

/// Exactly two reads and two writes, none of them in vain, and nothing but waits beside them.
fn assert_four_and_waits(calls: &BTreeMap<String, (f64, f64)>) {
    let of = |names: &[&str]| -> (f64, f64) {
        let found = calls.iter().filter(|(name, _)| names.contains(&name.as_str()));
        found.fold((0.0, 0.0), |sum, (_, (count, errors))| (sum.0 + count, sum.1 + errors))
    };
    let (reads, in_vain) = of(&["recvfrom", "recvmsg", "read", "readv"]);
    let (writes, _) = of(&["sendto", "sendmsg", "write", "writev"]);
    assert!((reads - 2.0).abs() < NOISE, "{reads} reads: {calls:?}");
    assert!((writes - 2.0).abs() < NOISE, "{writes} writes: {calls:?}");
    assert!(in_vain < NOISE, "{in_vain} reads in vain: {calls:?}");
    let others: f64 = calls.values().map(|(count, _)| count).sum::<f64>()
        - reads
        - writes
        - of(&["epoll_wait", "epoll_pwait"]).0;
    assert!(others < NOISE, "{others} other calls: {calls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_costs_six_system_calls_a_transaction() {
    let Some((calls, sum)) = measure(1).await else { return };
    assert_four_and_waits(&calls);
    assert!(sum <= 6.0 + NOISE, "{sum}: {calls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_clients_as_servers_cost_five_system_calls_a_transaction() {
    let Some((calls, sum)) = measure(16).await else { return };
    assert_four_and_waits(&calls);
    assert!(sum <= 5.0, "{sum}: {calls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_clients_than_servers_cost_four_and_a_half_system_calls_a_transaction() {
    let Some((calls, sum)) = measure(64).await else { return };
    assert_four_and_waits(&calls);
    assert!(sum <= 4.5, "{sum}: {calls:?}");
}
