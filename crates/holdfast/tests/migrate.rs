//! `holdfast db migrate` against a real PostgreSQL.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use drill::postgres::{DATABASE, PrivatePostgres, USER};
use drill::wire::{Address, ConnectOptions, Connection};
use serde_json::Value;
use tokio::time::Instant;

struct Database {
    postgres: PrivatePostgres,
    folder: tempfile::TempDir,
}

impl Database {
    fn start(sql: &str) -> Self {
        let postgres = PrivatePostgres::start_default().unwrap();
        let database = Self { postgres, folder: tempfile::tempdir().unwrap() };
        database.ask(sql);
        database
    }

    fn ask(&self, sql: &str) -> Option<String> {
        let options = ConnectOptions::new(Address::Tcp(self.postgres.tcp_address()), USER, DATABASE);
        drill::wire::block_on(async {
            let mut connection = Connection::connect(&options).await.unwrap();
            let reply = connection.query(sql).await.unwrap().into_result().unwrap();
            reply.value().map(str::to_owned)
        })
        .unwrap()
    }

    fn file(&self, sql: &str) -> PathBuf {
        let path = self.folder.path().join("file.sql");
        std::fs::write(&path, sql).unwrap();
        path
    }

    fn command(&self, sql: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        let url = format!("postgresql://{USER}@{}/{DATABASE}", self.postgres.tcp_address());
        command.args(["db", "migrate", "--json", "--database", &url, "--file"]).arg(self.file(sql));
        command.args(arguments).env_remove("DATABASE_URL").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn migrate(&self, sql: &str, arguments: &[&str]) -> (Output, Value) {
        let output = self.command(sql, arguments).output().unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output, report)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_migration_lets_everybody_pass_while_a_report_reads_and_ends_when_the_report_does() {
    let database = Database::start("create table t (a int); create table u (a int)");
    let options = ConnectOptions::new(Address::Tcp(database.postgres.tcp_address()), USER, DATABASE);
    drill::wire::block_on(async {
        let mut report = Connection::connect(&options).await.unwrap();
        let mut reader = Connection::connect(&options).await.unwrap();
        report.query("begin").await.unwrap();
        report.query("select count(*) from t").await.unwrap();
        // So that it tries, and does not only wait for the report.
        let sql = "alter table u add b int; alter table t add b text default 'x;y';";
        let child = database.command(sql, &["--oldest", "60000"]).spawn().unwrap();
        let began = Instant::now();
        let mut longest = Duration::ZERO;
        while began.elapsed() < Duration::from_millis(1_500) {
            let asked = Instant::now();
            reader.query("select count(*) from t").await.unwrap();
            longest = longest.max(asked.elapsed());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // 200 ms, and as much again for a busy machine.
        assert!(longest < Duration::from_millis(800), "a reader stood behind it for {longest:?}");
        report.query("commit").await.unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["tries"].as_u64().unwrap() >= 2 && report["blocked_ms"].as_u64().unwrap() >= 200);
        assert!(said(&output).contains("55P03"), "{}", said(&output));
    })
    .unwrap();
    assert_eq!(database.ask("select count(b) from u").as_deref(), Some("0"));
}

#[test]
fn it_gives_up_within_its_budget_and_what_it_began_is_rolled_back() {
    let database = Database::start("create table t (a int); create table u (a int)");
    let options = ConnectOptions::new(Address::Tcp(database.postgres.tcp_address()), USER, DATABASE);
    drill::wire::block_on(async {
        let mut report = Connection::connect(&options).await.unwrap();
        report.query("begin").await.unwrap();
        report.query("lock table t in access share mode").await.unwrap();
        let sql = "alter table u add b int; alter table t add b int";
        let (output, seen) = database.migrate(sql, &["--oldest", "60000", "--budget", "0"]);
        assert_eq!((output.status.code(), seen["done"].as_u64()), (Some(75), Some(0)), "{}", said(&output));
        // And names who is in the way without asking for any lock.
        let (output, seen) = database.migrate(sql, &["--oldest", "0", "--refuse-if-blocked"]);
        assert_eq!((output.status.code(), seen["tries"].as_u64()), (Some(75), Some(0)), "{}", said(&output));
        let pid = report.server_pid().await.unwrap();
        assert!(said(&output).contains(&format!("process {pid} (idle in transaction) has had t")));
        let (output, seen) = database.migrate(sql, &["--oldest", "0", "--dry-run"]);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(seen["blockers"][0]["pid"].as_u64(), Some(u64::from(pid)));
        assert_eq!(seen["done"].as_u64(), Some(0));
    })
    .unwrap();
    let columns = "select count(*) from information_schema.columns where column_name = 'b'";
    assert_eq!(database.ask(columns).as_deref(), Some("0"));
}

#[test]
fn an_invalid_index_of_a_failed_build_is_dropped_and_the_build_can_be_repeated() {
    let database = Database::start("create table t (a int); insert into t values (1), (1)");
    let sql = "create unique index concurrently i on t (a)";
    let (output, seen) = database.migrate(sql, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(seen["leftovers_dropped"][0], "i");
    assert_eq!(database.ask("select count(*) from pg_class where relname = 'i'").as_deref(), Some("0"));
    // One that somebody else has left behind is dropped before.
    let options = ConnectOptions::new(Address::Tcp(database.postgres.tcp_address()), USER, DATABASE);
    drill::wire::block_on(async {
        let mut connection = Connection::connect(&options).await.unwrap();
        assert!(!connection.query(sql).await.unwrap().errors.is_empty());
    })
    .unwrap();
    database.ask("truncate t");
    let (output, seen) = database.migrate("create unique index concurrently if not exists i on t (a)", &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(seen["leftovers_dropped"][0], "i");
    let valid = "select indisvalid from pg_index where indexrelid = 'i'::regclass";
    assert_eq!(database.ask(valid).as_deref(), Some("t"));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_done() {
    let database = Database::start("select 1");
    let (output, _) = database.migrate("select 1;\nset lock_timeout = 0", &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(said(&output).contains("line 2"), "{}", said(&output));
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.args(["db", "migrate", "--database", "postgresql://a:secret@127.0.0.1:1/x", "--file"]);
    let output = command.arg(database.file("select 1")).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(said(&output).contains("PGPASSWORD") && !said(&output).contains("secret"), "{}", said(&output));
    let (output, _) = database.migrate("select 1/0", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("22012"), "{}", said(&output));
}
