//! User instructions of the process for each transaction, counted by callgrind: the difference of two run lengths, so
//! that start, logins and stop do not count. `callgrind_annotate` reads the profiles that are left under `target/tmp`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use drill::peer::Holdfast;
use drill::postgres::PostgresOptions;
use drill::process::Signal;

use crate::release;
use crate::support::{House, not_run};
use crate::work::Clients;

/// What one transaction cost when it was last looked at, with 1 client and with 64 on 16 servers (on x86-64, where
/// runs differ by 0.1 % and by 2 %). A change that costs more has to be worth it: then the new figure is written here. One
/// that costs less is written here as well.
const WITH_1_CLIENT: f64 = 4475.0;
const WITH_64_CLIENTS: f64 = 4455.0;

/// More than this above the figure fails.
const TOLERANCE: f64 = 1.03;

/// The least of so many measurements counts.
const ATTEMPTS: usize = 3;

/// Transactions of the two runs.
const SHORT: usize = 1280;
const LONG: usize = 6400;

/// Instructions of a whole run of the process with that many transactions.
async fn run(program: &Holdfast, clients: usize, transactions: usize) -> f64 {
    let mut house = House::build(program, PostgresOptions::default(), false, |setup| {
        setup.setting("default_pool_size", "16")
    });
    let mut load = Clients::start(&house.options(), clients).await;
    load.run(transactions / clients).await;
    load.leave().await;
    house.pooler.signal(Signal::TERM).unwrap();
    house.pooler.wait_end(Duration::from_secs(60)).expect("the pooler ends");
    let log = house.pooler.log();
    let line = log
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .unwrap_or_else(|| panic!("no count in {log}"));
    line.1.trim().parse().unwrap()
}

/// Starts the release build under callgrind; its profile goes to `profile`.
fn under_callgrind(folder: &Path, profile: &Path) -> Holdfast {
    let script = folder.join("under-callgrind");
    let text = format!(
        "#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file='{}' '{}' \"$@\"\n",
        profile.display(),
        release::program().display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    Holdfast::new(&script).unwrap()
}

async fn assert_cost(clients: usize, known: f64) {
    if !release::installed("valgrind") {
        return not_run("valgrind is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("callgrind.{clients}-clients"));
    let program = under_callgrind(folder.path(), &profile);
    let mut least = f64::INFINITY;
    // A busy machine splits the work over more turns of the loop, which only adds.
    for _ in 0..ATTEMPTS {
        let (short, long) = (run(&program, clients, SHORT).await, run(&program, clients, LONG).await);
        least = least.min((long - short) / (LONG - SHORT) as f64);
        if least <= known * TOLERANCE {
            break;
        }
    }
    eprintln!(
        "{clients} clients: {least:.0} instructions a transaction, {known} known; profile: {}",
        profile.display()
    );
    assert!(least <= known * TOLERANCE, "{least:.0} instructions a transaction instead of {known}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_one_client_costs_no_more_instructions_than_it_did() {
    assert_cost(1, WITH_1_CLIENT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_with_a_line_costs_no_more_instructions_than_it_did() {
    assert_cost(64, WITH_64_CLIENTS).await;
}
