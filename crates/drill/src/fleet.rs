//! What a fleet of providers costs a relay: memory each, CPU while idle, and the time in which all are back after the relay
//! was killed.
//!
//! A relay and its providers each have a process of their own, of at most [`PER_PROCESS`] connections; with more providers
//! there are several pairs. Every provider is a real link with keys, a token and an address of its own on the loopback net.

mod guests;
mod part;
mod providers;
mod relays;
mod report;

pub use guests::Guests;
pub use report::{FleetReport, RelayReport};

use crate::clock;
use crate::port::PortLease;
use crate::process::{self, CpuSample};
use anyhow::{Context as _, bail, ensure};
use part::{Part, Process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Providers of one process, and of one relay: what 20,000 descriptors allow.
pub const PER_PROCESS: usize = 15_000;
/// All must be back within this many times their number divided by the admission rate.
pub const RETURN_FACTOR: f64 = 1.5;
/// After the last provider has come, memory settles.
const SETTLE: Duration = Duration::from_secs(3);
/// Beyond the limit, it is watched for so much longer, to tell by how much it was missed.
const WATCHED_FACTOR: f64 = 6.0;
const LOOK: Duration = Duration::from_millis(50);

/// What is measured.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// This very program, and the arguments with which it calls [`run_part`].
    pub program: PathBuf,
    /// See `program`.
    pub arguments: Vec<String>,
    /// Providers.
    pub count: usize,
    /// Handshakes a second of all relays together.
    pub admissions_per_second: u32,
    /// How long the CPU while idle is taken.
    pub idle_for: Duration,
}

/// What the bench tells while it runs.
#[derive(Clone, Copy, Debug)]
pub struct FleetProgress {
    /// What it does now.
    pub step: &'static str,
    /// Connected providers.
    pub connected: usize,
    /// How many there are.
    pub count: usize,
}

/// The keys of a network that lives on the loopback net for a few minutes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Seeds {
    root: [u8; 32],
    tokens: [u8; 32],
}

impl Seeds {
    fn new() -> Self {
        let seed = || std::array::from_fn(|_| fastrand::u8(..));
        Self { root: seed(), tokens: seed() }
    }
}

/// One relay and its providers.
struct Pair {
    relay_part: Part,
    relay: Process,
    providers: Process,
    count: usize,
    base_bytes: u64,
    _port: PortLease,
}

/// Serves as one process of the bench until standard input ends.
///
/// # Errors
/// What it is to be cannot be read, or cannot be started.
pub fn run_part() -> anyhow::Result<()> {
    part::run()
}

/// Measures.
///
/// # Errors
/// A process cannot be started, or ends, or the providers do not come in. That they come back too late is in the report.
pub fn bench(options: &FleetOptions, progress: &dyn Fn(FleetProgress)) -> anyhow::Result<FleetReport> {
    ensure!(options.count > 0, "at least one provider");
    let descriptors = process::raise_descriptor_limit();
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let seeds = Seeds::new();
    let relays = options.count.div_ceil(PER_PROCESS);
    let rate = (options.admissions_per_second / u32::try_from(relays)?).max(1);
    let mut pairs = Vec::new();
    for number in 0..relays {
        let first = options.count * number / relays;
        let count = options.count * (number + 1) / relays - first;
        let port = PortLease::take()?;
        let address = port.address();
        let state = folder.path().join(number.to_string());
        let relay_part = Part::Relay { seeds, address, state, admissions_per_second: rate };
        let relay = Process::start(options, &relay_part)?;
        relay.wait_until_ready()?;
        let base_bytes = process::resident_bytes(relay.id())?;
        let providers = Process::start(options, &Part::Providers { seeds, address, first, count })?;
        pairs.push(Pair { relay_part, relay, providers, count, base_bytes, _port: port });
    }
    let seconds = options.count as f64 / (f64::from(rate) * relays as f64);
    let limit_s = RETURN_FACTOR * seconds;
    let all_in = |pairs: &mut [Pair], step, limit_s: f64| -> anyhow::Result<(f64, usize)> {
        let began = clock::now();
        loop {
            let mut connected = 0;
            for pair in pairs.iter_mut() {
                connected += pair.providers.connected()?;
                pair.relay.check()?;
            }
            progress(FleetProgress { step, connected, count: options.count });
            let elapsed_s = began.elapsed().as_secs_f64();
            if connected == options.count || elapsed_s >= limit_s {
                return Ok((elapsed_s, connected));
            }
            clock::rest(LOOK);
        }
    };

    let (ramp_s, connected) = all_in(&mut pairs, "coming", WATCHED_FACTOR * limit_s + 60.0)?;
    if connected < options.count {
        bail!("only {connected} of {} providers came in within {ramp_s:.0} s", options.count);
    }
    clock::rest(SETTLE);
    let tell = |step| progress(FleetProgress { step, connected: options.count, count: options.count });
    tell("idle");
    let before: Vec<CpuSample> = cpu(&pairs)?;
    clock::rest(options.idle_for);
    let after: Vec<CpuSample> = cpu(&pairs)?;
    let mut reports = Vec::new();
    for (pair, (before, after)) in pairs.iter().zip(before.iter().zip(&after)) {
        let grown = process::resident_bytes(pair.relay.id())?.saturating_sub(pair.base_bytes);
        reports.push(RelayReport {
            providers: pair.count,
            base_bytes: pair.base_bytes,
            bytes_each: grown / pair.count as u64,
            idle_cpu_percent: 100.0 * before.until(after).as_secs_f64() / options.idle_for.as_secs_f64(),
        });
    }

    // Killed, so that nobody is told anything; and there again at once.
    for pair in &mut pairs {
        pair.relay.kill();
        pair.relay = Process::start(options, &pair.relay_part)?;
    }
    for pair in &mut pairs {
        pair.relay.wait_until_ready()?;
        pair.providers.forget();
    }
    let (back_s, back) = all_in(&mut pairs, "coming back", WATCHED_FACTOR * limit_s + 60.0)?;
    let (mut dials, mut causes) = (0, BTreeMap::new());
    for pair in &mut pairs {
        let last = pair.providers.last()?;
        dials += last.dials;
        for (cause, count) in last.causes {
            *causes.entry(cause).or_default() += count;
        }
    }
    Ok(FleetReport {
        count: options.count,
        admissions_per_second: rate * u32::try_from(relays)?,
        ramp_s,
        relays: reports,
        back,
        back_s,
        back_limit_s: limit_s,
        dials,
        causes,
        descriptors,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

fn cpu(pairs: &[Pair]) -> anyhow::Result<Vec<CpuSample>> {
    pairs.iter().map(|pair| Ok(CpuSample::read(pair.relay.id())?)).collect()
}
