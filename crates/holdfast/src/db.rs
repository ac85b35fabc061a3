//! `holdfast db`: what an operator does to a database behind poolers.

mod migrate;

use crate::bench::progress::Progress;
use crate::output;
use crate::process::small_runtime;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use restart::{Config, Done, Options, Outcome, Plan, Restart, Step};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The server runs with its former settings again.
const ROLLED_BACK: u8 = 2;
/// The server is not up.
const DOWN: u8 = 3;
/// Where a password may stand: everybody can read a command line.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

const RESTART_EXAMPLES: &str = "\
First the new settings are checked by the server's own program; if anything is wrong with them, nothing is touched. Then every
pooler is paused by its console (PAUSE), the server restarts, and the poolers go on, one after the other. A server that is not up
in time gets its former postgresql.conf back and is started with it. Runs where the server runs, as its account or as root.

The former settings are what --new replaces; else what --former says; else what the last restart by this command has kept
(postgresql.conf.before-restart). Passwords are taken from PGPASSWORD, never from the command line.

Exit codes: 0 restarted, 1 nothing was touched, 2 rolled back (the server is up, with its former settings), 3 the server is down,
64 the command line is wrong.

Examples:
  holdfast db restart --data /var/lib/postgresql/15/main --new new.conf --plan
  holdfast db restart --data /var/lib/postgresql/15/main --new new.conf \\
      --pooler postgresql://admin@127.0.0.1:6432/pgbouncer --command 'systemctl restart postgresql@15-main'";

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Run a file of DDL with a short lock timeout, again and again, within a budget of time for which others may be blocked.
    Migrate(migrate::MigrateArgs),
    /// Restart PostgreSQL behind its poolers: settings checked first, pools paused, rolled back if it is not up in time.
    #[command(after_help = RESTART_EXAMPLES)]
    Restart(Box<RestartArgs>),
}

#[derive(Args, Debug)]
pub(crate) struct RestartArgs {
    /// The server's data folder
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// The way to the server itself, as a superuser [default: its socket, as user postgres]
    #[arg(long, value_name = "URL")]
    server: Option<Config>,
    /// The console of a pooler, as a user that may PAUSE; several times for several
    #[arg(long = "pooler", value_name = "URL")]
    poolers: Vec<Config>,
    /// A file that takes the place of postgresql.conf
    #[arg(long, value_name = "FILE")]
    new: Option<PathBuf>,
    /// The postgresql.conf that was in force before, to go back to
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    former: Option<PathBuf>,
    /// How the server is restarted [default: pg_ctl restart]
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Seconds until the server has to be up
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    limit_s: u64,
    /// Seconds until every pool has to be at rest
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pause_limit_s: u64,
    /// Say what would be done, and do nothing
    #[arg(long)]
    plan: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: DbCommand) -> anyhow::Result<ExitCode> {
    match command {
        DbCommand::Migrate(args) => migrate::migrate(&args),
        DbCommand::Restart(args) => restart(*args),
    }
}

fn restart(args: RestartArgs) -> anyhow::Result<ExitCode> {
    let (plan_only, json) = (args.plan, args.json);
    let options = options(args)?;
    small_runtime()?.block_on(async {
        // Once somebody listens, Ctrl-C no longer ends the program: paused pools have to be told to go on.
        tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
        let restart = Restart::prepare(options).await?;
        if plan_only {
            let plan = restart.plan();
            output::result(&if json { serde_json::to_string_pretty(&plan)? } else { describe(&plan) });
            return Ok(ExitCode::SUCCESS);
        }
        let progress = Progress::new();
        let done = restart.run(|step| progress.show(&tell(&step), "")).await?;
        progress.end();
        output::result(&if json { serde_json::to_string_pretty(&done)? } else { page(&done) });
        Ok(match done.outcome {
            Outcome::Restarted => ExitCode::SUCCESS,
            Outcome::RolledBack => ExitCode::from(ROLLED_BACK),
            Outcome::Down => ExitCode::from(DOWN),
        })
    })
}

fn options(args: RestartArgs) -> anyhow::Result<Options> {
    let data = args.data.canonicalize().with_context(|| args.data.display().to_string())?;
    let mut options = Options::new(data);
    options.server = args.server.map(with_password).transpose()?;
    options.poolers = args.poolers.into_iter().map(with_password).collect::<anyhow::Result<_>>()?;
    options.new_settings = args.new;
    options.former_settings = args.former;
    options.command = args.command;
    options.up_limit = Duration::from_secs(args.limit_s);
    options.pause_limit = Duration::from_secs(args.pause_limit_s);
    Ok(options)
}

fn with_password(mut config: Config) -> anyhow::Result<Config> {
    if config.get_password().is_some() {
        bail!(
            "everybody on this machine can read a password on a command line: put it into {PASSWORD_VARIABLE}"
        );
    }
    if let Some(password) = std::env::var_os(PASSWORD_VARIABLE) {
        config.password(password.into_encoded_bytes());
    }
    Ok(config)
}

fn describe(plan: &Plan) -> String {
    let mut text = format!("{} is good; nothing was touched\n", plan.file);
    text += &changes("would change", &plan.changes);
    for pooler in &plan.poolers {
        text += &format!("  would be paused: the pools of {pooler}\n");
    }
    text + &format!("  would be run: {}\n", plan.command)
}

fn page(done: &Done) -> String {
    let seconds = |ms: u64| format!("{:.1} s", ms as f64 / 1e3);
    let mut text = match done.outcome {
        Outcome::Restarted => "the server has restarted\n".to_owned(),
        Outcome::RolledBack => {
            "the server was not up in time: it runs with its former settings again\n".to_owned()
        }
        Outcome::Down => {
            "the server is DOWN; its former settings are in place: see its log, and start it\n".to_owned()
        }
    };
    if done.outcome == Outcome::Restarted {
        text += &changes("changed", &done.changes);
        text += &changes("NOT in force, something overrides it", &done.not_in_force);
    }
    text += &format!("  pools were held for {}\n", seconds(done.paused_ms));
    if let Some(ms) = done.down_ms {
        text += &format!("  it answered after {}\n", seconds(ms));
    }
    if let Some(ms) = done.slowest_login_ms {
        text += &format!("  the slowest of five new connections took {ms} ms\n");
    }
    for pooler in &done.not_resumed {
        text += &format!("  STILL PAUSED: {pooler}: say RESUME there\n");
    }
    text
}

fn changes(word: &str, changes: &[restart::Change]) -> String {
    changes.iter().fold(String::new(), |text, change| {
        text + &format!("  {word}: {} from {:?} to {:?}\n", change.name, change.now, change.then)
    })
}

fn tell(step: &Step) -> String {
    match step {
        Step::Checked => "the settings are good".to_owned(),
        Step::Paused { pooler } => format!("{pooler} is paused"),
        Step::NotPaused { pooler } => format!("{pooler} has no PAUSE: its callers will wait in line"),
        Step::Restarting => "the server restarts".to_owned(),
        Step::Up { after_ms } => format!("it answers after {after_ms} ms"),
        Step::RollingBack { why } => format!("back to the former settings: {why}"),
        Step::Resumed { pooler } => format!("{pooler} goes on"),
        Step::NotResumed { pooler, why } => format!("{pooler} could not be told to go on: {why}"),
    }
}
