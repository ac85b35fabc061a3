//! A relay that is killed again and again, and a database that is stopped again and again: what is lost, and what is charged.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;

use super::bill;
use super::stage::Stage;
use crate::clock;
use crate::network::NetworkOptions;
use crate::postgres::StopMode;
use crate::process::Signal;
use crate::relay::Direction;

/// How often the relay is killed.
const SHORT: u32 = 10;
const LONG: u32 = 200;
/// How often the relay writes down what was used. The rest of the bound is what a disk, and a machine that does much else, may take.
const USAGE_INTERVAL_MS: u64 = 200;
const WRITE_LIMIT_MS: u64 = 600;
/// How late the database's answers reach the relay: so it is often killed while it does not know what was taken.
const ANSWER_DELAY: Duration = Duration::from_millis(120);
/// The latest moment at which it is killed, after its start or after streams have begun to flow, ms.
const LATEST_MS: u64 = 4_500;
/// How long streams may take to flow again.
const FLOW_LIMIT: Duration = Duration::from_secs(30);
/// How long what is on the relay's disk may take to the database.
const SENT_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
/// Streams that are held or opened at once, and what may be under way on each: a message, and its echo.
const STREAMS: u64 = 24;
const UNDER_WAY_BYTES: u64 = 2 * 2_000;
/// Seal and frames of a message, and of a stream's begin and end, at most.
const ROUND_BYTES: u64 = 6 * 16;
const STREAM_BYTES: u64 = 64;

/// One relay, whose clients come back soon.
pub(super) fn size(options: &mut NetworkOptions) {
    options.proxies = 2;
    options.relay_lines =
        format!("usage_interval_ms = {USAGE_INTERVAL_MS}\nbackoff_base_ms = 100\nbackoff_cap_ms = 1000\n");
}

/// What one start of the relay carried, as its ends saw it.
#[derive(Debug)]
struct Life {
    epoch: u64,
    /// At the most, with what was under way.
    most: u64,
    /// Carried long enough before its end to be on its disk.
    safe: u64,
    /// All that both ends have counted.
    moved: u64,
}

pub(super) fn relay(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let points = if stage.is_long() { LONG } else { SHORT };
    let mut random = fastrand::Rng::with_seed(stage.seed());
    stage.network.paths.relays[0].delay_bytes(Direction::Down, ANSWER_DELAY);
    stage.event(format!("a relay is killed {points} times"));
    let mut lives: Vec<Life> = Vec::new();
    let mut begun = stage.traffic().sums();
    // What was carried before, by the same start.
    (begun.bytes, begun.rounds, begun.streams) = (0, 0, 0);
    for _ in 0..points {
        // It listens before its journal is there.
        let before = lives.last().map_or(0, |life| life.epoch);
        let begins = stage.until(FLOW_LIMIT, |stage| epoch(stage).is_ok_and(|epoch| epoch > before));
        begins.context("a start of the relay has no journal")?;
        let epoch = epoch(stage)?;
        let flows = random.u8(..3) > 0;
        if flows {
            let before = stage.traffic().sums().rounds;
            let limit = clock::now() + FLOW_LIMIT;
            while stage.traffic().sums().rounds == before && clock::now() < limit {
                clock::rest(LOOK);
            }
        }
        // What had been carried so long before the end that it is on the disk.
        let mut samples = Vec::new();
        let end = clock::now() + Duration::from_millis(random.u64(..LATEST_MS));
        while clock::now() < end {
            samples.push((clock::now(), stage.traffic().sums().bytes));
            clock::rest(LOOK);
        }
        let window = Duration::from_millis(USAGE_INTERVAL_MS + WRITE_LIMIT_MS);
        stage.network.relays[0].signal(Signal::KILL)?;
        let killed = clock::now();
        stage.network.relays[0].kill();
        let is_safe = |at: &std::time::Instant| killed.saturating_duration_since(*at) >= window;
        let safe = samples.iter().rev().find(|(at, _)| is_safe(at)).map_or(0, |(_, bytes)| *bytes);
        let sums = stage.traffic().sums();
        let moved = sums.bytes - begun.bytes;
        let sealed = (sums.rounds - begun.rounds + STREAMS) * ROUND_BYTES
            + (sums.streams - begun.streams + STREAMS) * STREAM_BYTES;
        let most = moved + sealed + STREAMS * UNDER_WAY_BYTES;
        let safe = safe.saturating_sub(begun.bytes).saturating_sub(STREAMS * UNDER_WAY_BYTES);
        lives.push(Life { epoch, most, safe, moved });
        begun = stage.traffic().sums();
        stage.network.relays[0].start()?;
    }
    stage.network.paths.relays[0].delay_bytes(Direction::Down, Duration::ZERO);
    stage.event("its last start goes on");
    let before = stage.traffic().sums().rounds;
    let flows = stage.until(FLOW_LIMIT, |stage| stage.traffic().sums().rounds > before + 20);
    stage.came_within("streams flow", flows, FLOW_LIMIT);
    stage.stop_traffic()?;
    let sent = stage.until(SENT_LIMIT, |stage| unsent(stage).is_ok_and(|unsent| unsent == 0));
    stage.came_within("what is on the relay's disk is in the database", sent, SENT_LIMIT);
    judge(stage, &lives)?;
    bill::debited(stage)
}

fn judge(stage: &mut Stage<'_>, lives: &[Life]) -> anyhow::Result<()> {
    let mut reported = BTreeMap::new();
    for row in stage.network.ask("select relay_epoch, sum(bytes)::bigint from usage group by relay_epoch")? {
        let number =
            |column: usize| row.get(column).cloned().flatten().and_then(|text| text.parse::<u64>().ok());
        reported.insert(number(0).context("no epoch")?, number(1).context("no sum")?);
    }
    let (mut over, mut under) = (Vec::new(), Vec::new());
    let (mut carried, mut lost) = (0, 0);
    for life in lives {
        let reported = reported.get(&life.epoch).copied().unwrap_or(0);
        if reported > life.most {
            over.push(format!("{reported} of at most {}", life.most));
        }
        if reported < life.safe {
            under.push(format!("{reported} of at least {}", life.safe));
        }
        carried += life.moved;
        lost += life.moved.saturating_sub(reported);
    }
    stage.check(
        "starts for which more was reported than was carried",
        format!("{over:?}"),
        "none",
        over.is_empty(),
    );
    stage.check(
        "starts that lost more than their last moments",
        format!("{under:?}; {lost} of {carried} bytes lost in all"),
        format!("none beyond {USAGE_INTERVAL_MS} ms of use, the time of a write, and what is under way"),
        under.is_empty(),
    );
    let looked_at = lives.iter().filter(|life| life.safe > 0).count();
    stage.check(
        "starts that carried something before their last moments",
        looked_at,
        format!("at least {}", lives.len() / 5),
        looked_at >= lives.len() / 5,
    );
    Ok(())
}

/// The start that runs now, by its journal.
fn epoch(stage: &Stage<'_>) -> anyhow::Result<u64> {
    journals(stage)?.into_iter().map(|(epoch, _)| epoch).max().context("the relay has no journal")
}

/// Bytes of journals that the database has not taken.
fn unsent(stage: &Stage<'_>) -> anyhow::Result<u64> {
    Ok(journals(stage)?.into_iter().map(|(_, bytes)| bytes).sum())
}

/// `usage-EPOCH.journal` of each start, and its length.
fn journals(stage: &Stage<'_>) -> anyhow::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(stage.network.file("relay-0"))? {
        let entry = entry?;
        let name = entry.file_name();
        let epoch = name
            .to_str()
            .and_then(|name| name.strip_prefix("usage-")?.strip_suffix(".journal")?.parse().ok());
        if let Some(epoch) = epoch {
            // It may be sent, and removed, just now.
            found.push((epoch, entry.metadata().map_or(0, |metadata| metadata.len())));
        }
    }
    Ok(found)
}

/// How often PostgreSQL is stopped.
const SHORT_STOPS: u32 = 4;
const LONG_STOPS: u32 = 60;
/// The longest that it is gone, and that it runs in between, ms.
const LONGEST_GONE_MS: u64 = 4_000;

pub(super) fn database(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let stops = if stage.is_long() { LONG_STOPS } else { SHORT_STOPS };
    let mut random = fastrand::Rng::with_seed(stage.seed());
    let broken = stage.traffic().sums().broken;
    stage.event(format!("PostgreSQL is stopped {stops} times, in order or not"));
    for _ in 0..stops {
        stage.pass(Duration::from_millis(random.u64(..LONGEST_GONE_MS)));
        let mode = if random.bool() { StopMode::Fast } else { StopMode::Immediate };
        stage.network.postgres.stop(mode)?;
        stage.pass(Duration::from_millis(random.u64(..LONGEST_GONE_MS)));
        stage.network.postgres.start_again()?;
    }
    stage.event("it stays");
    stage.pass(Duration::from_secs(2));
    let broken = stage.traffic().sums().broken - broken;
    stage.at_most("streams that broke", broken, 0);
    stage.stop_traffic()?;
    let sent = stage.until(SENT_LIMIT, |stage| unsent(stage).is_ok_and(|unsent| unsent == 0));
    stage.came_within("what is on the relay's disk is in the database", sent, SENT_LIMIT);
    let sums = stage.traffic().sums();
    let most = sums.bytes + sums.rounds * ROUND_BYTES + sums.streams * STREAM_BYTES;
    let reported = stage.network.number("select sum(bytes)::bigint from usage")?.unwrap_or_default();
    let is_right = u64::try_from(reported).is_ok_and(|reported| (sums.bytes..=most).contains(&reported));
    stage.check(
        "bytes reported by the relay",
        reported,
        format!("between {} (moved by customers) and {most} (with the seal)", sums.bytes),
        is_right,
    );
    bill::debited(stage)
}
