//! What can be written behind `holdfast provider`.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use trust::JoinLink;

const JOIN_EXAMPLES: &str = "\
The code is read from --code-file, the environment variable HOLDFAST_JOIN_CODE, or standard input, and never from the
command line, which every user of a machine can read. It works once, for ten minutes; after a failure without an answer
run the same command again.

Examples:
  holdfast provider join holdfast://example.com:443/NETWORK
  holdfast provider join holdfast://example.com:443/NETWORK --country DE < code.txt";

const UP_EXAMPLES: &str = "\
What it may do stands in provider.toml in the state folder; without that file it reaches ports 80 and 443 of the open
internet, without other limits:

  [egress]
  ports = \"web\"              # or \"open\", or \"80, 443, 8000-8999\"
  own_addresses = []         # of this site, if the machine does not have them itself: never reached
  [limits]
  month = \"100GB\"            # both directions together
  rate_mbit_s = 50
  hours = \"22:00-06:00\"
  streams = 1000
  [dns]
  servers = []               # none: those of the system

SIGTERM stops it: no new streams, 30 s for those that stand.";

#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// Join a network by the link and the code that its operator gave.
    #[command(after_help = JOIN_EXAMPLES)]
    Join(JoinArgs),
    /// Run in the foreground.
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArgs),
    /// How it stands: link, streams, bytes, limits, and what happens next. Exit code 1 if it does not work.
    Status {
        #[command(flatten)]
        state: StateArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Take no new streams; those that stand may end, then it disconnects.
    Pause {
        #[command(flatten)]
        state: StateArgs,
        /// Show the status as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take streams again.
    Resume {
        #[command(flatten)]
        state: StateArgs,
        /// Show the status as JSON
        #[arg(long)]
        json: bool,
    },
    /// Limit the bytes of a month: an amount such as 100GB, `none`, or `default` for what provider.toml says.
    Cap {
        /// 100GB, 1.5TB, none, default
        amount: String,
        #[command(flatten)]
        state: StateArgs,
        /// Show the status as JSON
        #[arg(long)]
        json: bool,
    },
    /// Dial again now; also with a credential that was refused for good, if that has been cleared up.
    Retry {
        #[command(flatten)]
        state: StateArgs,
        /// Show the status as JSON
        #[arg(long)]
        json: bool,
    },
    /// Read provider.toml again.
    Reload {
        #[command(flatten)]
        state: StateArgs,
        /// Show the status as JSON
        #[arg(long)]
        json: bool,
    },
    /// The last lines of the log.
    Logs {
        #[command(flatten)]
        state: StateArgs,
        /// How many
        #[arg(short = 'n', long, default_value_t = 100)]
        lines: usize,
    },
    /// Is this machine fit to be a provider? Exit code 1 if something is broken.
    Doctor {
        #[command(flatten)]
        state: StateArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct JoinArgs {
    /// holdfast://HOST:PORT/NETWORK
    pub(crate) link: JoinLink,
    /// Read the code from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) code_file: Option<PathBuf>,
    /// A name that you will recognise; the machine's name if it is left out
    #[arg(long, default_value = "")]
    pub(crate) label: String,
    /// Where it is: two letters, such as DE
    #[arg(long, value_name = "CC")]
    pub(crate) country: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Args, Debug)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// Log lines as JSON
    #[arg(long)]
    pub(crate) json_log: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StateArgs {
    /// The state folder; HOLDFAST_PROVIDER_STATE or ~/.local/state/holdfast/provider if it is left out
    #[arg(long = "state", value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl StateArgs {
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        match &self.folder {
            Some(folder) => Ok(folder.clone()),
            None => provider::state::default_folder(|name| std::env::var_os(name))
                .context("there is no home folder: name a state folder with --state"),
        }
    }

    /// The option again, for a command to be typed next.
    pub(crate) fn as_typed(&self) -> String {
        self.folder.as_ref().map(|folder| format!(" --state {}", folder.display())).unwrap_or_default()
    }
}
