//! Relays that are late, gone, or forgotten by their database: who is removed, and who is not.

use std::time::Duration;

use anyhow::Context as _;

use super::database::{Before, HELD};
use super::stage::Stage;
use crate::network::NetworkOptions;

/// Relays beat five times as often as they do by default, so that what takes minutes takes seconds.
const BEAT: Duration = Duration::from_millis(1_000);
/// Three minutes of the default beat.
const REMOVED_LIMIT: Duration = Duration::from_secs(36);
/// A relay may be dead after so long, if nobody can confirm it.
const DEAD_AFTER: Duration = Duration::from_secs(27);
/// A hold is reported once relays are late, and ends with the look that sees them back.
const HOLD_LIMIT: Duration = Duration::from_secs(20);
/// One beat, and the look of whoever watches.
const BACK_LIMIT: Duration = Duration::from_secs(3);
/// A killed relay's streams are elsewhere within this time.
const FLOW_LIMIT: Duration = Duration::from_secs(60);

const DEAD: &str = "select count(*) from relay_verdict where removed_at is not null";
const HOLDS: &str =
    "select count(*) from worker_beat where hold is not null and beat_at > now() - interval '5 s'";

/// A worker that beats, and holds nobody: where none beats, nothing is said.
const FREE: &str = "select count(*) from worker_beat where hold is null and beat_at > now() - interval '5 s'";

pub(super) fn two(options: &mut NetworkOptions) {
    beats(options);
    options.relays = 2;
    options.providers = 4;
}

pub(super) fn ten(options: &mut NetworkOptions) {
    beats(options);
    options.relays = 10;
    options.providers = 4;
}

fn beats(options: &mut NetworkOptions) {
    options.proxies = 2;
    options.relay_lines = format!("beat_interval_ms = {}", BEAT.as_millis());
    options.worker_lines = format!("relay_beat_ms = {}", BEAT.as_millis());
}

/// The relays' way to the database is cut, and the worker's is not.
pub(super) fn everyone_late(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let relays = stage.network.relays.len() as u64;
    let before = Before::look(stage)?;
    stage.event("no beat of any relay arrives; the worker reaches the database");
    stage.network.paths.relays.iter().for_each(crate::relay::Relay::freeze);
    let held =
        stage.until(HOLD_LIMIT, |stage| stage.network.number(HOLDS).is_ok_and(|holds| holds == Some(1)));
    stage.came_within("a hold is reported", held, HOLD_LIMIT);
    stage.pass(stage.span(DEAD_AFTER * 2, Duration::from_secs(600)));
    removed(stage, 0)?;
    let recorded = number(stage, "select count(*) from relay_beat")?;
    stage.check("records of relays", recorded, relays, recorded == relays);
    let cause = stage.network.ask("select hold from worker_beat order by beat_at desc limit 1")?;
    let cause = cause.into_iter().flatten().next().flatten().unwrap_or_default();
    stage.check("the hold that is reported", &cause, "many_late", cause == "many_late");
    before.compare(stage)?;
    stage.event("beats arrive again");
    stage.network.paths.relays.iter().for_each(crate::relay::Relay::thaw);
    let over = stage.until(HOLD_LIMIT, |stage| stage.network.number(FREE).is_ok_and(|free| free == Some(1)));
    stage.came_within("the hold ends by itself", over, HOLD_LIMIT);
    stage.pass(DEAD_AFTER);
    removed(stage, 0)?;
    before.compare(stage)
}

/// The relay with the most providers is killed.
pub(super) fn one_dead(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    // The watch has to know everybody as alive.
    stage.pass(BEAT * 5);
    let sql = "select b.address from relay_beat b join connection l on l.relay = b.relay and l.relay_epoch = b.epoch
        where l.disconnected_at is null group by b.address order by count(*) desc limit 1";
    let address =
        stage.network.ask(sql)?.into_iter().flatten().next().flatten().context("nobody is connected")?;
    let busiest = stage
        .network
        .relays
        .iter()
        .position(|relay| relay.address().is_some_and(|at| at.to_string() == address))
        .context("no relay has the address of the record")?;
    stage.event(format!("the busiest of {} relays is killed", stage.network.relays.len()));
    stage.network.relays[busiest].kill();
    let dead = format!(
        "select count(*) from relay_verdict v join relay_beat b using (relay) where b.address = '{address}' \
         and v.state = 'dead' and v.epoch = b.epoch and v.beat_at >= b.beat_at"
    );
    let gone =
        stage.until(REMOVED_LIMIT, |stage| stage.network.number(&dead).is_ok_and(|dead| dead == Some(1)));
    stage.came_within("it is removed (three minutes of the default beat)", gone, REMOVED_LIMIT);
    removed(stage, 1)?;
    let flows = stage.until(FLOW_LIMIT, |stage| {
        let seconds = stage.traffic().seconds();
        stage.traffic().sums().held == HELD && seconds.iter().rev().take(2).all(|second| second.opened > 0)
    });
    stage.came_within("streams flow by the others", flows, FLOW_LIMIT);
    stage.event("it starts again");
    stage.network.relays[busiest].start()?;
    let back = stage.until(BACK_LIMIT, |stage| stage.network.number(&dead).is_ok_and(|dead| dead == Some(0)));
    stage.came_within("its first beat ends the verdict", back, BACK_LIMIT);
    removed(stage, 1)
}

/// What the database knows of relays and of those who are connected is deleted.
pub(super) fn record_deleted(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let live =
        "select count(*) from connection l join relay_beat b on b.relay = l.relay and b.epoch = l.relay_epoch
        where l.disconnected_at is null";
    let relays = number(stage, "select count(*) from relay_beat")?;
    let clients = number(stage, live)?;
    let before = Before::look(stage)?;
    for what in ["delete from relay_beat", "delete from relay_beat; delete from connection"] {
        stage.event(what);
        stage.network.ask(what)?;
        let back = stage.until(BACK_LIMIT, |stage| {
            let recorded = number(stage, "select count(*) from relay_beat");
            recorded.is_ok_and(|recorded| recorded == relays)
                && number(stage, live).is_ok_and(|connected| connected == clients)
        });
        stage.came_within("records of relays and clients are back with the next beat", back, BACK_LIMIT);
        stage.pass(BEAT * 3);
    }
    removed(stage, 0)?;
    before.compare(stage)
}

fn removed(stage: &mut Stage<'_>, most: u64) -> anyhow::Result<()> {
    let removed = number(stage, DEAD)?;
    stage.at_most("relays that were removed", removed, most);
    Ok(())
}

fn number(stage: &Stage<'_>, sql: &str) -> anyhow::Result<u64> {
    Ok(stage.network.number(sql)?.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
}
