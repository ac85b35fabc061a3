//! `holdfast conformance`: whether another implementation does what docs/protocol.md says.

use crate::output;
use crate::process::small_runtime;
use ::conformance::provider::{self, Credentials, Running};
use ::conformance::{Authority, Check, Report, Subject, checks, run};
use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use tokio::net::TcpListener;
use tokio::process::Command;
use trust::RoleCertificate;

const EXAMPLES: &str = "\
The kit needs the keys of the network that the relay serves: it makes clients, tokens and contracts of its own. For an
implementation of your own, `holdfast init --data FOLDER` makes a network; the relay takes relay.crt, relay.key and a key ring
that holds the public key of token.key.

Examples:
  holdfast conformance list
  holdfast conformance relay localhost:8443 --data FOLDER
  holdfast conformance relay localhost:8443 --data FOLDER --check 30 --check 41 --json
  holdfast conformance provider --data FOLDER --listen 127.0.0.1:9443 -- ./my-provider --quiet

Exit codes: 0 nothing failed, 1 something did.";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Conformance {
    /// What is checked, with its numbers
    List,
    /// Check a relay that runs
    Relay(RelayArgs),
    /// Check a provider that a command starts
    #[command(after_help = PROVIDER_HELP)]
    Provider(ProviderArgs),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RelayArgs {
    /// host:port; the host must stand in the relay's certificate
    address: String,
    /// The network's folder, with root.key and token.key
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Only the check of this number; several times for several
    #[arg(long = "check", value_name = "NUMBER")]
    only: Vec<u16>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

const PROVIDER_HELP: &str = "\
The kit is the relay, with relay.crt and relay.key of the folder. The command is started for each check and killed after it. It
finds in its environment
  HOLDFAST_RELAY     host:port to dial
  HOLDFAST_NETWORK   the network's name, in base32
  HOLDFAST_CLIENT    its own name, a UUID
  HOLDFAST_KEYS      its secret keys in hexadecimal: 32 bytes Ed25519, 32 bytes X25519
  HOLDFAST_TOKEN     its token
  HOLDFAST_TARGETS   address:port, with commas: where it must be allowed to connect to, though they are on this machine
and must take a new epoch at each start.";

#[derive(Args, Debug)]
pub(crate) struct ProviderArgs {
    /// The network's folder
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Where the kit listens as the relay; the address must stand in relay.crt
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Only the check of this number; several times for several
    #[arg(long = "check", value_name = "NUMBER")]
    only: Vec<u16>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// What starts the provider, in the foreground
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn conformance(command: Conformance) -> anyhow::Result<ExitCode> {
    match command {
        Conformance::List => {
            let line = |check: Check| format!("{:>3}  §{:<3} {}\n", check.number, check.section, check.name);
            output::result(&checks().chain(provider::checks()).map(line).collect::<String>());
            Ok(ExitCode::SUCCESS)
        }
        Conformance::Relay(options) => relay(options),
        Conformance::Provider(options) => small_runtime()?.block_on(provider(options)),
    }
}

fn relay(options: RelayArgs) -> anyhow::Result<ExitCode> {
    known(&options.only, checks())?;
    let subject = Subject { address: options.address, authority: Authority::read(&options.data)? };
    let wanted = |number| options.only.is_empty() || options.only.contains(&number);
    tell(&small_runtime()?.block_on(run(&subject, wanted)), options.json)
}

async fn provider(options: ProviderArgs) -> anyhow::Result<ExitCode> {
    known(&options.only, provider::checks())?;
    let ProviderArgs { data, listen, only, json, command } = options;
    let read = |name: &str| read(&data, name);
    let listener = TcpListener::bind(listen).await;
    let subject = provider::Subject {
        authority: Authority::read(&data)?,
        listener: listener.with_context(|| format!("cannot listen on {listen}"))?,
        certificate: RoleCertificate::from_pem(&read("relay.crt")?, &read("relay.key")?)?,
        start: Box::new(move |credentials| start(&command, credentials)),
    };
    let wanted = |number| only.is_empty() || only.contains(&number);
    tell(&provider::run(&subject, wanted).await?, json)
}

fn start(command: &[String], credentials: &Credentials) -> anyhow::Result<Running> {
    let (program, arguments) = command.split_first().context("no command")?;
    let keys: String = credentials.secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let targets: Vec<String> = credentials.targets.iter().map(ToString::to_string).collect();
    let child = Command::new(program)
        .args(arguments)
        .env("HOLDFAST_RELAY", &credentials.relay)
        .env("HOLDFAST_NETWORK", credentials.network.to_string())
        .env("HOLDFAST_CLIENT", credentials.client.to_string())
        .env("HOLDFAST_KEYS", keys)
        .env("HOLDFAST_TOKEN", &credentials.token)
        .env("HOLDFAST_TARGETS", targets.join(","))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    Ok(Box::new(child.with_context(|| format!("cannot start {program}"))?))
}

fn read(folder: &Path, name: &str) -> anyhow::Result<String> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn known(numbers: &[u16], checks: impl Iterator<Item = Check>) -> anyhow::Result<()> {
    let checks: Vec<u16> = checks.map(|check| check.number).collect();
    for number in numbers {
        ensure!(checks.contains(number), "there is no check {number} here");
    }
    Ok(())
}

fn tell(report: &Report, json: bool) -> anyhow::Result<ExitCode> {
    output::result(&if json { report.to_json()? } else { report.to_string() });
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
