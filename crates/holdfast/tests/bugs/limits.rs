//! Clients without number, and descriptors that run out.

use std::time::Duration;

use drill::process::CpuSample;
use drill::wire::{Connection, Error};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, connect, holdfast_with_descriptors, show, value, within};

/// No limit of clients: any of them could use up the descriptors, and then nothing worked.
/// pgcat #799
#[tokio::test(flavor = "multi_thread")]
async fn surplus_clients_are_refused_and_the_console_stays_reachable() {
    let folder = tempfile::tempdir().unwrap();
    let program = holdfast_with_descriptors(256, folder.path());
    let house = House::build(&program, Default::default(), false, |setup| {
        setup
            .setting("default_pool_size", "20")
            .setting("max_client_conn", "2000")
            .setting("log_pooler_errors", "0")
    });
    let (mut served, mut refused) = (Vec::new(), 0);
    for _ in 0..400 {
        match within(PATIENCE, "an answer", Connection::connect(&house.options())).await {
            Ok(client) => served.push(client),
            Err(error) => {
                assert_eq!(error.server().map(|error| &*error.code), Some("53300"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(served.len() >= 100, "only {} of 256 descriptors serve clients", served.len());
    assert!(refused >= 144, "{refused} were refused");
    // Descriptors are kept back for servers, for the console and for health.
    for client in served.iter_mut().step_by(10) {
        assert_eq!(value(client, "select 1").await, "1");
    }
    let mut console = house.console().await;
    assert!(!show(&mut console, "POOLS").await.is_empty());
    assert_eq!(house.metric("clients_refused_total").await, f64::from(refused));
    // Whoever leaves makes room.
    served.pop().unwrap().terminate().await.unwrap();
    house.wait_pool("one has left", |pool| pool["cl_active"] == served.len().to_string()).await;
    let mut client = house.client().await;
    assert_eq!(value(&mut client, "select 1").await, "1");
}

/// Out of descriptors: a storm of log lines, a busy loop, or the end of the listener.
/// pg_doorman PR #262; pgdog, pgcat
#[tokio::test(flavor = "multi_thread")]
async fn full_descriptor_table_pauses_accepting_and_nothing_else() {
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    house.warm(2).await;
    let mut client = house.client().await;
    let pid = Pid::from_raw(i32::try_from(house.pooler.pid()).unwrap());
    let whole = getrlimit(Resource::Nofile);
    // No further descriptor than those that are open now.
    let open = drill::process::descriptor_count(house.pooler.pid()).unwrap() as u64;
    let none = Rlimit { current: Some(open), maximum: whole.maximum };
    let before = prlimit(pid, Resource::Nofile, none).unwrap();
    let lines = house.pooler.log().lines().count();
    let mut newcomers = JoinSet::new();
    for _ in 0..50 {
        let options = house.options();
        newcomers.spawn(async move { Connection::connect(&options).await });
    }
    sleep(Duration::from_millis(500)).await;
    let cpu = CpuSample::read(house.pooler.pid()).unwrap();
    let began = Instant::now();
    let mut answers = 0;
    while began.elapsed() < Duration::from_secs(4) {
        assert_eq!(value(&mut client, "select 1").await, "1", "who is connected is served");
        answers += 1;
        sleep(Duration::from_millis(100)).await;
    }
    assert!(answers > 20, "{answers} answers in four seconds");
    let used = cpu.until(&CpuSample::read(house.pooler.pid()).unwrap());
    assert!(used < began.elapsed() / 20, "{used:?} of CPU in {:?}", began.elapsed());
    let said = house.pooler.log().lines().count() - lines;
    assert!((1..=10).contains(&said), "{said} lines about it:\n{}", house.pooler.log());
    prlimit(pid, Resource::Nofile, before).unwrap();
    let began = Instant::now();
    let mut late = within(Duration::from_secs(2), "a new client", connect(&house.options())).await;
    assert!(began.elapsed() < Duration::from_secs(1), "accepted after {:?}", began.elapsed());
    assert_eq!(value(&mut late, "select 1").await, "1");
    let all = async {
        while let Some(newcomer) = newcomers.join_next().await {
            served_or_told(newcomer.unwrap());
        }
    };
    within(PATIENCE, "all who came meanwhile", all).await;
}

/// Who came while there were no descriptors has waited for one, or was told.
fn served_or_told(newcomer: Result<Connection, Error>) {
    if let Err(error) = newcomer {
        assert_eq!(error.server().map(|error| &*error.code), Some("53300"), "{error}");
    }
}
