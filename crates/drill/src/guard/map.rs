//! The metastability map: load × length of a stall → who is still answered after it.
//!
//! A system is metastable where a trigger that is over keeps it down (Bronson et al., HotOS 2021): work for callers that have
//! left keeps it from those that wait. Where that begins depends on the load and on the length of the trigger; the map
//! shows both, for each pooler. Each cell is a fresh pooler, and a fresh load.

mod picture;

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::figures::{self, answered_share, goodput_per_s, normal_after};
use super::load::{LoadOptions, Phase};
use super::side::{PoolerKind, Side, SideOptions};
use super::stage::{Busy, Spans, at_once, percent};
use crate::clock;
use crate::peer::PoolerProgram;
use crate::postgres::{DATABASE, USER};
use crate::process;
use crate::stall::Bye;
use crate::wire::Address;

/// The load runs so long before the stall.
const BEFORE: Duration = Duration::from_secs(3);
/// What is in flight at its end may be late; from then on it counts.
const SETTLE: Duration = Duration::from_secs(2);
/// And for so long.
const AFTER: Duration = Duration::from_secs(10);
/// Below this share of answers a pooler has not come back.
const STALLED_BELOW: f64 = 0.5;
/// The share that counts as normal.
const NORMAL_SHARE: f64 = 0.95;

/// Which map is drawn.
#[derive(Clone, Debug)]
pub struct MapOptions {
    /// The poolers, side by side.
    pub programs: Vec<PoolerProgram>,
    /// Loads, as shares of what the database gives.
    pub loads: Vec<f64>,
    /// Lengths of the stall.
    pub stalls: Vec<Duration>,
    /// What is random follows from it.
    pub seed: u64,
}

impl MapOptions {
    /// Twelve cells, about five minutes.
    #[must_use]
    pub fn coarse(programs: Vec<PoolerProgram>, seed: u64) -> Self {
        let stalls = [1, 3, 10].map(Duration::from_secs).into();
        Self { programs, loads: vec![0.5, 0.7, 0.8, 0.9], stalls, seed }
    }

    /// Sixty-four cells, about half an hour.
    #[must_use]
    pub fn fine(programs: Vec<PoolerProgram>, seed: u64) -> Self {
        let stalls =
            [500, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 30_000].map(Duration::from_millis).into();
        let loads = vec![0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
        Self { programs, loads, stalls, seed }
    }
}

/// One pooler in one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Spot {
    /// The pooler, with its version.
    pub pooler: String,
    /// Whether it is ours.
    pub kind: PoolerKind,
    /// Share of the requests from 2 s to 12 s after the stall that were answered in time.
    pub answered_after: f64,
    /// Answers in time in that span, a second.
    pub good_per_s: f64,
    /// From when on 95 % of the requests are answered in each second, seconds after the stall; none: not within 12 s.
    pub normal_after_s: Option<f64>,
    /// Server connections that were there before the stall, and are not any more.
    pub servers_lost: usize,
    /// The load sent 99 of 100 requests at most so late, ms.
    pub late_ms: f64,
}

/// A load, a stall, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Share of what the database gives.
    pub load: f64,
    /// Length of the stall, seconds.
    pub stall_s: f64,
    /// The poolers.
    pub spots: Vec<Spot>,
}

/// The map.
#[derive(Clone, Debug, Serialize)]
pub struct MapReport {
    /// What was random followed from it.
    pub seed: u64,
    /// Servers of the pool.
    pub pool_size: u32,
    /// Every request sleeps so long at the database, ms.
    pub query_ms: u64,
    /// After so long a caller hangs up, seconds.
    pub patience_s: f64,
    /// What the database gave without a pooler, answers a second.
    pub capacity_per_s: f64,
    /// Share of the machine's processors that worked meanwhile.
    pub machine_busy: f64,
    /// Version of the PostgreSQL server.
    pub server_version: String,
    /// Row by row: a load, all its stalls.
    pub cells: Vec<Cell>,
}

/// Draws it; `progress` is told the number of the cell, from 0, how many there are, and what it is.
///
/// # Errors
/// PostgreSQL is missing, or a pooler does not start.
pub fn map(options: &MapOptions, progress: &dyn Fn(usize, usize, &str)) -> anyhow::Result<MapReport> {
    process::raise_descriptor_limit();
    let spans = Spans::of(false);
    let mut side_options = SideOptions::new();
    side_options.query_ms = spans.query_ms;
    let busy = Busy::read();
    let mut capacity = None;
    let mut cells = Vec::new();
    let count = options.loads.len() * options.stalls.len();
    for load in &options.loads {
        for stall in &options.stalls {
            let what = format!("load {}, stall {:.1} s", percent(*load), stall.as_secs_f64());
            progress(cells.len(), count, &what);
            let mut sides = at_once(&options.programs, |program| Side::start(program, &side_options))?;
            let gives = match capacity {
                Some(known) => known,
                None => {
                    let all = at_once(&sides, |side| side.capacity_per_s(spans.calibration))?;
                    let least = all.into_iter().fold(side_options.nominal_per_s(), f64::min);
                    *capacity.insert(least)
                }
            };
            let rate_per_s = load * gives;
            let seed = options.seed.wrapping_add(cells.len() as u64);
            let spots = one(&mut sides, &side_options, spans, rate_per_s, *stall, seed)?;
            cells.push(Cell { load: *load, stall_s: stall.as_secs_f64(), spots });
        }
    }
    Ok(MapReport {
        seed: options.seed,
        pool_size: side_options.pool_size,
        query_ms: side_options.query_ms,
        patience_s: spans.patience.as_secs_f64(),
        capacity_per_s: capacity.unwrap_or(0.0).round(),
        machine_busy: busy.as_ref().map_or(0.0, Busy::share_since),
        server_version: crate::postgres::Binaries::find()?.version().to_owned(),
        cells,
    })
}

fn one(
    sides: &mut [Side],
    options: &SideOptions,
    spans: Spans,
    rate_per_s: f64,
    stall: Duration,
    seed: u64,
) -> anyhow::Result<Vec<Spot>> {
    for side in sides.iter_mut() {
        let pooler = Address::Tcp(side.pooler.address());
        side.begin(LoadOptions {
            pooler,
            user: USER.to_owned(),
            databases: vec![DATABASE.to_owned()],
            parameters: side.parameters(spans.patience),
            query: options.query(),
            patience: spans.patience,
            phases: vec![Phase { from: Duration::ZERO, rate_per_s }],
            retries: 0,
            bye: Bye::Terminate,
            dying_share: 0.0,
            seed,
        })?;
    }
    let began = clock::now();
    clock::rest(BEFORE);
    let before = at_once(sides, Side::backends)?;
    sides.iter_mut().try_for_each(|side| side.server.pause())?;
    clock::rest(stall);
    sides.iter_mut().try_for_each(|side| side.server.resume())?;
    let healed = began.elapsed();
    clock::rest(SETTLE + AFTER);
    let end = began.elapsed();
    let now = at_once(sides, Side::backends)?;
    sides.iter_mut().try_for_each(Side::finish_load)?;
    let span = healed + SETTLE..end - spans.patience;
    let spot = |(side, (before, now)): (
        &Side,
        (&std::collections::BTreeSet<u32>, &std::collections::BTreeSet<u32>),
    )| {
        let records = &side.seen.records;
        Spot {
            pooler: side.name.clone(),
            kind: side.kind,
            answered_after: thousandths(answered_share(records, &span)),
            good_per_s: goodput_per_s(records, &span).round(),
            normal_after_s: normal_after(records, healed, span.end, NORMAL_SHARE)
                .map(|after| thousandths(after.as_secs_f64())),
            servers_lost: before.difference(now).count(),
            late_ms: figures::lateness(records, &(Duration::ZERO..end), 0.99).as_millis() as f64,
        }
    };
    Ok(sides.iter().zip(before.iter().zip(&now)).map(spot).collect())
}

impl MapReport {
    /// Whether ours came back in every cell.
    #[must_use]
    pub fn holds(&self) -> bool {
        let mut ours =
            self.cells.iter().flat_map(|cell| &cell.spots).filter(|spot| spot.kind == PoolerKind::Ours);
        ours.all(|spot| spot.answered_after >= STALLED_BELOW)
    }

    /// For people, and for `docs/` as it is.
    #[must_use]
    pub fn table(&self) -> String {
        let poolers: Vec<&str> =
            self.cells.first().into_iter().flat_map(|cell| &cell.spots).map(|spot| &*spot.pooler).collect();
        let mut text = String::from("| load | stall |");
        // Writing to a String cannot fail.
        for pooler in &poolers {
            let _ = write!(text, " {pooler}: answered in time afterwards | normal after | servers lost |");
        }
        let _ = write!(text, "\n|---|---|{}\n", "---|---|---|".repeat(poolers.len()));
        for cell in &self.cells {
            let _ = write!(text, "| {:.0} % | {} s |", cell.load * 100.0, cell.stall_s);
            for spot in &cell.spots {
                let normal =
                    spot.normal_after_s.map_or_else(|| "never".to_owned(), |after| format!("{after:.1} s"));
                let _ = write!(
                    text,
                    " {:.0} % | {normal} | {} |",
                    spot.answered_after * 100.0,
                    spot.servers_lost
                );
            }
            text.push('\n');
        }
        let late =
            self.cells.iter().flat_map(|cell| &cell.spots).map(|spot| spot.late_ms).fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "\nPool of {} x {} ms: the database alone gave {:.0}/s. Patience {} s. PostgreSQL {}. Machine {:.0} % busy, load late by at most {late} ms (p99). Seed {}.",
            self.pool_size,
            self.query_ms,
            self.capacity_per_s,
            self.patience_s,
            self.server_version,
            self.machine_busy * 100.0,
            self.seed
        );
        text
    }

    /// An SVG.
    #[must_use]
    pub fn picture(&self) -> String {
        picture::draw(self)
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
