//! `holdfast db migrate`.

use crate::output;
use crate::process::small_runtime;
use anyhow::Context as _;
use clap::Args;
use migrate::{MigrateError, Options, Plan, Progress, Report, connect_config, run};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Somebody was in the way; later it may work (`EX_TEMPFAIL` of sysexits.h).
const GIVEN_UP: u8 = 75;
/// The file or the command line is wrong (`EX_USAGE`).
const USAGE: u8 = 64;
/// Longest file that is read.
const MAX_FILE_BYTES: u64 = 16 << 20;

const MIGRATE_EXAMPLES: &str = "\
The file is one transaction. What PostgreSQL runs in none (CREATE INDEX CONCURRENTLY, VACUUM, …) stands alone between them, and
BEGIN … COMMIT in the file makes transactions of its own. Each is done whole or not at all.

Before each try it waits, without asking for any lock, until no transaction older than --oldest has a lock on the tables that are
named, and says who it waits for. A try waits for a lock for --lock-timeout at most, then lets everybody pass, rests (0.5 s, doubled up to
10 s, by chance up to half less), and tries again, until others have been blocked for --budget in all.

The password comes from PGPASSWORD, PGPASSFILE or ~/.pgpass; or the whole URL from DATABASE_URL. Connect past the pooler.

Exit codes: 0 done, 1 the database said no (rolled back), 64 the file or the command line is wrong, 75 given up since somebody
was in the way: the same command may work later; units that are done are told, and are not undone.

Examples:
  holdfast db migrate --file add-note.sql --database postgresql://owner@db/app --dry-run
  holdfast db migrate --file add-note.sql --database postgresql://owner@db/app --pooler 127.0.0.1:9127
  DATABASE_URL=postgresql://owner:…@db/app holdfast db migrate --file add-note.sql --json";

#[derive(Args, Debug)]
#[command(after_help = MIGRATE_EXAMPLES)]
pub(crate) struct MigrateArgs {
    /// The statements, as SQL
    #[arg(long)]
    file: PathBuf,
    /// The database, as a URL without a password; else DATABASE_URL
    #[arg(long)]
    database: Option<String>,
    /// Longest wait for one lock, milliseconds
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    lock_timeout: u64,
    /// How long others may be blocked in all, seconds
    #[arg(long, default_value_t = 20)]
    budget: u64,
    /// Longest time for everything, seconds
    #[arg(long, default_value_t = 600)]
    time_limit: u64,
    /// Wait for transactions on the tables concerned that are older than this, milliseconds
    #[arg(long, default_value_t = 2_000)]
    oldest: u64,
    /// Give up at once if such a transaction is in the way
    #[arg(long)]
    refuse_if_blocked: bool,
    /// A pooler's metrics_listen: while its clients queue nothing is tried, and what runs is cancelled
    #[arg(long)]
    pooler: Option<SocketAddr>,
    /// So many of its clients may wait
    #[arg(long, default_value_t = 10)]
    most_waiters: u32,
    /// Each statement is a transaction of its own
    #[arg(long)]
    one_by_one: bool,
    /// Only say what would be done, and who is in the way now
    #[arg(long)]
    dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Runs a file of DDL.
pub(crate) fn migrate(args: &MigrateArgs) -> anyhow::Result<ExitCode> {
    let wrong = |error: &dyn std::fmt::Display| {
        output::error(&format!("holdfast: {error}"));
        Ok(ExitCode::from(USAGE))
    };
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let about = std::fs::metadata(&args.file).with_context(|| args.file.display().to_string())?;
    if about.len() > MAX_FILE_BYTES {
        return wrong(&format!("{} is longer than {MAX_FILE_BYTES} bytes", args.file.display()));
    }
    let sql = std::fs::read_to_string(&args.file).with_context(|| args.file.display().to_string())?;
    let plan = match Plan::read(&sql, args.one_by_one) {
        Ok(plan) => plan,
        Err(error) => return wrong(&format!("{}: {error}", args.file.display())),
    };
    let Some(url) = args.database.clone().or_else(|| environment("DATABASE_URL")) else {
        return wrong(&"no database: give --database or DATABASE_URL");
    };
    let config = match connect_config(&url, args.database.is_some(), environment) {
        Ok(config) => config,
        Err(error) => return wrong(&error),
    };
    let options = Options {
        lock_timeout: Duration::from_millis(args.lock_timeout),
        blocked_budget: Duration::from_secs(args.budget),
        time_limit: Duration::from_secs(args.time_limit),
        oldest: Duration::from_millis(args.oldest),
        refuse_if_blocked: args.refuse_if_blocked,
        pooler: args.pooler,
        most_waiters: args.most_waiters,
        dry_run: args.dry_run,
    };
    let mut report = Report::default();
    let ended = small_runtime()?.block_on(run(&config, &plan, &options, &mut report, &mut |now| say(&now)));
    print(args, &plan, &report, &ended)?;
    Ok(match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&format!("holdfast: {error}"));
            if error.is_passing() { ExitCode::from(GIVEN_UP) } else { ExitCode::FAILURE }
        }
    })
}

fn say(now: &Progress) {
    output::error(&match now {
        Progress::Unit(number, of, line) => format!("unit {number} of {of}, line {line}"),
        Progress::Blocked(blocker) => format!("waiting, without a lock: {blocker}"),
        Progress::PoolerBusy(waiters) => format!("waiting: {waiters} clients queue at the pooler"),
        Progress::Resting(why, rest) => format!("{why}; tried again in {} ms", rest.as_millis()),
        Progress::DroppingLeftover(index) => format!("dropping the invalid index {index} of an earlier try"),
        Progress::Done(number) => format!("unit {number} is done"),
    });
}

fn print(
    args: &MigrateArgs,
    plan: &Plan,
    report: &Report,
    ended: &Result<(), MigrateError>,
) -> anyhow::Result<()> {
    if args.json {
        let mut value = serde_json::to_value(report)?;
        value["error"] = serde_json::to_value(ended.as_ref().err().map(ToString::to_string))?;
        output::result(&serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    if report.dry_run {
        for unit in &plan.units {
            let kind = if unit.in_transaction { "one transaction" } else { "in no transaction" };
            output::result(&format!("line {}: {kind}, {} statement(s)", unit.line, unit.statements.len()));
        }
        for blocker in &report.blockers {
            output::result(&format!("in the way: {blocker}"));
        }
        return Ok(());
    }
    output::result(&format!(
        "{} of {} units done in {} tries; others were blocked for at most {} ms",
        report.done, report.units, report.tries, report.blocked_ms
    ));
    Ok(())
}
