//! The cache is gone, or its slots move: what it costs is freshness, and no more than that.
//!
//! What is looked at is how long a revoked provider stays: whoever hears a hint sends it away at once, whoever does not reads
//! by himself within the interval.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::stage::Stage;
use crate::network::{CachePlace, CacheServers, NetworkOptions};
use crate::redis::{PrivateRedis, RedisCluster};

/// Heard by a hint: no more often than every 2 s is read, and a provider's status is asked now and then.
const HINT_LIMIT: Duration = Duration::from_secs(5);
/// Heard without one: the interval of reading, with room.
const INTERVAL_LIMIT: Duration = Duration::from_secs(15);
/// A listener finds its server again within this time after it came back (5 s at most between two attempts).
const LISTEN_LIMIT: Duration = Duration::from_secs(12);
/// A provider that joins is connected within this time.
const JOIN_LIMIT: Duration = Duration::from_secs(20);
/// How long each fault lasts.
const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(120);
/// Moves of a slot.
const MOVES: usize = 3;

/// Two relays that listen, and an api that publishes.
pub(super) fn single(options: &mut NetworkOptions) {
    options.relays = 1;
    options.providers = 2;
    options.cache = CachePlace::Single;
}

/// The same with a Cluster of three.
pub(super) fn cluster(options: &mut NetworkOptions) {
    options.relays = 1;
    options.providers = 2;
    options.cache = CachePlace::Cluster(3);
}

pub(super) fn gone(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let span = stage.span(SHORT, LONG);
    let before = Before::look(stage);
    listeners(stage, LISTEN_LIMIT, &|stage| redis(stage).map(heard_by))?;
    revoke(stage, "with Redis", HINT_LIMIT)?;

    stage.event("Redis is killed");
    redis_mut(stage)?.kill()?;
    stage.pass(span);
    revoke(stage, "without Redis", INTERVAL_LIMIT)?;
    before.compare(stage, "while Redis was gone");

    stage.event("Redis is back, and empty");
    redis_mut(stage)?.start_again()?;
    listeners(stage, LISTEN_LIMIT, &|stage| redis(stage).map(heard_by))?;
    revoke(stage, "with Redis back", HINT_LIMIT)?;

    stage.event("Redis is stopped where it stands");
    redis_mut(stage)?.pause()?;
    stage.pass(span);
    revoke(stage, "with Redis stopped", INTERVAL_LIMIT)?;
    before.compare(stage, "while Redis was stopped");

    stage.event("Redis goes on");
    redis_mut(stage)?.resume()?;
    listeners(stage, LISTEN_LIMIT, &|stage| redis(stage).map(heard_by))?;
    revoke(stage, "with Redis going on", HINT_LIMIT)?;
    before.compare(stage, "in the whole drill");
    Ok(())
}

pub(super) fn slot_moved(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let before = Before::look(stage);
    listeners(stage, LISTEN_LIMIT, &|stage| redis_cluster(stage).map(heard_somewhere))?;
    for round in 1..=MOVES {
        let cluster = redis_cluster(stage)?;
        let (from, channel) = cluster
            .nodes()
            .iter()
            .enumerate()
            .find_map(|(number, node)| Some((number, channel(node)?)))
            .context("nobody listens")?;
        let slot: u16 = cluster.node(from).command(&["CLUSTER", "KEYSLOT", &channel])?.parse()?;
        let to = (from + 1) % cluster.nodes().len();
        stage.event(format!("slot {slot} moves from node {from} to node {to}"));
        redis_cluster(stage)?.move_slot(slot, to)?;
        // The listeners have said nothing all the time: no command of theirs could have told them.
        listeners(stage, HINT_LIMIT, &|stage| {
            redis_cluster(stage).map(|cluster| heard_by(cluster.node(to)))
        })?;
        revoke(stage, &format!("after move {round}"), HINT_LIMIT)?;
    }
    before.compare(stage, "while slots moved");
    Ok(())
}

/// What must not change.
struct Before {
    broken: u64,
    refused: u64,
    connections: [u64; 2],
}

impl Before {
    fn look(stage: &Stage<'_>) -> Self {
        let sums = stage.traffic().sums();
        let connections = [0, 1].map(|number| stage.network.provider_connections(number));
        Self { broken: sums.broken, refused: stage.traffic().refused().len() as u64, connections }
    }

    fn compare(&self, stage: &mut Stage<'_>, when: &str) {
        let now = Self::look(stage);
        stage.at_most(&format!("streams that broke {when}"), now.broken - self.broken, 0);
        stage.at_most(&format!("streams that were refused {when}"), now.refused - self.refused, 0);
        let again =
            now.connections.iter().zip(self.connections).map(|(now, before)| now.saturating_sub(before));
        stage.at_most(&format!("times that a provider had to connect again {when}"), again.sum(), 0);
        let signed_in = stage.network.customer().sign_in();
        let said = signed_in
            .as_ref()
            .map_or_else(|error| format!("{error:#}"), |took| format!("{} ms", took.as_millis()));
        stage.check(&format!("people sign in {when}"), said, "they do", signed_in.is_ok());
    }
}

/// A provider joins and is revoked; how long it stays.
fn revoke(stage: &mut Stage<'_>, when: &str, limit: Duration) -> anyhow::Result<()> {
    let number = stage.network.join_provider()?;
    let connected = stage.until(JOIN_LIMIT, |stage| link_state(stage, number) == "connected");
    if connected.is_none() {
        bail!("a new provider did not connect {when}");
    }
    stage.network.customer().revoke(&format!("provider-{number}"))?;
    let gone = stage.until(limit * 2, |stage| link_state(stage, number) != "connected");
    stage.came_within(&format!("a revoked provider is sent away {when}"), gone, limit);
    stage.network.providers[number].kill();
    Ok(())
}

fn link_state(stage: &Stage<'_>, number: usize) -> String {
    stage.network.provider_status(number)["link"]["state"].as_str().unwrap_or_default().to_owned()
}

/// Waits until api and relay listen where they should.
fn listeners(
    stage: &mut Stage<'_>,
    limit: Duration,
    count: &dyn Fn(&Stage<'_>) -> anyhow::Result<u64>,
) -> anyhow::Result<()> {
    let expected = 1 + stage.network.relays.len() as u64;
    // A count of an earlier server would be one of another network.
    count(stage)?;
    let there = stage.until(limit, |stage| count(stage).is_ok_and(|listeners| listeners == expected));
    stage.came_within(&format!("all {expected} listen"), there, limit);
    Ok(())
}

/// Who listens at a server, by its own word.
fn heard_by(server: &PrivateRedis) -> u64 {
    let info = server.command(&["INFO", "clients"]).unwrap_or_default();
    let line = info.lines().find_map(|line| line.trim().strip_prefix("pubsub_clients:"));
    let pubsub = line.and_then(|count| count.parse().ok());
    pubsub.unwrap_or_else(|| subscribers(server))
}

/// Where the server does not count them (before 7.2).
fn subscribers(server: &PrivateRedis) -> u64 {
    let clients = server.command(&["CLIENT", "LIST"]).unwrap_or_default();
    let listens = |client: &&str| {
        client.split(' ').any(|field| {
            let count = field.strip_prefix("ssub=").or_else(|| field.strip_prefix("sub="));
            count.is_some_and(|count| count != "0")
        })
    };
    clients.lines().filter(listens).count() as u64
}

fn heard_somewhere(cluster: &RedisCluster) -> u64 {
    cluster.nodes().iter().map(heard_by).sum()
}

/// The sharded channel that somebody listens to at a node.
fn channel(node: &PrivateRedis) -> Option<String> {
    let channels = node.command(&["PUBSUB", "SHARDCHANNELS", "holdfast:*:hint:changes"]).ok()?;
    channels.lines().next().map(str::to_owned).filter(|channel| !channel.is_empty())
}

fn redis<'s>(stage: &'s Stage<'_>) -> anyhow::Result<&'s PrivateRedis> {
    match &stage.network.cache {
        CacheServers::Single(redis) => Ok(redis),
        CacheServers::None | CacheServers::Cluster(_) => bail!("there is no single Redis"),
    }
}

fn redis_mut<'s>(stage: &'s mut Stage<'_>) -> anyhow::Result<&'s mut PrivateRedis> {
    match &mut stage.network.cache {
        CacheServers::Single(redis) => Ok(redis),
        CacheServers::None | CacheServers::Cluster(_) => bail!("there is no single Redis"),
    }
}

fn redis_cluster<'s>(stage: &'s Stage<'_>) -> anyhow::Result<&'s RedisCluster> {
    match &stage.network.cache {
        CacheServers::Cluster(cluster) => Ok(cluster),
        CacheServers::None | CacheServers::Single(_) => bail!("there is no Cluster"),
    }
}
