//! PostgreSQL's own programs: what they print through holdfast is what they print without it.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use drill::postgres::{DATABASE, PrivatePostgres, USER};

use crate::matrix::left_in_a_transaction;
use crate::way::{Between, Way, database, text};

/// Runs one of PostgreSQL's programs, which has to succeed; gives what it has printed on its standard output.
fn run(postgres: &PrivatePostgres, way: &Way, program: &str, arguments: &[&str], input: &str) -> String {
    let mut command = way.command(postgres.binaries().program(program));
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}, {way}: {}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pgbench(postgres: &PrivatePostgres, between: Between, servers: usize, runs: &[&[&str]]) {
    const CLIENTS: usize = 12;
    const TRANSACTIONS: usize = 40;
    let way = Way::open(postgres, between, servers);
    run(postgres, &way, "pgbench", &["-i", "-s", "1", "-q"], "");
    for how in runs {
        let (clients, transactions) = (CLIENTS.to_string(), TRANSACTIONS.to_string());
        // A thread for each client: while pgbench prepares a client's statements, the others of the same thread, which may
        // hold all the servers there are, do not go on.
        let mut arguments = vec!["-n", "-c", &clients, "-j", &clients, "-t", &transactions];
        arguments.extend_from_slice(how);
        let told = run(postgres, &way, "pgbench", &arguments, "");
        let all = CLIENTS * TRANSACTIONS;
        assert!(
            told.contains(&format!("actually processed: {all}/{all}"))
                && told.contains("number of failed transactions: 0"),
            "{how:?}, {way}: {told}"
        );
        assert_eq!(left_in_a_transaction(postgres), None, "{how:?}, {way}");
    }
    let sums = "select sum(abalance) = (select sum(bbalance) from pgbench_branches) from pgbench_accounts";
    assert_eq!(postgres.admin(sums).unwrap(), [[Some("t".to_owned())]], "{way}");
}

const SIMPLE: &[&str] = &["-M", "simple"];
const EXTENDED: &[&str] = &["-M", "extended"];
const PREPARED: &[&str] = &["-M", "prepared"];
const RECONNECTS: &[&str] = &["-C", "-S"];
const RECONNECTS_AND_WRITES: &[&str] = &["-C", "-M", "extended"];

#[test]
fn pgbench_runs_in_session_mode_in_each_protocol_and_with_a_connection_a_transaction() {
    pgbench(
        &database(),
        Between::Session,
        12,
        &[SIMPLE, EXTENDED, PREPARED, RECONNECTS, RECONNECTS_AND_WRITES],
    );
}

#[test]
fn pgbench_runs_in_transaction_mode_with_more_clients_than_servers() {
    pgbench(
        &database(),
        Between::Transaction,
        3,
        &[SIMPLE, EXTENDED, PREPARED, RECONNECTS, RECONNECTS_AND_WRITES],
    );
}

#[test]
fn a_dump_through_holdfast_is_the_dump_without_it() {
    let postgres = database();
    let direct = Way::open(&postgres, Between::Direct, 0);
    run(&postgres, &direct, "psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1"], include_str!("things.sql"));
    let way = Way::open(&postgres, Between::Session, 10);
    let dump = |way: &Way, database: &str| {
        let told = run(&postgres, way, "pg_dump", &["--blobs", "-d", database], "");
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
        run(&postgres, &way, "pg_dump", &["-F", format, "-j", jobs, "-f", file], "");
        let copy = format!("copy_{format}");
        postgres.admin(&format!("create database {copy} owner {USER}")).unwrap();
        run(&postgres, &way, "pg_restore", &["-j", "3", "--exit-on-error", "-d", &copy, file], "");
        assert!(
            wanted == dump(&direct, &copy),
            "what was restored from {format} through holdfast is another"
        );
    }
    assert_eq!(left_in_a_transaction(&postgres), None);
}

#[test]
fn psql_prints_through_holdfast_what_it_prints_without_it() {
    let postgres = database();
    let folder = tempfile::tempdir().unwrap();
    let direct = Way::open(&postgres, Between::Direct, 0);
    run(&postgres, &direct, "psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1"], include_str!("things.sql"));
    let wanted = meta_commands(&postgres, &direct, folder.path());
    for expected in
        ["shelf", "number of pages", "(200 rows)", "division by zero", "Köln", "42P01", "every one of 60"]
    {
        assert!(wanted.contains(expected), "{wanted}\n\n{expected} is missing");
    }
    for between in [Between::Session, Between::Transaction] {
        let way = Way::open(&postgres, between, 2);
        let seen = meta_commands(&postgres, &way, folder.path());
        assert!(wanted == seen, "{way}:\n{seen}\n\nwithout holdfast:\n{wanted}");
    }
    assert_eq!(left_in_a_transaction(&postgres), None);
}

/// What psql prints for a file full of its own commands, errors included.
fn meta_commands(postgres: &PrivatePostgres, way: &Way, folder: &Path) -> String {
    let file = folder.join("shelf.csv");
    let script = format!("\\set file {}\n{}", file.display(), include_str!("meta.sql"));
    std::fs::write(folder.join("script"), script).unwrap();
    // Both outputs in one, in their order.
    let both = "exec \"$0\" -X -e -f \"$1\" 2>&1";
    let psql = postgres.binaries().program("psql");
    let output =
        way.command("/bin/sh").args(["-c", both]).arg(psql).arg(folder.join("script")).output().unwrap();
    text(&output)
}
