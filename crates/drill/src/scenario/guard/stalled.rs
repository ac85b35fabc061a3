//! The day on which 24 of 32 pools lost every server connection, then 31.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Plan, good_share, seconds};
use crate::guard::figures::answered_share;
use crate::guard::{GuardStage, Outcome, POOL_SIZE, Record, SideOptions, percent};
use crate::relay::{Cut, Relay};

const POOLS: usize = 32;
/// How many pools lead to the server by the first path, and how many by the second; one is left.
const BY_PATH: [usize; 2] = [24, 7];
/// Servers of a pool.
const SERVERS: u32 = 2;
/// Small pools need room: callers of two servers meet each other by chance.
const LOAD: f64 = 0.5;
/// A login takes so much longer after the loss.
const SLOW_LOGIN: Duration = Duration::from_millis(50);

pub(in crate::scenario) fn size(options: &mut SideOptions) {
    let path = |number: usize| match number {
        number if number < BY_PATH[0] => 0,
        number if number < BY_PATH[0] + BY_PATH[1] => 1,
        _ => 2,
    };
    options.pools = (0..POOLS).map(|number| (format!("pool{number:02}"), path(number))).collect();
    options.paths = 3;
    options.pool_size = SERVERS;
    // As much as the other drills ask for, over 32 pools.
    options.query_ms = options.query_ms * u64::from(options.servers()) / u64::from(POOL_SIZE);
}

pub(in crate::scenario) fn pools(stage: &mut GuardStage<'_>) -> anyhow::Result<()> {
    let stall = stage.spans().patience + stage.of(Duration::from_millis(500), Duration::from_secs(5));
    let after = stage.of(Duration::from_secs(6), Duration::from_secs(65));
    stage.begin(&Plan::steady(LOAD))?;
    stage.pass(stage.spans().warm_up);
    let mut waves = Vec::new();
    for (paths, hit) in [(1, BY_PATH[0]), (2, BY_PATH[0] + BY_PATH[1])] {
        let from = stage.event(format!("{hit} of {POOLS} pools stall"));
        stage.each(|side| {
            side.paths.iter().take(paths).for_each(Relay::freeze);
            Ok(())
        })?;
        stage.pass(stall);
        stage.each(|side| {
            for path in side.paths.iter().take(paths) {
                path.delay_new(SLOW_LOGIN);
                path.cut(Cut::Close);
                path.thaw();
            }
            Ok(())
        })?;
        let healed =
            stage.event(format!("and lose every connection; logins take {} ms more", SLOW_LOGIN.as_millis()));
        stage.pass(after);
        waves.push((hit, from, healed, stage.now()));
    }
    stage.end_load()?;
    let share = good_share(stage);
    let limit = stage.of(Duration::from_secs(5), Duration::from_secs(60));
    for (hit, from, healed, until) in waves {
        stage.score(
            &format!("the last of the {hit} pools that were hit answers again"),
            format!("within {} s", limit.as_secs()),
            |records| {
                let last = last_back(records, hit, healed, until);
                (seconds(last), last.is_some_and(|last| last <= limit))
            },
        );
        let tail = until - (until - healed) / 2..until;
        stage.score(
            &format!("the {hit} pools that were hit, in the second half of the time after"),
            format!("at least {} answered in time", percent(share)),
            |records| {
                let seen = answered_share(&of_pools(records, 0..hit), &tail);
                (percent(seen), seen >= share)
            },
        );
        stage.score(
            &format!("the other pools, while {hit} were hit"),
            format!("at least {} answered in time", percent(share)),
            |records| {
                let seen = answered_share(&of_pools(records, hit..POOLS), &(from..until));
                (percent(seen), seen >= share)
            },
        );
    }
    Ok(())
}

fn of_pools(records: &[Record], pools: std::ops::Range<usize>) -> Vec<Record> {
    records.iter().filter(|record| pools.contains(&usize::from(record.database))).copied().collect()
}

/// When the last of the pools that were hit has answered a request of after the loss; none if one has not.
fn last_back(records: &[Record], hit: usize, healed: Duration, until: Duration) -> Option<Duration> {
    let mut first: BTreeMap<u16, Duration> = BTreeMap::new();
    let good = records.iter().filter(|record| record.outcome == Outcome::Good);
    for record in good.filter(|record| usize::from(record.database) < hit) {
        let end = record.at + record.took;
        if record.at >= healed && end <= until {
            first.entry(record.database).and_modify(|known| *known = end.min(*known)).or_insert(end);
        }
    }
    let last = first.values().max()?;
    (first.len() == hit).then(|| *last - healed)
}
