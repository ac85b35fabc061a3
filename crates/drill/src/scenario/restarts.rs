//! Relays that are restarted one after the other, as an operator does it: nobody new is refused.

use std::time::Duration;

use super::stage::Stage;
use crate::network::NetworkOptions;

const RELAYS: usize = 3;
/// Clients of a relay that drains go elsewhere within this time.
const SPREAD_MS: u64 = 1_000;
/// Streams that stand have so long; those of the drill never end by themselves.
const DEADLINE_MS: u64 = 6_000;
/// A relay that drains has ended within this time.
const END_LIMIT: Duration = Duration::from_secs(30);
/// One that has been started has links to the others within this time.
const UP_LIMIT: Duration = Duration::from_secs(30);
/// Customers go on for a while after each.
const BETWEEN: Duration = Duration::from_secs(2);

pub(super) fn size(options: &mut NetworkOptions) {
    options.relays = RELAYS;
    options.proxies = 2;
    options.providers = 3;
    options.relay_lines = format!("drain_spread_ms = {SPREAD_MS}\ndrain_deadline_ms = {DEADLINE_MS}");
}

pub(super) fn rolling(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let before = stage.traffic().sums();
    for number in 0..RELAYS {
        stage.event(format_args!("relay-{number} drains, ends, and is started again"));
        stage.network.relays[number].stop(END_LIMIT)?;
        stage.network.relays[number].start()?;
        let linked = stage.until(UP_LIMIT, |stage| beats(stage) == Some(RELAYS as i64));
        stage.came_within(&format!("relay-{number} beats again"), linked, UP_LIMIT);
        stage.pass(BETWEEN);
    }
    let after = stage.traffic().sums();
    stage.at_most("streams refused", after.refused - before.refused, 0);
    let opened = after.opened - before.opened;
    stage.check("new streams meanwhile", opened, "more than 0", opened > 0);
    // Those that stood at a relay's deadline were cut by it: each once for each relay at most.
    stage.at_most("streams that the deadline cut", after.broken - before.broken, before.held * RELAYS as u64);
    let removed = stage.network.number("select count(*) from relay_verdict where removed_at is not null")?;
    stage.check("relays removed", removed.unwrap_or(-1), "0", removed == Some(0));
    let providers = stage.network.providers.len();
    let connections: Vec<u64> =
        (0..providers).map(|number| stage.network.provider_connections(number)).collect();
    let moves = connections.iter().sum::<u64>().saturating_sub(providers as u64);
    stage.check("moves of providers", moves, "more than 0", moves > 0);
    for (number, connections) in connections.into_iter().enumerate() {
        stage.at_most(&format!("connections of provider-{number}"), connections, 1 + RELAYS as u64);
    }
    Ok(())
}

/// Relays that have beaten since a moment ago, and do not drain.
fn beats(stage: &Stage<'_>) -> Option<i64> {
    let sql = "select count(*) from relay_beat where not draining and beat_at > now() - interval '6 s'";
    stage.network.number(sql).ok().flatten()
}
