//! Prepared statements, named and unnamed, of many clients on few servers.

use std::process::{Command, Stdio};

use drill::postgres::DATABASE;
use drill::wire::{Connection, frame};
use tokio::task::JoinSet;

use crate::support::{House, PATIENCE, connect, reply, value, within};
use crate::twins::Twins;

/// Two prepared selects outside of a transaction broke.
/// pgcat #611
#[tokio::test(flavor = "multi_thread")]
async fn pgbench_runs_two_prepared_selects_outside_of_a_transaction() {
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("two.sql");
    std::fs::write(&script, "\\set x random(1, 9)\nselect :x + 1;\nselect :x::text || 'two';\n").unwrap();
    let port = house.pooler.port().to_string();
    let output = Command::new(house.postgres.binaries().program("pgbench"))
        .env_clear()
        .args([
            "-n",
            "-M",
            "prepared",
            "-c",
            "8",
            "-j",
            "8",
            "-t",
            "100",
            "-h",
            "127.0.0.1",
            "-U",
            "bench",
            "-p",
            &port,
        ])
        .arg("-f")
        .arg(&script)
        .arg(DATABASE)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("800/800") && told.contains("failed transactions: 0"),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A driver that describes first waited for ever, since its Flush was dropped.
/// pgcat PR #953
#[tokio::test(flavor = "multi_thread")]
async fn a_flush_is_answered_without_a_sync() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut twins = Twins::connect(&house).await;
    for name in ["s", ""] {
        let prepare =
            [frame::parse(name, "select $1::int + 1"), frame::describe_statement(name), frame::flush()];
        twins.ask(&prepare, "1tT").await;
        let run = [frame::bind("", name, &[Some("41")]), frame::execute("", 0), frame::sync()];
        twins.ask(&run, "2DCZ").await;
    }
    // What the pooler answers by itself comes in its turn, and without being asked again.
    let run = [frame::bind("", "s", &[Some("1")]), frame::execute("", 0), frame::close_statement("s")];
    twins.ask(&[run.concat(), frame::flush()], "2DC3").await;
    twins.ask(&[frame::close_statement("s"), frame::flush()], "3").await;
    twins.ask(&[frame::parse("s", "select 'new'"), frame::flush()], "1").await;
    twins.ask(&[frame::sync()], "Z").await;
    twins.ask(&[frame::bind("", "s", &[]), frame::execute("", 0), frame::sync()], "2DCZ").await;
    twins.assert_silent().await;
}

/// A Parse that failed left client and pooler with different ideas of what a name stands for.
/// pgcat PR #953
#[tokio::test(flavor = "multi_thread")]
async fn a_name_whose_parse_failed_is_free_and_one_that_is_taken_stays_as_it_is() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut twins = Twins::connect(&house).await;
    let run = |name: &str| [frame::bind("", name, &[]), frame::execute("", 0), frame::sync()];
    twins.ask(&[frame::parse("s", "select 'first'"), frame::sync()], "1Z").await;
    twins.ask(&[frame::parse("s", "select 'second'"), frame::sync()], "EZ").await;
    twins.ask(&run("s"), "2DCZ").await;
    twins.ask(&[frame::parse("f", "selec"), frame::flush()], "E").await;
    twins.ask(&[frame::sync()], "Z").await;
    twins.ask(&run("f"), "EZ").await;
    twins.ask(&[frame::parse("f", "select 'works'"), frame::sync()], "1Z").await;
    twins.ask(&run("f"), "2DCZ").await;
    // What follows a failure in its batch is not carried out.
    let skipped = [frame::parse("g", "select * from missing"), frame::close_statement("g"), frame::sync()];
    twins.ask(&skipped, "EZ").await;
    twins.ask(&[frame::parse("g", "select 'g'"), frame::sync()], "1Z").await;
    twins.ask(&run("g"), "2DCZ").await;
    let skipped = [
        frame::parse("", "selec"),
        frame::close_statement("s"),
        frame::parse("h", "select 1"),
        frame::sync(),
    ];
    twins.ask(&skipped, "EZ").await;
    twins.ask(&run("s"), "2DCZ").await;
    twins.ask(&run("h"), "EZ").await;
    // Nor is its Close, which shows in the same write.
    let skipped = [
        frame::parse("d", "select $1::int"),
        frame::bind("", "d", &[Some("x")]),
        frame::close_statement("d"),
    ];
    twins.ask(&[skipped.concat(), frame::sync(), frame::query("deallocate d")], "1EZCZ").await;
    twins.ask(&run("d"), "EZ").await;
    // In a transaction that has failed nothing is prepared, whatever the server has from others.
    twins.ask(&[frame::query("begin; select 1/0")], "CEZ").await;
    twins.ask(&[frame::parse("i", "select 'works'"), frame::sync()], "EZ").await;
    twins.ask(&[frame::query("rollback")], "CZ").await;
    twins.ask(&run("i"), "EZ").await;
    twins.ask(&run("f"), "2DCZ").await;
}

/// A query with parameters inside a transaction hung for ten seconds.
/// pgdog #999
#[tokio::test(flavor = "multi_thread")]
async fn a_query_with_parameters_in_a_transaction_is_answered_at_once() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut twins = Twins::connect(&house).await;
    for name in ["", "s"] {
        twins.ask(&[frame::query("begin")], "CZ").await;
        let prepare = [frame::parse(name, "select $1::text"), frame::describe_statement(name), frame::sync()];
        twins.ask(&prepare, "1tTZ").await;
        let run = [frame::bind("", name, &[Some("x")]), frame::execute("", 0), frame::sync()];
        twins.ask(&run, "2DCZ").await;
        twins.ask(&[frame::query("rollback")], "CZ").await;
    }
}

/// The unnamed statement of one batch was gone in the next, since another client had the server in between.
/// pgbouncer #1288
#[tokio::test(flavor = "multi_thread")]
async fn the_unnamed_statement_outlives_its_sync() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut twins = Twins::connect(&house).await;
    let mut other = house.client().await;
    let prepare = [frame::parse("", "select $1::int * 2"), frame::describe_statement(""), frame::sync()];
    let run = [frame::bind("", "", &[Some("21")]), frame::execute("", 0), frame::sync()];
    for round in 0..4 {
        twins.ask(&prepare, "1tTZ").await;
        match round % 2 {
            0 => assert_eq!(value(&mut other, "select 'simple'").await, "simple"),
            _ => {
                let answer = other.extended_query("select $1::text", &[Some("other")]).await.unwrap();
                assert_eq!(answer.value(), Some("other"));
            }
        }
        let answer = twins.ask(&run, "2DCZ").await;
        assert!(answer[1].body.ends_with(b"42"), "{answer:?}");
        twins.ask(&run, "2DCZ").await;
    }
    // A simple query of its own drops it, and so does an unnamed Parse that fails.
    twins.ask(&[frame::query("select 1")], "TDCZ").await;
    twins.ask(&run, "EZ").await;
    twins.ask(&prepare, "1tTZ").await;
    twins.ask(&[frame::parse("", "selec"), frame::sync()], "EZ").await;
    twins.ask(&run, "EZ").await;
}

/// Drivers count their statements from one: names clashed between clients, or vanished.
/// pgbouncer #1118; prisma #21635; npgsql #1636, #2221; asyncpg #121; psycopg #589; porsager #172
#[tokio::test(flavor = "multi_thread")]
async fn names_are_each_clients_own() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 60;
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    let mut tasks = JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = house.client().await;
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let name = ["S_1", "__asyncpg_stmt_1__", "_pg3_0"][round % 3];
                let own = format!("{number}-{}", round / 3);
                let first = [
                    frame::parse(name, &format!("select '{own}', $1::int")),
                    frame::describe_statement(name),
                    frame::sync(),
                ];
                client.send(&first.concat()).await.unwrap();
                let prepared = reply(&mut client).await.unwrap();
                assert!(prepared.errors.is_empty(), "{prepared:?}");
                for turn in 0..3 {
                    let turn = turn.to_string();
                    let run = [frame::bind("", name, &[Some(&turn)]), frame::execute("", 0), frame::sync()];
                    client.send(&run.concat()).await.unwrap();
                    // The columns are those that Describe gave.
                    let answer = reply(&mut client).await.unwrap();
                    assert_eq!(answer.rows, [[Some(own.clone()), Some(turn)]], "{answer:?}");
                }
                forget(&mut client, name, number + round).await;
            }
        });
    }
    let all = async {
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    };
    within(3 * PATIENCE, "all rounds", all).await;
}

/// The ways in which drivers drop a statement.
async fn forget(client: &mut Connection, name: &str, way: usize) {
    let answer = match way % 4 {
        0 => client.query(&format!("DEALLOCATE \"{name}\"")).await.unwrap(),
        1 => client.query("DEALLOCATE ALL").await.unwrap(),
        2 => client.query("DISCARD ALL").await.unwrap(),
        _ => {
            client.send(&[frame::close_statement(name), frame::sync()].concat()).await.unwrap();
            reply(client).await.unwrap()
        }
    };
    assert!(answer.errors.is_empty(), "{answer:?}");
}

/// After a change of a table every client got "cached plan must not change result type", until the pool was emptied.
/// pgbouncer #1038; multigres PR #1219, #1431
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_table_costs_each_server_one_error_at_most() {
    const SERVERS: usize = 3;
    let house = House::start(|setup| setup.setting("default_pool_size", &SERVERS.to_string()));
    let mut owner = house.client().await;
    value(&mut owner, "create table t (a int)").await;
    value(&mut owner, "insert into t values (1)").await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = house.client().await;
        client.send(&[frame::parse("s", "select * from t"), frame::sync()].concat()).await.unwrap();
        assert!(reply(&mut client).await.unwrap().errors.is_empty());
        clients.push(client);
    }
    let run = [frame::bind("", "s", &[]), frame::describe_portal(""), frame::execute("", 0), frame::sync()]
        .concat();
    for columns in 1..4 {
        if columns > 1 {
            value(&mut owner, &format!("alter table t add column c{columns} int")).await;
        }
        let mut stale = 0;
        for round in 0..4 {
            // All at once, so that every server runs it.
            for client in &mut clients {
                client.send(&run).await.unwrap();
            }
            for client in &mut clients {
                let answer = reply(client).await.unwrap();
                if let Some(error) = answer.error() {
                    assert_eq!((&*error.code, round < 2), ("0A000", true), "{error} in round {round}");
                    stale += 1;
                } else {
                    assert_eq!((answer.columns.len(), answer.rows.len()), (columns, 1), "{answer:?}");
                }
            }
        }
        assert!(stale <= SERVERS, "{stale} errors after one change");
    }
}

/// The row limit of Execute was ignored, and nobody was told of a suspended portal.
/// proxysql #5900
#[tokio::test(flavor = "multi_thread")]
async fn a_row_limit_suspends_the_portal() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut twins = Twins::connect(&house).await;
    let sql = "select generate_series(1, 5)";
    twins.ask(&[frame::parse("s", sql), frame::sync()], "1Z").await;
    let begin = |portal: &str| [frame::bind(portal, "s", &[]), frame::execute(portal, 2)].concat();
    let next = |portal: &str, rows: u32| frame::execute(portal, rows);
    // In one batch.
    twins.ask(&[begin("p"), next("p", 2), next("p", 0), frame::sync()], "2DDsDDsDCZ").await;
    // Outside of a transaction the portal ends with its batch.
    twins.ask(&[begin(""), frame::sync()], "2DDsZ").await;
    twins.ask(&[next("", 0), frame::sync()], "EZ").await;
    // In a transaction it goes on, by Flush or by Sync, and nobody else gets its server.
    twins.ask(&[frame::query("begin")], "CZ").await;
    let mut other = house.client().await;
    other.send(&frame::query("select 'later'")).await.unwrap();
    house.wait_waiting(1).await;
    twins.ask(&[begin("p"), frame::flush()], "2DDs").await;
    twins.ask(&[next("p", 1), frame::sync()], "DsZ").await;
    twins.ask(&[next("p", 2), frame::flush()], "DDs").await;
    twins.ask(&[next("p", 2), frame::close_portal("p"), frame::sync()], "C3Z").await;
    twins.ask(&[next("p", 2), frame::sync()], "EZ").await;
    twins.ask(&[frame::query("rollback")], "CZ").await;
    assert_eq!(reply(&mut other).await.unwrap().value(), Some("later"));
}

/// Two clients with different parameters took a server from each other before either had prepared anything, for ever.
#[tokio::test(flavor = "multi_thread")]
async fn clients_with_different_parameters_that_prepare_do_not_keep_each_other_from_it() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let own = format!("client {number}");
        let mut client = connect(&house.options().parameter("application_name", &own)).await;
        tasks.spawn(async move {
            for round in 0..100 {
                let name = format!("s{round}");
                let sql = format!("select {round}, current_setting('application_name')");
                let request = [frame::parse(&name, &sql), frame::bind("", &name, &[]), frame::execute("", 0)];
                client.send(&[&request.concat()[..], &frame::sync()].concat()).await.unwrap();
                let answer = reply(&mut client).await.unwrap();
                assert_eq!(answer.rows, [[Some(round.to_string()), Some(own.clone())]], "{answer:?}");
            }
        });
    }
    let all = async {
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    };
    within(PATIENCE, "all rounds", all).await;
}
