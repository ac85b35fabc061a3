//! One waiting ALTER TABLE in front of a shared pool.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use super::{Plan, good_share};
use crate::clock;
use crate::guard::load::{Load, LoadOptions, Phase};
use crate::guard::{GuardStage, Outcome, PoolerKind, Side, SideOptions};
use crate::postgres::{DATABASE, USER};
use crate::scratch::Scratch;
use crate::stall::Bye;
use crate::wire::{self, Address, ConnectOptions, Connection};
use cluster::Account;

/// What the rest of the callers ask for, of the capacity; it touches no table.
const OTHERS: f64 = 0.5;
/// Readers of the table, of the capacity: without an answer they fill the pool within a second.
const READERS: f64 = 0.2;
const READ: &str = "select count(*) from busy";
const ALTER: &str = "alter table busy add column note text";
/// From the start of the ALTER TABLE to that of `holdfast db migrate`.
const SECOND_TRY: Duration = Duration::from_millis(1_500);
/// The migration is done so long after the report has ended.
const DONE_LIMIT: Duration = Duration::from_secs(15);
/// Readers of the table may miss the answers of so long.
const LOST_LIMIT_S: f64 = 1.0;

pub(in crate::scenario) fn size(options: &mut SideOptions) {
    options.own_settings = vec![("lock_pileup".to_owned(), "cancel-waiting-ddl".to_owned())];
}

pub(in crate::scenario) fn waiting(stage: &mut GuardStage<'_>) -> anyhow::Result<()> {
    let held = stage.of(Duration::from_secs(4), Duration::from_secs(30));
    stage.each(|side| {
        let sql = format!("create table busy (a int); alter table busy owner to {USER}");
        side.server.admin(&sql).map(drop)
    })?;
    let (rate, patience) = (READERS * stage.capacity_per_s(), stage.spans().patience);
    // They do not leave: who does makes room for others.
    let stays = held + DONE_LIMIT;
    stage.begin(&Plan::steady(OTHERS))?;
    let readers_from = stage.now();
    let readers = stage.each(|side| Load::start(readers(side, rate, stays)))?;
    stage.pass(stage.spans().warm_up);

    let from =
        stage.event("a report reads the table and stays in its transaction; an ALTER TABLE waits for it");
    let reports = stage.each(|side| wire::block_on(report(side))?)?;
    let alters = stage.each(|side| wire::block_on(alter(side))?)?;
    stage.pass(SECOND_TRY);
    stage.event("in front of holdfast, `holdfast db migrate` tries from now on");
    let program = stage.program().to_owned();
    let migrations = stage.each(|side| migrate(&program, side))?;
    let readiness = stage.each(|side| ready(side, held.saturating_sub(SECOND_TRY)))?;
    let ended = stage.event("the report ends");
    // The connections' ends are those of their sessions.
    drop(reports);
    let done = stage.each(|side| {
        let began = clock::now();
        Ok(clock::wait_for(DONE_LIMIT, || is_altered(side)).then(|| began.elapsed()))
    })?;
    stage.pass(Duration::from_secs(1));
    stage.end_load()?;
    drop(alters);
    for migration in migrations.into_iter().flatten() {
        let (mut child, _folder) = migration;
        child.wait().context("holdfast db migrate")?;
    }
    let seen = readers.into_iter().map(Load::finish).collect::<anyhow::Result<Vec<_>>>()?;

    let share = good_share(stage);
    stage.answered("all others answered in time before", &(Duration::ZERO..from), share);
    stage.answered("all others answered in time while the migration waits", &(from..ended), share);
    let offset = readers_from;
    let lost: Vec<f64> = seen
        .iter()
        .map(|seen| {
            let meant = seen.records.iter().filter(|record| (from..ended).contains(&(record.at + offset)));
            meant.filter(|record| record.outcome != Outcome::Good || record.took > patience).count() as f64
                / rate
        })
        .collect();
    let bar = format!("less than {LOST_LIMIT_S} s");
    stage.score_each("reads of the table that were not answered in time, as time", bar, &lost, |lost| {
        (format!("{lost:.2} s"), *lost < LOST_LIMIT_S)
    });
    stage.score_each("looks at readiness that were not green", 0, &readiness, |red| match red {
        Some(red) => (red.to_string(), *red == 0),
        None => ("it has none".to_owned(), false),
    });
    stage.score_each("the table is altered", "after the report has ended", &done, |done| {
        (super::seconds(*done), done.is_some())
    });
    Ok(())
}

fn readers(side: &Side, rate_per_s: f64, patience: Duration) -> LoadOptions {
    LoadOptions {
        pooler: Address::Tcp(side.pooler.address()),
        user: USER.to_owned(),
        databases: vec![DATABASE.to_owned()],
        parameters: vec![("application_name".to_owned(), "reader".to_owned())],
        query: READ.to_owned(),
        patience,
        phases: vec![Phase { from: Duration::ZERO, rate_per_s }],
        retries: 0,
        bye: Bye::Terminate,
        dying_share: 0.0,
        seed: 1,
    }
}

fn direct(side: &Side) -> ConnectOptions {
    ConnectOptions::new(Address::Tcp(side.server.tcp_address()), USER, DATABASE)
}

/// Reads the table, and stays in its transaction until the connection is dropped.
async fn report(side: &Side) -> anyhow::Result<Connection> {
    let mut connection = Connection::connect(&direct(side)).await?;
    for statement in ["begin", READ] {
        connection.query(statement).await?.into_result()?;
    }
    Ok(connection)
}

/// Asks for the lock as most people do, without a timeout; nobody reads the answer.
async fn alter(side: &Side) -> anyhow::Result<Connection> {
    let mut connection = Connection::connect(&direct(side)).await?;
    connection.send(&wire::frame::query(ALTER)).await?;
    Ok(connection)
}

/// For our own side; a peer's ALTER TABLE waits on.
fn migrate(program: &std::path::Path, side: &Side) -> anyhow::Result<Option<(std::process::Child, Scratch)>> {
    if side.kind != PoolerKind::Ours {
        return Ok(None);
    }
    let folder = Scratch::new("migration", &Account::Own)?;
    let file = folder.path().join("add-note.sql");
    std::fs::write(&file, ALTER)?;
    let url = format!("postgresql://{USER}@{}/{DATABASE}", side.server.tcp_address());
    let mut command = Command::new(program);
    command.args(["db", "migrate", "--oldest", "60000", "--database", &url, "--file"]).arg(&file);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Some((command.spawn().context("holdfast db migrate does not start")?, folder)))
}

/// Looks at readiness for a while, four times a second; how often it was not green. None for a peer, which has none.
fn ready(side: &Side, span: Duration) -> anyhow::Result<Option<u32>> {
    let began = clock::now();
    let mut red = 0;
    while began.elapsed() < span {
        if side.kind == PoolerKind::Ours {
            red += u32::from(!is_ready(side).unwrap_or(false));
        }
        clock::rest(Duration::from_millis(250));
    }
    Ok((side.kind == PoolerKind::Ours).then_some(red))
}

fn is_ready(side: &Side) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(side.metrics.address())?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"GET /healthz/ready HTTP/1.1\r\nhost: pooler\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}

fn is_altered(side: &Side) -> bool {
    let sql =
        "select count(*) from information_schema.columns where table_name = 'busy' and column_name = 'note'";
    let rows = side.server.admin(sql);
    rows.is_ok_and(|rows| {
        rows.first().and_then(|row| row.first()?.as_deref().map(|count| count == "1")) == Some(true)
    })
}
