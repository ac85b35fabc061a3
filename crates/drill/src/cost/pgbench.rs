//! Load by pgbench, PostgreSQL's own.

use std::fmt;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;

use crate::clock;
use crate::peer::Peer;
use crate::postgres::{Binaries, DATABASE, USER};
use crate::process::CpuSample;
use cluster::Account;

/// How long filling the tables may take, and a slice beyond its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// pgbench's threads at most.
const MAX_THREADS: usize = 2;

/// How pgbench sends its queries (`-M`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Simple protocol.
    Simple,
    /// Extended protocol, unnamed statements.
    Extended,
    /// Extended protocol, named statements.
    Prepared,
}

/// A kind of load: mode, clients, whether the clients speak TLS, and whether each transaction has a connection of its own.
/// Written `simple/16`, `extended/64`, `simple/16/reconnect`, `simple/16/tls`, `simple/16/tls/reconnect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Mode.
    pub mode: Mode,
    /// Clients.
    pub clients: usize,
    /// TLS between clients and pooler.
    pub tls: bool,
    /// A connection for each transaction.
    pub reconnect: bool,
}

impl Case {
    /// One client, clients below the pool size, clients above it, in both protocols, and reconnecting ones.
    #[must_use]
    pub fn standard() -> Vec<Self> {
        let case = |mode, clients, reconnect| Self { mode, clients, tls: false, reconnect };
        vec![
            case(Mode::Simple, 1, false),
            case(Mode::Simple, 16, false),
            case(Mode::Simple, 64, false),
            case(Mode::Extended, 16, false),
            case(Mode::Extended, 64, false),
            case(Mode::Simple, 16, true),
        ]
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if self.tls { "/tls" } else { "" };
        write!(
            formatter,
            "{}/{}{tls}{}",
            self.mode,
            self.clients,
            if self.reconnect { "/reconnect" } else { "" }
        )
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!(
                "`{text}` is no case: MODE/CLIENTS, then perhaps /tls, then perhaps /reconnect; MODE simple, extended or prepared"
            )
        };
        let mut parts = text.split('/');
        let mode = match parts.next() {
            Some("simple") => Mode::Simple,
            Some("extended") => Mode::Extended,
            Some("prepared") => Mode::Prepared,
            _ => bail!(wrong()),
        };
        let clients =
            parts.next().and_then(|part| part.parse().ok()).filter(|count| *count > 0).with_context(wrong)?;
        let mut rest = parts.clone();
        let tls = rest.next() == Some("tls");
        if tls {
            parts = rest;
        }
        let reconnect = match parts.next() {
            None => false,
            Some("reconnect") => true,
            Some(_) => bail!(wrong()),
        };
        ensure!(parts.next().is_none(), wrong());
        Ok(Self { mode, clients, tls, reconnect })
    }
}

/// One slice of load on one pooler.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slice {
    /// Transactions.
    pub transactions: u64,
    /// Transactions a second, as pgbench counts them.
    pub tps: f64,
    /// The pooler's CPU time per transaction, microseconds.
    pub cpu_us: f64,
}

#[derive(Debug)]
pub(super) struct Pgbench {
    program: PathBuf,
}

impl Pgbench {
    pub(super) fn find(binaries: &Binaries) -> anyhow::Result<Self> {
        let program = binaries.program("pgbench");
        ensure!(program.is_file(), "no pgbench beside the server's programs ({})", program.display());
        Ok(Self { program })
    }

    /// Makes and fills the tables, straight at the server.
    pub(super) fn fill(&self, server: SocketAddr, scale: u32) -> anyhow::Result<()> {
        let mut command = self.command(server);
        command.args(["-i", "-q", "-s", &scale.to_string(), DATABASE]);
        run(command, PATIENCE).map(drop).context("cannot fill pgbench's tables")
    }

    /// Select-only load on a pooler.
    pub(super) fn slice(&self, peer: &Peer, case: &Case, seconds: u32) -> anyhow::Result<Slice> {
        let mut command = self.command(peer.address());
        let (mode, clients) = (case.mode.to_string(), case.clients.to_string());
        let threads = case.clients.min(MAX_THREADS).to_string();
        command.args(["-n", "-S", "-M", &mode, "-c", &clients, "-j", &threads, "-T", &seconds.to_string()]);
        if case.tls {
            command.env("PGSSLMODE", "require");
        }
        if case.reconnect {
            command.arg("-C");
        }
        command.arg(DATABASE);
        let before = CpuSample::read(peer.pid())?;
        let output = run(command, Duration::from_secs(seconds.into()) + PATIENCE)
            .with_context(|| format!("pgbench on {}", peer.name()))?;
        let used = before.until(&CpuSample::read(peer.pid())?);
        let (transactions, tps) = parse(&output).with_context(|| format!("pgbench says: {output}"))?;
        Ok(Slice { transactions, tps, cpu_us: used.as_secs_f64() * 1e6 / transactions as f64 })
    }

    fn command(&self, address: SocketAddr) -> Command {
        let mut command = Account::Own.command(&self.program);
        command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string(), "-U", USER]);
        command.env("PGSSLMODE", "disable").env("PGGSSENCMODE", "disable");
        command
    }
}

/// Runs a command for at most `limit`; returns what it printed. Its output is small enough for a pipe.
fn run(mut command: Command, limit: Duration) -> anyhow::Result<String> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut status = None;
    clock::wait_for(limit, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    let Some(status) = status else {
        child.kill()?;
        child.wait()?;
        bail!("no end after {limit:?}");
    };
    let (mut output, mut errors) = (String::new(), String::new());
    child.stdout.take().context("no output")?.read_to_string(&mut output)?;
    child.stderr.take().context("no output")?.read_to_string(&mut errors)?;
    ensure!(status.success(), "{status}: {}", errors.trim().lines().last().unwrap_or_default());
    Ok(output)
}

/// Transactions, and transactions a second.
fn parse(output: &str) -> Option<(u64, f64)> {
    let after = |start: &str| {
        let rest = output.lines().find_map(|line| line.strip_prefix(start))?;
        rest.split(['/', ' ']).find(|word| !word.is_empty())
    };
    let transactions = after("number of transactions actually processed:")?.parse().ok()?;
    let tps = after("tps = ")?.parse().ok()?;
    (transactions > 0).then_some((transactions, tps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_read_as_they_are_written() {
        for case in Case::standard() {
            assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
        }
        for tls in ["simple/16/tls", "simple/16/tls/reconnect"] {
            assert_eq!(tls.parse::<Case>().unwrap().to_string(), tls);
        }
        for wrong in
            ["", "simple", "simple/0", "simple/x", "fast/1", "simple/1/reconnect/tls", "simple/1/reconnect/x"]
        {
            assert!(wrong.parse::<Case>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn output_of_old_and_new_versions_is_read() {
        let text = "number of transactions actually processed: 1234\ntps = 617.2 (without initial connection time)\n";
        assert_eq!(parse(text), Some((1234, 617.2)));
        assert_eq!(
            parse("number of transactions actually processed: 10/10\ntps = 1.5 (x)\n"),
            Some((10, 1.5))
        );
        assert_eq!(parse("number of transactions actually processed: 0\ntps = 0.0 (x)\n"), None);
    }
}
