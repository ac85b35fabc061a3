//! PostgreSQL's own programs: what they print through holdfast is what they print without it.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use drill::postgres::{DATABASE, USER};

use crate::matrix::left_in_a_transaction;
use crate::way::{Between, Database, Way, text};

/// Runs one of PostgreSQL's programs, which has to succeed; gives what it has printed on its standard output.
fn run(database: &Database, way: &Way, program: &str, arguments: &[&str], input: &str) -> String {
    let mut command = way.command(database.postgres.binaries().program(program));
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}, {way}: {}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pgbench(between: Between, tls: bool, servers: usize, runs: &[&[&str]]) {
    const CLIENTS: usize = 12;
    const TRANSACTIONS: usize = 40;
    let database = Database::start();
    let way = Way::open(&database, between, tls, servers);
    run(&database, &way, "pgbench", &["-i", "-s", "1", "-q"], "");
    for how in runs {
        let (clients, transactions) = (CLIENTS.to_string(), TRANSACTIONS.to_string());
        // A thread for each client: while pgbench prepares a client's statements, the others of the same thread, which may
        // hold all the servers there are, do not go on.
        let mut arguments = vec!["-n", "-c", &clients, "-j", &clients, "-t", &transactions];
        arguments.extend_from_slice(how);
        let told = run(&database, &way, "pgbench", &arguments, "");
        let all = CLIENTS * TRANSACTIONS;
        assert!(
            told.contains(&format!("actually processed: {all}/{all}"))
                && told.contains("number of failed transactions: 0"),
            "{how:?}, {way}: {told}"
        );
        assert_eq!(left_in_a_transaction(&database.postgres), None, "{how:?}, {way}");
    }
    let sums = "select sum(abalance) = (select sum(bbalance) from pgbench_branches) from pgbench_accounts";
    assert_eq!(database.postgres.admin(sums).unwrap(), [[Some("t".to_owned())]], "{way}");
}

/// Its three protocols, and a connection for each transaction.
const RUNS: &[&[&str]] =
    &[&["-M", "simple"], &["-M", "extended"], &["-M", "prepared"], &["-C", "-S"], &["-C", "-M", "extended"]];

#[test]
fn pgbench_runs_in_session_mode_in_each_protocol_and_with_a_connection_a_transaction() {
    pgbench(Between::Session, false, 12, RUNS);
}

#[test]
fn pgbench_runs_in_transaction_mode_with_more_clients_than_servers() {
    pgbench(Between::Transaction, false, 3, RUNS);
}

#[test]
fn pgbench_runs_with_tls() {
    pgbench(Between::Session, true, 12, RUNS);
    pgbench(Between::Transaction, true, 3, &[&["-M", "prepared"], &["-C", "-S"]]);
}

#[test]
fn a_dump_through_holdfast_is_the_dump_without_it() {
    let database = Database::start();
    let direct = Way::open(&database, Between::Direct, false, 0);
    run(&database, &direct, "psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1"], include_str!("things.sql"));
    let way = Way::open(&database, Between::Session, true, 10);
    let dump = |way: &Way, name: &str| {
        let told = run(&database, way, "pg_dump", &["--blobs", "-d", name], "");
        // A word of chance in newer versions.
        let lasting = |line: &&str| !line.starts_with("\\restrict ") && !line.starts_with("\\unrestrict ");
        told.lines().filter(lasting).collect::<Vec<_>>().join("\n")
    };
    let wanted = dump(&direct, DATABASE);
    assert!(wanted.contains("CREATE MATERIALIZED VIEW") && wanted.contains("lo_create"), "{wanted}");
    assert!(wanted == dump(&way, DATABASE), "the dump through holdfast is another");

    let folder = tempfile::tempdir().unwrap();
    for (format, jobs) in [("directory", "2"), ("custom", "1")] {
        let file = folder.path().join(format);
        let file = file.to_str().unwrap();
        run(&database, &way, "pg_dump", &["-F", format, "-j", jobs, "-f", file], "");
        let copy = format!("copy_{format}");
        database.postgres.admin(&format!("create database {copy} owner {USER}")).unwrap();
        run(&database, &way, "pg_restore", &["-j", "3", "--exit-on-error", "-d", &copy, file], "");
        assert!(
            wanted == dump(&direct, &copy),
            "what was restored from {format} through holdfast is another"
        );
    }
    assert_eq!(left_in_a_transaction(&database.postgres), None);
}

#[test]
fn psql_prints_through_holdfast_what_it_prints_without_it() {
    let database = Database::start();
    let folder = tempfile::tempdir().unwrap();
    let things = include_str!("things.sql");
    let prepare = Way::open(&database, Between::Direct, false, 0);
    run(&database, &prepare, "psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1"], things);
    for tls in [false, true] {
        let direct = Way::open(&database, Between::Direct, tls, 0);
        let wanted = meta_commands(&database, &direct, folder.path());
        for expected in ["shelf", "number of pages", "division by zero", "Köln", "42P01", "every one of 60"]
        {
            assert!(wanted.contains(expected), "{wanted}\n\n{expected} is missing");
        }
        for between in [Between::Session, Between::Transaction] {
            let way = Way::open(&database, between, tls, 2);
            let seen = meta_commands(&database, &way, folder.path());
            assert!(wanted == seen, "{way}:\n{seen}\n\nwithout holdfast:\n{wanted}");
        }
    }
    assert_eq!(left_in_a_transaction(&database.postgres), None);
}

/// What psql prints for a file full of its own commands, errors included.
fn meta_commands(database: &Database, way: &Way, folder: &Path) -> String {
    let file = folder.join("shelf.csv");
    let script = format!("\\set file {}\n{}", file.display(), include_str!("meta.sql"));
    std::fs::write(folder.join("script"), script).unwrap();
    // Both outputs in one, in their order.
    let both = "exec \"$0\" -X -e -f \"$1\" 2>&1";
    let psql = database.postgres.binaries().program("psql");
    let output =
        way.command("/bin/sh").args(["-c", both]).arg(psql).arg(folder.join("script")).output().unwrap();
    text(&output)
}
