//! `holdfast conformance`: whether another implementation does what docs/protocol.md says.

use crate::output;
use crate::provider::small_runtime;
use ::conformance::{Authority, Check, Report, Subject, checks, run};
use anyhow::ensure;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
The kit needs the keys of the network that the relay serves: it makes clients, tokens and contracts of its own. For an
implementation of your own, `holdfast init --data FOLDER` makes a network; the relay takes relay.crt, relay.key and a key ring
that holds the public key of token.key.

Examples:
  holdfast conformance list
  holdfast conformance relay localhost:8443 --data FOLDER
  holdfast conformance relay localhost:8443 --data FOLDER --check 30 --check 41 --json

Exit codes: 0 nothing failed, 1 something did.";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Conformance {
    /// What is checked, with its numbers
    List,
    /// Check a relay that runs
    Relay(RelayArgs),
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

pub(crate) fn conformance(command: Conformance) -> anyhow::Result<ExitCode> {
    match command {
        Conformance::List => {
            let line = |check: Check| format!("{:>3}  §{:<3} {}\n", check.number, check.section, check.name);
            output::result(&checks().map(line).collect::<String>());
            Ok(ExitCode::SUCCESS)
        }
        Conformance::Relay(options) => relay(options),
    }
}

fn relay(options: RelayArgs) -> anyhow::Result<ExitCode> {
    for number in &options.only {
        ensure!(checks().any(|check| check.number == *number), "there is no check {number}");
    }
    let subject = Subject { address: options.address, authority: Authority::read(&options.data)? };
    let wanted = |number| options.only.is_empty() || options.only.contains(&number);
    tell(&small_runtime()?.block_on(run(&subject, wanted)), options.json)
}

fn tell(report: &Report, json: bool) -> anyhow::Result<ExitCode> {
    output::result(&if json { report.to_json()? } else { report.to_string() });
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
