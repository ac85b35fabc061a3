//! `holdfast provider …`: the egress node and what its owner says to it.

mod arguments;

pub(crate) use arguments::ProviderCommand;
pub(crate) use provider::join::{CODE_VARIABLE, CodeSource, read_code};

use crate::process::{carrying_runtime, raise_descriptors, refuse_root, small_runtime, stopped};
use crate::{log, output};
use anyhow::{Context as _, bail};
use arguments::{JoinArgs, StateArgs, UpArgs};
use provider::control::{Command, ControlError, ask};
use provider::doctor::{self, Health};
use provider::join::{JoinOptions, join};
use provider::limits::ByteCount;
use provider::logfile::{LogFile, last_lines};
use provider::state::{MonthCap, Wishes};
use provider::{StateError, StateFolder, Status};
use rustix::process::geteuid;
use std::process::ExitCode;

pub(crate) fn run(command: ProviderCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProviderCommand::Join(arguments) => join_network(arguments),
        ProviderCommand::Up(arguments) => up(&arguments),
        ProviderCommand::Status { state, json } => show(&state, json, Command::Status, |_| {}),
        ProviderCommand::Pause { state, json } => {
            show(&state, json, Command::Pause, |wishes| wishes.paused = true)
        }
        ProviderCommand::Resume { state, json } => {
            show(&state, json, Command::Resume, |wishes| wishes.paused = false)
        }
        ProviderCommand::Cap { state, json, amount } => {
            let (command, wish) = cap(&amount)?;
            show(&state, json, command, |wishes| wishes.month = wish)
        }
        ProviderCommand::Retry { state, json } => show(&state, json, Command::Retry, |_| {}),
        ProviderCommand::Reload { state, json } => show(&state, json, Command::Reload, |_| {}),
        ProviderCommand::Logs { state, lines } => {
            output::result(&last_lines(&folder(&state)?.log_path(), lines)?);
            Ok(ExitCode::SUCCESS)
        }
        ProviderCommand::Doctor { state, json } => examine(&state, json),
    }
}

fn join_network(arguments: JoinArgs) -> anyhow::Result<ExitCode> {
    refuse_root("a provider")?;
    let source = match (arguments.code_file, std::env::var(CODE_VARIABLE)) {
        (Some(path), _) => CodeSource::File(path),
        (None, Ok(code)) => CodeSource::Environment(code),
        (None, Err(_)) => CodeSource::Input,
    };
    let options = JoinOptions {
        link: arguments.link,
        code: read_code(source)?,
        label: arguments.label,
        country: arguments.country,
    };
    let path = arguments.state.path()?;
    let joined = small_runtime()?.block_on(join(&path, options))?;
    output::result(&format!(
        "joined network {} as provider {}\nnext: holdfast provider up{}",
        joined.network,
        joined.provider,
        arguments.state.as_typed()
    ));
    Ok(ExitCode::SUCCESS)
}

fn up(arguments: &UpArgs) -> anyhow::Result<ExitCode> {
    refuse_root("a provider")?;
    let state = folder(&arguments.state)?;
    let file = LogFile::open(&state.log_path()).context("cannot open the log file in the state folder")?;
    log::start(arguments.json_log, Some(file))?;
    raise_descriptors();
    let ended = carrying_runtime()?.block_on(async {
        let stop = stopped()?;
        provider::run(state, None, stop).await.map_err(anyhow::Error::from)
    });
    if let Err(error) = &ended {
        tracing::error!("{error}");
    }
    Ok(if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says it to the provider that runs, or keeps it for the next start, and shows how things stand.
fn show(
    state: &StateArgs,
    json: bool,
    command: Command,
    wish: impl FnOnce(&mut Wishes),
) -> anyhow::Result<ExitCode> {
    let path = state.path()?;
    let (folder, ours) = match StateFolder::open(&path) {
        Err(StateError::Foreign { .. }) if geteuid().is_root() => (StateFolder::visit(&path)?, false),
        folder => (folder?, true),
    };
    let status = match small_runtime()?.block_on(ask(&folder, command)) {
        Ok(status) => status,
        Err(ControlError::NotRunning(_)) if ours => at_rest(&folder, command, wish)?,
        Err(error) => return Err(error.into()),
    };
    output::result(&if json { serde_json::to_string_pretty(&status)? } else { status.to_string() });
    let works = status.running && status.held.is_none();
    Ok(if works || command != Command::Status { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn at_rest(folder: &StateFolder, command: Command, wish: impl FnOnce(&mut Wishes)) -> anyhow::Result<Status> {
    match command {
        Command::Status => {}
        Command::Retry => folder.release()?,
        Command::Reload => bail!("no provider runs with {}", folder.path().display()),
        Command::Pause | Command::Resume | Command::Cap { .. } | Command::CapAsConfigured => {
            let mut wishes = folder.wishes()?;
            wish(&mut wishes);
            folder.keep_wishes(&wishes)?;
        }
    }
    Ok(provider::status_at_rest(folder)?)
}

fn cap(amount: &str) -> anyhow::Result<(Command, Option<MonthCap>)> {
    Ok(match amount {
        "none" => (Command::Cap { bytes: None }, Some(MonthCap::Unlimited)),
        "default" => (Command::CapAsConfigured, None),
        amount => {
            let ByteCount(bytes) = amount.parse().with_context(|| format!("`{amount}`"))?;
            (Command::Cap { bytes: Some(bytes) }, Some(MonthCap::Bytes(bytes)))
        }
    })
}

fn examine(state: &StateArgs, json: bool) -> anyhow::Result<ExitCode> {
    let findings = small_runtime()?.block_on(doctor::examine(&folder(state)?));
    if json {
        output::result(&serde_json::to_string_pretty(&findings)?);
    } else {
        for finding in &findings {
            let health = match finding.health {
                Health::Fine => "fine   ",
                Health::Warning => "WARNING",
                Health::Broken => "BROKEN ",
            };
            output::result(&format!("{health} {:14} {}", finding.about, finding.found));
            if !finding.help.is_empty() {
                output::result(&format!("{:22} → {}", "", finding.help));
            }
        }
    }
    let broken = findings.iter().any(|finding| finding.health == Health::Broken);
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn folder(state: &StateArgs) -> anyhow::Result<StateFolder> {
    Ok(StateFolder::open(&state.path()?)?)
}
