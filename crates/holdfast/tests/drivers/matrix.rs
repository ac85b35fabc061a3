//! Each driver's script on each way.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drill::postgres::PrivatePostgres;

use crate::support::not_run;
use crate::way::{Between, Database, Way, text};

/// What a script says with when its driver is not installed: the last line tells the reason.
pub(crate) const NOT_INSTALLED: i32 = 77;
/// A script takes a few seconds. One that hangs is ended, and has failed.
const LIMIT_S: &str = "100";
/// Servers for a script that has up to 15 connections at once, each of which keeps its server.
const SERVERS_OF_SESSIONS: usize = 20;
/// Fewer than the connections of a script that work at once.
const SERVERS_OF_TRANSACTIONS: usize = 3;

/// A test for each driver, named after it, and the list of them all.
macro_rules! drivers {
    ($($test:ident: $folder:literal;)*) => {
        const DRIVERS: &[&str] = &[$($folder),*];
        $(#[test] fn $test() { runs_on_all_ways($folder) })*
    };
}

drivers! {
    activerecord: "activerecord";
    asyncpg: "asyncpg";
    django: "django";
    go_pgx: "go-pgx";
    go_pq: "go-pq";
    jdbc: "jdbc";
    node_postgres: "node-postgres";
    perl_dbd_pg: "perl-dbd-pg";
    php: "php";
    postgres_js: "postgres.js";
    prisma: "prisma";
    psql: "psql";
    psycopg: "psycopg";
    ruby_pg: "ruby-pg";
    sqlalchemy: "sqlalchemy";
    sqlx: "sqlx";
    tokio_postgres: "tokio-postgres";
}

#[test]
fn every_folder_of_a_driver_is_in_the_matrix() {
    let folders = std::fs::read_dir(drivers_folder()).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: PathBuf| {
        path.join("run").exists().then(|| path.file_name().unwrap().to_str().unwrap().to_owned())
    };
    let found: BTreeSet<String> = folders.filter_map(named).collect();
    assert_eq!(found, DRIVERS.iter().map(|&name| name.to_owned()).collect());
}

pub(crate) fn drivers_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drivers")
}

fn runs_on_all_ways(driver: &str) {
    let database = Database::start();
    let mut problems = Vec::new();
    let pools = [
        (Between::Direct, 0),
        (Between::Session, SERVERS_OF_SESSIONS),
        (Between::Transaction, SERVERS_OF_TRANSACTIONS),
    ];
    for ((between, servers), tls) in pools.into_iter().flat_map(|pool| [(pool, false), (pool, true)]) {
        let way = Way::open(&database, between, tls, servers);
        let mut command = way.command("timeout");
        command.args(["-k", "5", LIMIT_S]).arg(drivers_folder().join(driver).join("run"));
        let output = command.output().unwrap();
        let told = text(&output);
        if output.status.code() == Some(NOT_INSTALLED) {
            return not_run(told.trim().lines().last().unwrap_or_default());
        }
        if !output.status.success() || !told.is_empty() {
            problems.push(format!("{driver}, {way}: {}: {}", output.status, shortened(&told)));
        }
        let left = left_in_a_transaction(&database.postgres);
        problems.extend(left.map(|left| format!("{driver}, {way}: left behind: {left}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// Sessions that stand in a transaction once the script has ended.
#[expect(clippy::disallowed_methods, reason = "a test that looks again a little later")]
pub(crate) fn left_in_a_transaction(postgres: &PrivatePostgres) -> Option<String> {
    let sql =
        "select state || ' after ' || query from pg_stat_activity where state like 'idle in transaction%'";
    let look = || postgres.admin(sql).unwrap().into_iter().flatten().flatten().collect::<Vec<_>>();
    // The farewell of the script's last connection may still be on its way.
    let mut left = look();
    for _ in 0..100 {
        if left.is_empty() {
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        left = look();
    }
    Some(left.join("; "))
}

/// The end of a long text, which tells most.
fn shortened(text: &str) -> String {
    const KEPT: usize = 3000;
    let from = text.len().saturating_sub(KEPT);
    let from = (from..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or_default();
    text[from..].to_owned()
}
