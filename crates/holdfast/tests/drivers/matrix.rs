//! Each driver's script on each way.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drill::postgres::PrivatePostgres;

use crate::support::not_run;
use crate::way::{Between, Way, database, text};

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
    ($($test:ident: $folder:literal, $ways:expr;)*) => {
        const DRIVERS: &[&str] = &[$($folder),*];
        $(#[test] fn $test() { runs_on($folder, $ways) })*
    };
}

const ALL: &[Between] = &[Between::Direct, Between::Session, Between::Transaction];

drivers! {
    activerecord: "activerecord", ALL;
    asyncpg: "asyncpg", ALL;
    django: "django", ALL;
    go_pgx: "go-pgx", ALL;
    go_pq: "go-pq", ALL;
    jdbc: "jdbc", ALL;
    node_postgres: "node-postgres", ALL;
    perl_dbd_pg: "perl-dbd-pg", ALL;
    php: "php", ALL;
    postgres_js: "postgres.js", ALL;
    psql: "psql", ALL;
    psycopg: "psycopg", ALL;
    ruby_pg: "ruby-pg", ALL;
    sqlalchemy: "sqlalchemy", ALL;
    sqlx: "sqlx", ALL;
    tokio_postgres: "tokio-postgres", ALL;
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

fn runs_on(driver: &str, ways: &[Between]) {
    let postgres = database();
    let mut problems = Vec::new();
    for &between in ways {
        let servers =
            if between == Between::Transaction { SERVERS_OF_TRANSACTIONS } else { SERVERS_OF_SESSIONS };
        let way = Way::open(&postgres, between, servers);
        let output = way
            .command("timeout")
            .args(["-k", "5", LIMIT_S])
            .arg(drivers_folder().join(driver).join("run"))
            .output();
        let output = output.unwrap();
        let told = text(&output);
        if output.status.code() == Some(NOT_INSTALLED) {
            return not_run(told.trim().lines().last().unwrap_or_default());
        }
        if !output.status.success() || !told.is_empty() {
            problems.push(format!("{driver}, {way}: {}: {}", output.status, shortened(&told)));
        }
        problems.extend(
            left_in_a_transaction(&postgres).map(|left| format!("{driver}, {way}: left behind: {left}")),
        );
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
