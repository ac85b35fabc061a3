//! `holdfast up`, `holdfast init`, and what `up` starts.

use crate::cli::{InitArgs, Made, Up, UpArgs, UpChildArgs};
use crate::{output, roles, serve};
use anyhow::{Context as _, bail};
use rustix::process::Signal;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use supervisor::{
    DataFolder, InitOptions, Lines, Owner, Phase, Programs, State, Status, UpOptions, become_child,
    drop_root, exec_postgres, reset, status, stop,
};
use trust::api::ProviderFigures;

/// Starts a network and stays, or looks at one that runs.
pub(crate) fn up(options: UpArgs) -> anyhow::Result<ExitCode> {
    let path = options.data.unwrap_or_else(DataFolder::default_path);
    match options.command {
        None => start(path, options.made),
        Some(Up::Status { json }) => tell(&DataFolder::open(&path)?, json),
        Some(Up::Code { role }) => {
            let owner = Owner::open(&DataFolder::open(&path)?)?;
            output::result(&runtime()?.block_on(owner.join_code(role))?);
            Ok(ExitCode::SUCCESS)
        }
        Some(Up::Stop) => {
            runtime()?.block_on(stop(&DataFolder::open(&path)?))?;
            output::result("stopped");
            Ok(ExitCode::SUCCESS)
        }
        Some(Up::Reset { yes }) => remove(&DataFolder::open(&path)?, yes),
    }
}

/// Makes a network without starting it.
pub(crate) fn init(options: InitArgs) -> anyhow::Result<ExitCode> {
    let path = std::path::absolute(options.data.unwrap_or_else(DataFolder::default_path))?;
    become_plain(&path)?;
    let data = DataFolder::create(&path)?;
    let made = supervisor::init(&data, &made_as(options.made))?;
    output::result(&format!(
        "network   {}\nfolder    {}\njoin link {}\n\nKeep a copy of {}: the network's name hangs on it.",
        made.network,
        path.display(),
        made.link,
        data.file("root.key").display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// What `up` runs; ends with it.
pub(crate) fn child(options: &UpChildArgs) -> anyhow::Result<ExitCode> {
    let data = DataFolder::open(&options.data)?;
    match options.name.as_str() {
        "postgres" => {
            become_child(options.parent, Signal::INT)?;
            match exec_postgres(&data)? {}
        }
        "pooler" => {
            become_child(options.parent, Signal::TERM)?;
            serve::serve(data.file("pooler.toml"), false)
        }
        "roles" => {
            become_child(options.parent, Signal::TERM)?;
            roles::run(&data)?;
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("no child is called {other}"),
    }
}

fn start(path: PathBuf, made: Made) -> anyhow::Result<ExitCode> {
    let path = std::path::absolute(path)?;
    let account = become_plain(&path)?;
    let options = UpOptions { data: path, init: made_as(made), programs: Programs::default(), account };
    let say = |text: &str| output::error(&format!("up: {text}"));
    let ready = |lines: &Lines| output::result(&describe(lines));
    runtime()?.block_on(supervisor::up(&options, &say, ready))?;
    Ok(ExitCode::SUCCESS)
}

fn made_as(made: Made) -> InitOptions {
    InitOptions { address: made.expose, first_port: made.first_port }
}

fn become_plain(path: &std::path::Path) -> anyhow::Result<Option<String>> {
    let account = drop_root(path)?;
    if let Some(account) = &account {
        output::error(&format!("up: running as user {account}, not as root"));
    }
    Ok(account)
}

/// One thread: a child ends with the thread that started it.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("no event loop")
}

fn describe(lines: &Lines) -> String {
    format!(
        "up. Try it in another terminal (Ctrl-C here stops all):\n\n  {}\n\n  {}\n\nA second provider joins with\n\n  {}\n",
        lines.curl, lines.psql, lines.join
    )
}

fn tell(data: &DataFolder, json: bool) -> anyhow::Result<ExitCode> {
    let status = status(data)?;
    let state = match &status {
        Status::Down => None,
        Status::Running(state) => Some(&**state),
    };
    let providers = match state {
        Some(_) => runtime()?.block_on(async { Owner::open(data).ok()?.providers().await }),
        None => None,
    };
    if json {
        let mut told = serde_json::to_value(state)?;
        if let Some(told) = told.as_object_mut() {
            told.insert("providers".to_owned(), serde_json::to_value(&providers)?);
        }
        output::result(&serde_json::to_string_pretty(&told)?);
    } else {
        let page = |state| page(state, providers.as_ref());
        output::result(&state.map_or_else(|| format!("nothing is up in {}", data.path().display()), page));
    }
    let is_up = state.is_some_and(|state| {
        state.phase == Phase::Up && state.children.iter().all(|child| child.pid.is_some())
    });
    Ok(if is_up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn page(state: &State, providers: Option<&ProviderFigures>) -> String {
    let phase = match state.phase {
        Phase::Starting => "starting",
        Phase::Up => "up",
        Phase::Stopping => "stopping",
    };
    let network = state.network.map_or_else(|| "not yet made".to_owned(), |network| network.to_string());
    let mut page = format!("{phase}, process {}, network {network}\n", state.pid);
    for child in &state.children {
        let doing =
            child.pid.map_or_else(|| "waits to be started".to_owned(), |pid| format!("process {pid}"));
        let past = match (&child.last_end, child.restarts) {
            (Some(end), restarts) => format!(", started again {restarts} times, last because of {end}"),
            _ => String::new(),
        };
        page.push_str(&format!("  {:<10} {doing}{past}\n", child.name));
    }
    if let Some(providers) = providers {
        let ProviderFigures { listed, verified, registered, .. } = providers;
        page.push_str(&format!(
            "  {:<10} {listed} listed, {verified} of them verified within the hour, {registered} registered\n",
            "providers"
        ));
        if providers.stale {
            let cause = providers.cause.as_deref().unwrap_or("cause not known");
            page.push_str(&format!("  {:<10} these figures are stale: {cause}\n", ""));
        }
    }
    if let Some(lines) = &state.lines {
        page.push_str(&format!("\n  {}\n  {}\n  {}\n", lines.curl, lines.psql, lines.join));
    }
    page
}

fn remove(data: &DataFolder, yes: bool) -> anyhow::Result<ExitCode> {
    if !yes {
        let input = io::stdin();
        if !input.is_terminal() {
            bail!("this removes the network in {} for good: say --yes", data.path().display());
        }
        output::error(&format!(
            "This removes the network in {}: database, keys and name; who has joined it cannot come back. Type yes: ",
            data.path().display()
        ));
        let mut answer = String::new();
        input.lock().read_line(&mut answer)?;
        if answer.trim() != "yes" {
            output::error("nothing was removed");
            return Ok(ExitCode::FAILURE);
        }
    }
    let removed = reset(data)?;
    output::result(&format!("removed {} files and folders of {}", removed.len(), data.path().display()));
    Ok(ExitCode::SUCCESS)
}
