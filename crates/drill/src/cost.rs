//! What a pooler costs beside another one: CPU time per transaction in pairs, memory per idle client, CPU while idle.
//!
//! The two take turns in short slices on the same server, in an order that a seed shuffles, so that whatever else the
//! machine does hits both alike. A block is one slice of each; its ratio is the first's CPU time per transaction over the
//! second's. The median of these ratios is reported with a bootstrap bound. Rates and latencies are advisory.

mod bootstrap;
mod certificate;
mod idle;
mod pgbench;

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;

pub use bootstrap::{Bound, median_bound};
pub use idle::{IdleReport, idle_cost};
pub use pgbench::{Case, Mode, Slice};

use crate::peer::{PoolerProgram, PoolerSetup};
use crate::postgres::{PostgresOptions, PrivatePostgres};
use crate::process;
use certificate::Certificate;
use pgbench::Pgbench;

/// Two pools of 20 and the administrator's sessions.
const SERVER_CONNECTIONS: u32 = 100;

/// What is measured.
#[derive(Clone, Debug)]
pub struct CostOptions {
    /// The pooler whose cost is asked for.
    pub subject: PoolerProgram,
    /// The one that it is compared with.
    pub reference: PoolerProgram,
    /// Cases.
    pub cases: Vec<Case>,
    /// Blocks (pairs of slices) of each case.
    pub blocks: usize,
    /// Seconds of a slice.
    pub slice_s: u32,
    /// `default_pool_size` of both.
    pub pool_size: u32,
    /// pgbench's scale (100,000 rows each).
    pub scale: u32,
    /// Idle clients for the memory; 0: not measured.
    pub idle_clients: usize,
    /// Time over which the CPU while idle is taken.
    pub idle_for: Duration,
    /// Decides the order of slices and the resampling.
    pub seed: u64,
}

impl CostOptions {
    /// The standard cases, 15 blocks of 1 s slices, 20 servers a pool, 2000 idle clients.
    #[must_use]
    pub fn new(subject: PoolerProgram, reference: PoolerProgram) -> Self {
        Self {
            subject,
            reference,
            cases: Case::standard(),
            blocks: 15,
            slice_s: 1,
            pool_size: 20,
            scale: 10,
            idle_clients: 2000,
            idle_for: Duration::from_secs(5),
            seed: 1,
        }
    }
}

/// What the bench tells while it runs, before each block.
#[derive(Clone, Debug)]
pub struct CostProgress {
    /// The case, or `idle`.
    pub case: String,
    /// Number of the block, from 0.
    pub block: usize,
    /// How many there are.
    pub blocks: usize,
}

/// One block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The pooler whose cost is asked for.
    pub subject: Slice,
    /// The other.
    pub reference: Slice,
    /// CPU time per transaction, subject over reference.
    pub ratio: f64,
}

/// All blocks of one case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// The case, such as `simple/16`.
    pub case: String,
    /// Ratio of CPU time per transaction: median and bound. None if there is no pair.
    pub cpu_ratio: Option<Bound>,
    /// Median CPU time per transaction of the subject, microseconds.
    pub subject_cpu_us: f64,
    /// Median CPU time per transaction of the reference, microseconds.
    pub reference_cpu_us: f64,
    /// Median transactions a second of the subject (advisory).
    pub subject_tps: f64,
    /// Median transactions a second of the reference (advisory).
    pub reference_tps: f64,
    /// Blocks.
    pub pairs: Vec<Pair>,
    /// Why the case ended early, if it did.
    pub error: Option<String>,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct CostReport {
    /// The pooler whose cost is asked for.
    pub subject: String,
    /// The other.
    pub reference: String,
    /// Version of the PostgreSQL server.
    pub server_version: String,
    /// Seconds of a slice.
    pub slice_s: u32,
    /// Servers a pool.
    pub pool_size: u32,
    /// Seed.
    pub seed: u64,
    /// Cases.
    pub cases: Vec<CaseReport>,
    /// Memory and CPU of idle clients: subject, reference.
    pub idle: Vec<IdleReport>,
}

/// Measures; blocks for about cases × blocks × 2 slices.
///
/// # Errors
/// PostgreSQL, pgbench or one of the poolers cannot be run. A case that fails is reported as such.
pub fn bench(options: &CostOptions, progress: &dyn Fn(CostProgress)) -> anyhow::Result<CostReport> {
    ensure!(options.blocks > 0 && options.slice_s > 0, "at least one block of at least one second");
    process::raise_descriptor_limit();
    let server = PrivatePostgres::start(PostgresOptions::default().max_connections(SERVER_CONNECTIONS))?;
    let pgbench = Pgbench::find(server.binaries())?;
    pgbench.fill(server.tcp_address(), options.scale)?;
    let mut setup = PoolerSetup::new(server.tcp_address())
        .setting("default_pool_size", &options.pool_size.to_string())
        .setting("max_client_conn", &(options.idle_clients + 500).to_string());

    let certificate =
        if options.cases.iter().any(|case| case.tls) { Some(Certificate::make()?) } else { None };
    if let Some(certificate) = &certificate {
        setup = certificate.offer(setup);
    }
    // Memory first, of fresh processes.
    let mut idle = Vec::new();
    if options.idle_clients > 0 {
        for (block, program) in [&options.subject, &options.reference].into_iter().enumerate() {
            progress(CostProgress { case: "idle".to_owned(), block, blocks: 2 });
            let peer = program.start(&setup)?;
            idle.push(idle_cost(&peer, options.idle_clients, options.idle_for)?);
        }
    }
    let peers = [options.subject.start(&setup)?, options.reference.start(&setup)?];
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut cases = Vec::new();
    for case in &options.cases {
        let mut pairs = Vec::new();
        let mut error = None;
        for block in 0..options.blocks {
            progress(CostProgress { case: case.to_string(), block, blocks: options.blocks });
            let subject_first = random.bool();
            let slice = |index: usize| pgbench.slice(&peers[index], case, options.slice_s);
            let both = if subject_first {
                slice(0).and_then(|subject| Ok((subject, slice(1)?)))
            } else {
                slice(1).and_then(|reference| Ok((slice(0)?, reference)))
            };
            match both {
                Ok((subject, reference)) => {
                    pairs.push(Pair { subject, reference, ratio: subject.cpu_us / reference.cpu_us });
                }
                Err(reason) => {
                    error = Some(format!("{reason:#}"));
                    break;
                }
            }
        }
        cases.push(CaseReport::new(case, pairs, error, options.seed));
    }
    Ok(CostReport {
        subject: options.subject.name(),
        reference: options.reference.name(),
        server_version: server.binaries().version().to_owned(),
        slice_s: options.slice_s,
        pool_size: options.pool_size,
        seed: options.seed,
        cases,
        idle,
    })
}

impl CaseReport {
    fn new(case: &Case, pairs: Vec<Pair>, error: Option<String>, seed: u64) -> Self {
        let median = |of: fn(&Pair) -> f64| bootstrap::median(&mut pairs.iter().map(of).collect::<Vec<_>>());
        let ratios: Vec<f64> = pairs.iter().map(|pair| pair.ratio).collect();
        Self {
            case: case.to_string(),
            cpu_ratio: median_bound(&ratios, seed),
            subject_cpu_us: median(|pair| pair.subject.cpu_us),
            reference_cpu_us: median(|pair| pair.reference.cpu_us),
            subject_tps: median(|pair| pair.subject.tps),
            reference_tps: median(|pair| pair.reference.tps),
            error,
            pairs,
        }
    }
}

impl CostReport {
    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("{} beside {} (ratios: below 1 is cheaper)\n", self.subject, self.reference);
        let mut line = |words: String| {
            text.push_str(&words);
            text.push('\n');
        };
        line(format!(
            "{:<22} {:>8} {:>17} {:>12} {:>12} {:>10} {:>10}",
            "case", "cpu", "95 % bounds", "us/tx", "us/tx other", "tx/s", "tx/s other"
        ));
        for case in &self.cases {
            let (ratio, bounds) = match &case.cpu_ratio {
                Some(bound) => {
                    (format!("{:.3}", bound.median), format!("{:.3} – {:.3}", bound.lower_95, bound.upper_95))
                }
                None => ("-".to_owned(), "-".to_owned()),
            };
            line(format!(
                "{:<22} {ratio:>8} {bounds:>17} {:>12.2} {:>12.2} {:>10.0} {:>10.0}{}",
                case.case,
                case.subject_cpu_us,
                case.reference_cpu_us,
                case.subject_tps,
                case.reference_tps,
                case.error.as_ref().map(|error| format!("  {error}")).unwrap_or_default()
            ));
        }
        for idle in &self.idle {
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "{}: {} idle clients, {:.0} bytes each ({:.0} after a query each), {:.2} % CPU while idle",
                idle.pooler,
                idle.clients,
                idle.bytes_per_idle_client,
                idle.bytes_per_client_after_a_query,
                idle.cpu_share_while_idle * 100.0
            );
        }
        text
    }
}

#[cfg(test)]
mod tests;
