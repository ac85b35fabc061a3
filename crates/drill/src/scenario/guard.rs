//! The guard's drills: poolers side by side, each before its own PostgreSQL, and something is done to that.

pub(super) mod dying;
pub(super) mod migration;
pub(super) mod overload;
pub(super) mod stalled;

use std::time::Duration;

use crate::guard::figures::normal_after;
use crate::guard::{GuardStage, Outcome, SideOptions, percent};
use crate::postgres::StopMode;
use crate::relay::{Direction, Relay};

pub(super) use crate::guard::Plan;

/// Load below which a database keeps up with some room.
pub(super) const FULL: f64 = 0.9;
/// Short forms run beside other tests on a busy machine: their bars are there to find what is broken. The long form has the
/// figures that are promised.
pub(super) const SHORT_SHARE: f64 = 0.8;
pub(super) const LONG_SHARE: f64 = 0.95;

pub(super) fn one_pool(_: &mut SideOptions) {}

/// The share of answers in time that counts as normal.
pub(super) fn good_share(stage: &GuardStage<'_>) -> f64 {
    stage.of(SHORT_SHARE, LONG_SHARE)
}

/// After a stall, all is as before within so long.
fn back_limit(stage: &GuardStage<'_>) -> Duration {
    stage.of(Duration::from_secs(4), Duration::from_secs(2))
}

/// Every process of PostgreSQL stands still (SIGSTOP), then goes on, under full load.
pub(super) fn frozen(stage: &mut GuardStage<'_>) -> anyhow::Result<()> {
    stage.begin(&Plan::steady(FULL))?;
    stage.pass(stage.spans().warm_up);
    let spans: &[u64] = stage.of(&[1_500], &[3_000, 30_000]);
    let after = stage.of(Duration::from_secs(6), Duration::from_secs(35));
    let mut stalls = Vec::new();
    let mut kept = Vec::new();
    for span_ms in spans {
        let before = stage.each(|side| side.backends())?;
        let from = stage.event("PostgreSQL is frozen");
        stage.each(|side| side.server.pause())?;
        stage.pass(Duration::from_millis(*span_ms));
        stage.each(|side| side.server.resume())?;
        let healed = stage.event("it goes on");
        stage.pass(after);
        let now = stage.each(|side| side.backends())?;
        stalls.push((from, healed));
        kept.push((before, now));
    }
    stage.end_load()?;
    let (share, limit) = (good_share(stage), back_limit(stage));
    let first = stalls.first().map_or(Duration::ZERO, |(from, _)| *from);
    stage.answered("answered in time before", &(Duration::ZERO..first), share);
    for (number, ((from, healed), (before, now))) in stalls.iter().zip(&kept).enumerate() {
        let stall = format!("a stall of {:.1} s", (*healed - *from).as_secs_f64());
        let until = stalls.get(number + 1).map_or_else(|| stage.end(), |(next, _)| *next);
        stage.score(
            &format!("after {stall}: {} answered in time, in each second", percent(share)),
            format!("within {} s", limit.as_secs()),
            |records| {
                let took = normal_after(records, *healed, until, share);
                (seconds(took), took.is_some_and(|took| took <= limit))
            },
        );
        stage.answered(
            &format!("answered in time from {} s after {stall} on", limit.as_secs()),
            &(*healed + limit..until),
            share,
        );
        let lost: Vec<usize> =
            before.iter().zip(now).map(|(before, now)| before.difference(now).count()).collect();
        // A stall longer than `cancel_wait_timeout` costs the connections whose callers have left.
        if *healed - *from < Duration::from_secs(10) {
            stage.score_each(&format!("server connections lost by {stall}"), 0, &lost, |lost| {
                (*lost, *lost == 0)
            });
        }
    }
    Ok(())
}

/// Each answer takes several times as long, for a while.
pub(super) fn slow(stage: &mut GuardStage<'_>) -> anyhow::Result<()> {
    // A quarter of the capacity is left.
    let delay = Duration::from_millis(3 * stage.spans().query_ms);
    let span = stage.of(Duration::from_secs(3), Duration::from_secs(60));
    stage.begin(&Plan { retries: 1, ..Plan::steady(FULL) })?;
    stage.pass(stage.spans().warm_up);
    let before = stage.each(|side| side.backends())?;
    let from = stage.event(format!("each answer of the database takes {} ms longer", delay.as_millis()));
    stage.each(|side| {
        side.paths.iter().for_each(|path| path.delay_bytes(Direction::Down, delay));
        Ok(())
    })?;
    stage.pass(span);
    stage.each(|side| {
        side.paths.iter().for_each(|path| path.delay_bytes(Direction::Down, Duration::ZERO));
        Ok(())
    })?;
    let healed = stage.event("it is as fast as before");
    stage.pass(stage.of(Duration::from_secs(8), Duration::from_secs(30)));
    let now = stage.each(|side| side.backends())?;
    stage.end_load()?;
    let share = good_share(stage);
    let limit = stage.of(Duration::from_secs(6), Duration::from_secs(10));
    stage.answered("answered in time before", &(Duration::ZERO..from), share);
    stage.normal_within("all is as before", healed, limit, share);
    let lost: Vec<usize> =
        before.iter().zip(&now).map(|(before, now)| before.difference(now).count()).collect();
    stage.score_each("server connections lost", 0, &lost, |lost| (*lost, *lost == 0));
    Ok(())
}

/// PostgreSQL restarts, and just as it is back, stalls once more.
pub(super) fn restart(stage: &mut GuardStage<'_>) -> anyhow::Result<()> {
    let down = stage.of(Duration::from_millis(1_000), Duration::from_secs(10));
    let stall = stage.spans().patience + Duration::from_millis(500);
    stage.begin(&Plan::steady(0.7))?;
    stage.pass(stage.spans().warm_up);
    let from = stage.event("PostgreSQL stops");
    let dials = stage.each(|side| Ok(side.dials()))?;
    stage.each(|side| side.server.stop(StopMode::Fast))?;
    stage.pass(down);
    let up = stage.now();
    let dialled = stage.each(|side| Ok(side.dials()))?;
    stage.each(|side| side.server.start_again())?;
    stage.event("PostgreSQL is back");
    stage.pass(Duration::from_secs(1));
    stage.event("and stalls");
    stage.each(|side| {
        side.paths.iter().for_each(Relay::freeze);
        Ok(())
    })?;
    stage.pass(stall);
    stage.each(|side| {
        side.paths.iter().for_each(Relay::thaw);
        Ok(())
    })?;
    let healed = stage.event("it goes on");
    stage.pass(stage.of(Duration::from_secs(6), Duration::from_secs(75)));
    stage.end_load()?;
    let share = stage.of(SHORT_SHARE, 0.99);
    let ramp = stage.of(Duration::from_secs(3), Duration::from_secs(15));
    let until = stage.end();
    let rates: Vec<f64> = dials
        .iter()
        .zip(&dialled)
        .map(|(before, after)| (after - before) as f64 / (up - from).as_secs_f64())
        .collect();
    // One probe at a time, 50 ms apart at first: 20 a second for whoever does not wait longer each time.
    stage.score_each("dials of the database while it is down, a second", "at most 25", &rates, |rate| {
        (format!("{rate:.1}"), *rate <= 25.0)
    });
    let span = healed + ramp..until;
    stage.score(
        &format!("answered within 1 s, from {} s after the stall on", ramp.as_secs()),
        format!("at least {}", percent(share)),
        |records| {
            let meant: Vec<_> = records.iter().filter(|record| span.contains(&record.at)).collect();
            let fast = meant
                .iter()
                .filter(|record| record.outcome == Outcome::Good && record.took <= Duration::from_secs(1));
            let seen = fast.count() as f64 / meant.len().max(1) as f64;
            (percent(seen), seen >= share && !meant.is_empty())
        },
    );
    stage.normal_within("all is as before", healed, ramp, good_share(stage));
    stage.answered("answered in time before", &(Duration::ZERO..from), good_share(stage));
    Ok(())
}

pub(super) fn seconds(took: Option<Duration>) -> String {
    took.map_or_else(|| "never".to_owned(), |took| format!("{:.1} s", took.as_secs_f64()))
}
