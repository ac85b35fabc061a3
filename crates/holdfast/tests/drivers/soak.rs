//! Sixteen clients of several drivers on two servers, all with named statements of their own, for as long as one likes:
//! `scripts/drivers --soak SECONDS`.

use std::process::Stdio;

use drill::postgres::{PrivatePostgres, USER};

use crate::matrix::{NOT_INSTALLED, drivers_folder, left_in_a_transaction};
use crate::support::not_run;
use crate::way::{Between, Database, Way, text};

/// Who takes part, with how many clients.
const CLIENTS: [(&str, u32); 5] =
    [("asyncpg", 4), ("node-postgres", 2), ("postgres.js", 2), ("psycopg", 4), ("sqlalchemy", 4)];
const SERVERS: usize = 2;
/// How long without another word.
const SHORT_S: u64 = 20;
/// For the work that is under way at the end.
const GRACE_S: u64 = 60;
/// What a statement that is not there, or there already, brings.
const LOST_STATEMENTS: [&str; 2] = ["26000", "42P05"];

#[test]
fn no_client_misses_its_prepared_statements_and_no_server_stays_in_a_transaction() {
    let seconds = match std::env::var("HOLDFAST_SOAK_S") {
        Ok(text) => text.parse().expect("HOLDFAST_SOAK_S is a number of seconds"),
        Err(_) => SHORT_S,
    };
    let database = Database::start();
    let postgres = &database.postgres;
    let table = "create table soak (id int primary key, word text, amount int default 0);
                 insert into soak select g, 'w' from generate_series(0, 19) g; grant all on soak to bench";
    postgres.admin(table).unwrap();
    let way = Way::open(&database, Between::Transaction, true, SERVERS);
    let start = |(driver, clients): (&'static str, u32)| {
        let mut command = way.command("timeout");
        command.args(["-k", "5", &(seconds + GRACE_S).to_string()]);
        command.arg(drivers_folder().join(driver).join("soak"));
        command.env("SOAK_S", seconds.to_string()).env("SOAK_CLIENTS", clients.to_string());
        (driver, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let children = CLIENTS.map(start);
    let mut problems = Vec::new();
    for (driver, child) in children {
        let output = child.wait_with_output().unwrap();
        let told = text(&output);
        if output.status.code() == Some(NOT_INSTALLED) {
            not_run(&format!("{driver}: {}", told.trim()));
        } else if !output.status.success() || !told.is_empty() {
            problems.push(format!("{driver}: {}: {told}", output.status));
        }
    }
    let log = postgres.log();
    let lost = |line: &&str| LOST_STATEMENTS.iter().any(|code| line.contains(&format!(" {code} ")));
    problems.extend(log.lines().filter(lost).take(5).map(str::to_owned));
    problems.extend(left_in_a_transaction(postgres));
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    let servers = postgres.backends().unwrap().iter().filter(|backend| backend.user == USER).count();
    assert!(servers <= SERVERS, "{servers} servers");
    let done = transactions(postgres);
    assert!(done > 50 * seconds, "only {done} transactions in {seconds} s");
}

fn transactions(postgres: &PrivatePostgres) -> u64 {
    let sql = "select xact_commit from pg_stat_database where datname = current_database()";
    postgres.admin(sql).unwrap()[0][0].as_deref().unwrap().parse().unwrap()
}
