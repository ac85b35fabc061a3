//! The scenario in several variants, every pooler beside the others in the same run, each with its own server and relay.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;

use super::{Bye, Fault, StallOptions, StallReport, run};
use crate::peer::{PoolerProgram, PoolerSetup};
use crate::postgres::{PostgresOptions, PrivatePostgres};
use crate::relay::Relay;
use crate::wire::{Address, block_on};

/// Room for the pooler's connections of before and after a cut at once.
const SERVER_CONNECTIONS: u32 = 200;

/// Bytes of the large query: more than a pooler's usual packet buffer, so that the farewell stands behind unread bytes.
pub(crate) const LARGE_QUERY_BYTES: usize = 6000;

/// One way to run the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// What clients send that give up.
    pub bye: Bye,
    /// The query is padded to that many bytes; 0: as it is.
    pub query_bytes: usize,
    /// The pooler's `query_wait_timeout`, seconds.
    pub query_wait_timeout_s: u32,
    /// The fault.
    pub fault: Fault,
}

impl Variant {
    /// The ways to leave (with Terminate or without a word, a short or a large query), each with `query_wait_timeout` below,
    /// above and far above the clients' patience, each with a freeze and with freeze and cut: 24.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut variants = Vec::new();
        for fault in [Fault::Freeze, Fault::FreezeAndCut] {
            for query_wait_timeout_s in [10, 4, 120] {
                for (bye, query_bytes) in [
                    (Bye::Terminate, 0),
                    (Bye::None, 0),
                    (Bye::Terminate, LARGE_QUERY_BYTES),
                    (Bye::None, LARGE_QUERY_BYTES),
                ] {
                    variants.push(Self { bye, query_bytes, query_wait_timeout_s, fault });
                }
            }
        }
        variants
    }

    /// Each value of each dimension at least once: 6 of [`Self::all`].
    #[must_use]
    pub fn standard() -> Vec<Self> {
        let with = |bye, query_bytes, query_wait_timeout_s, fault| Self {
            bye,
            query_bytes,
            query_wait_timeout_s,
            fault,
        };
        vec![
            with(Bye::Terminate, 0, 10, Fault::Freeze),
            with(Bye::None, 0, 10, Fault::Freeze),
            with(Bye::None, LARGE_QUERY_BYTES, 10, Fault::Freeze),
            with(Bye::Terminate, 0, 4, Fault::Freeze),
            with(Bye::Terminate, 0, 120, Fault::Freeze),
            with(Bye::None, 0, 120, Fault::FreezeAndCut),
        ]
    }

    pub(super) fn query(&self, plain: &str) -> String {
        let padding = self.query_bytes.saturating_sub(plain.len() + " /*  */".len());
        if padding == 0 { plain.to_owned() } else { format!("{plain} /* {} */", "x".repeat(padding)) }
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The poolers, side by side.
    pub programs: Vec<PoolerProgram>,
    /// One after the other.
    pub variants: Vec<Variant>,
    /// Clients of each pooler.
    pub clients: usize,
    /// Time before the fault.
    pub before: Duration,
    /// Time of the fault.
    pub fault_for: Duration,
    /// Time after it.
    pub after: Duration,
}

impl BenchOptions {
    /// The standard variants with 400 clients: 8 s before, 7 s of fault, 40 s after.
    #[must_use]
    pub fn new(programs: Vec<PoolerProgram>) -> Self {
        Self {
            programs,
            variants: Variant::standard(),
            clients: 400,
            before: Duration::from_secs(8),
            fault_for: Duration::from_secs(7),
            after: Duration::from_secs(40),
        }
    }
}

/// What the bench tells while it runs, each second of each pooler.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Number of the variant, from 0.
    pub variant: usize,
    /// How many there are.
    pub variants: usize,
    /// The pooler.
    pub pooler: String,
    /// The second that ended.
    pub second: usize,
    /// How many there are.
    pub seconds: usize,
    /// Answers in it.
    pub good: u64,
}

/// One pooler in one variant.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// The pooler, with its version.
    pub pooler: String,
    /// The variant.
    pub variant: Variant,
    /// What came of it, if it could be run.
    pub report: Option<StallReport>,
    /// Why it could not be run.
    pub error: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Clients of each pooler.
    pub clients: usize,
    /// Version of the PostgreSQL server.
    pub server_version: String,
    /// Rows in the order of variants, and in each of poolers.
    pub rows: Vec<BenchRow>,
}

/// Runs all variants. Blocks for about (before + fault + after) each.
///
/// # Errors
/// No PostgreSQL server is installed. A pooler that does not start is a row with an error.
pub fn bench(options: &BenchOptions, progress: &(dyn Fn(Progress) + Sync)) -> anyhow::Result<BenchReport> {
    let server_version = crate::postgres::Binaries::find()?.version().to_owned();
    let mut rows = Vec::new();
    for (number, variant) in options.variants.iter().enumerate() {
        let tell = |pooler: &str, second, seconds, good| {
            let (variant, variants, pooler) = (number, options.variants.len(), pooler.to_owned());
            progress(Progress { variant, variants, pooler, second, seconds, good });
        };
        thread::scope(|scope| {
            let tell = &tell;
            let start = |program| scope.spawn(move || one(options, variant, program, tell));
            let running: Vec<_> = options.programs.iter().map(start).collect();
            for (program, run) in options.programs.iter().zip(running) {
                let outcome = run.join().unwrap_or_else(|_| Err(anyhow!("the load of this pooler panicked")));
                let (report, error) = match outcome {
                    Ok(report) => (Some(report), None),
                    Err(error) => (None, Some(format!("{error:#}"))),
                };
                rows.push(BenchRow { pooler: program.name(), variant: *variant, report, error });
            }
        });
    }
    Ok(BenchReport { clients: options.clients, server_version, rows })
}

fn one(
    options: &BenchOptions,
    variant: &Variant,
    program: &PoolerProgram,
    tell: &(dyn Fn(&str, usize, usize, u64) + Sync),
) -> anyhow::Result<StallReport> {
    let server = PrivatePostgres::start(PostgresOptions::default().max_connections(SERVER_CONNECTIONS))?;
    let relay = Relay::start(server.tcp_address())?;
    let setup = PoolerSetup::new(relay.address())
        .setting("query_wait_timeout", &variant.query_wait_timeout_s.to_string());
    let peer = program.start(&setup)?;
    let mut stall = StallOptions::new(Address::Tcp(peer.address()));
    stall.clients = options.clients;
    (stall.before, stall.fault_for, stall.after) = (options.before, options.fault_for, options.after);
    (stall.bye, stall.fault) = (variant.bye, variant.fault);
    stall.query = variant.query(&stall.query);
    let seconds = (stall.before + stall.fault_for + stall.after).as_secs();
    let seconds = usize::try_from(seconds).unwrap_or(usize::MAX);
    block_on(async { run(&stall, &relay, |second, good| tell(peer.name(), second, seconds, good)).await })?
}

impl BenchReport {
    /// The rows for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<18} {:<11} {:>9} {:>5} {:>8} {:>8} {:>8} {:>8}  {}\n",
            "pooler", "fault", "bye", "query", "wait_to", "before/s", "after/s", "recover", "outcome"
        );
        for row in &self.rows {
            let variant = &row.variant;
            let fault = match variant.fault {
                Fault::None => "none",
                Fault::Freeze => "freeze",
                Fault::Cut => "cut",
                Fault::FreezeAndCut => "freeze+cut",
            };
            let bye = match variant.bye {
                Bye::Terminate => "terminate",
                Bye::None => "none",
            };
            let query = if variant.query_bytes == 0 { "short" } else { "large" };
            let wait = format!("{} s", variant.query_wait_timeout_s);
            let (before, after, recover, outcome) = match (&row.report, &row.error) {
                (Some(report), _) => (
                    report.goodput_before.to_string(),
                    report.goodput_last_10s.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
                    report
                        .seconds_to_recover
                        .map_or_else(|| "never".to_owned(), |seconds| format!("{seconds} s")),
                    if report.stalled { "STALLED" } else { "works" }.to_owned(),
                ),
                (None, error) => (
                    "-".into(),
                    "-".into(),
                    "-".into(),
                    error.as_deref().unwrap_or_default().replace('\n', "; "),
                ),
            };
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "{:<18} {fault:<11} {bye:>9} {query:>5} {wait:>8} {before:>8} {after:>8} {recover:>8}  {outcome}",
                row.pooler
            );
        }
        text
    }
}
