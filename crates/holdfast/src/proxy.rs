//! `holdfast proxy …`: customers come in here.

use crate::process::{carrying_runtime, raise_descriptors, small_runtime, stopped};
use crate::provider::{CODE_VARIABLE, CodeSource, read_code};
use crate::{log, output};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use client::{Joining, Membership};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use trust::{JoinLink, Role};

/// The configuration in the state folder.
const FILE: &str = "proxy.toml";

const UP_EXAMPLES: &str = "\
Where it listens stands in proxy.toml in the state folder; without that file it listens on 127.0.0.1:1080, for SOCKS5 and
HTTP alike, by login:

  [[listen]]
  address = \"0.0.0.0:1080\"
  protocol = \"any\"             # or \"socks5\", or \"http\"
  selection = \"\"               # options for whoever sends none, such as \"country-de\"

  [abuse]
  folder = \"/var/log/exits\"    # beside the records that the api keeps
  days = 30
  targets = false              # true: where customers went is written down too

SIGTERM stops it: no new customers, 30 s for streams that stand.";

#[derive(Debug, Subcommand)]
pub(crate) enum ProxyCommand {
    /// Join a network by its link, and a code for proxies from standard input, a file or HOLDFAST_JOIN_CODE.
    Join(JoinArgs),
    /// Run in the foreground.
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArgs),
}

#[derive(Args, Debug)]
pub(crate) struct JoinArgs {
    /// holdfast://HOST:PORT/NETWORK
    link: JoinLink,
    /// Read the code from this file
    #[arg(long, value_name = "FILE")]
    code_file: Option<PathBuf>,
    /// A name that you will recognise
    #[arg(long, default_value = "proxy")]
    label: String,
    /// The state folder
    #[arg(long, value_name = "FOLDER")]
    state: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct UpArgs {
    /// The state folder
    #[arg(long, value_name = "FOLDER")]
    state: PathBuf,
    /// Another configuration than proxy.toml in the state folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Log lines as JSON
    #[arg(long)]
    json_log: bool,
}

pub(crate) fn run(command: ProxyCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProxyCommand::Join(arguments) => join(arguments),
        ProxyCommand::Up(arguments) => up(&arguments),
    }
}

fn join(arguments: JoinArgs) -> anyhow::Result<ExitCode> {
    let source = match (arguments.code_file, std::env::var(CODE_VARIABLE)) {
        (Some(path), _) => CodeSource::File(path),
        (None, Ok(code)) => CodeSource::Environment(code),
        (None, Err(_)) => CodeSource::Input,
    };
    let (link, code, label) = (arguments.link, read_code(source)?, arguments.label);
    let joining = Joining { link, role: Role::Proxy, code, label, country: None };
    let member = small_runtime()?.block_on(Membership::join(&arguments.state, &joining))?;
    output::result(&format!(
        "joined network {} as proxy {}\nnext: holdfast proxy up --state {}",
        member.network(),
        member.client(),
        arguments.state.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn up(arguments: &UpArgs) -> anyhow::Result<ExitCode> {
    log::start(arguments.json_log, None::<std::io::Sink>)?;
    let file = arguments.config.clone().unwrap_or_else(|| arguments.state.join(FILE));
    let config = if arguments.config.is_some() || file.exists() {
        proxy::Config::load(&file).with_context(|| file.display().to_string())?
    } else {
        proxy::Config::default()
    };
    let membership = Arc::new(Membership::open(&arguments.state)?);
    raise_descriptors();
    carrying_runtime()?.block_on(async {
        let stop = stopped()?;
        proxy::run(config, membership, stop).await.map_err(anyhow::Error::from)
    })?;
    Ok(ExitCode::SUCCESS)
}
