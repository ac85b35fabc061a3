//! The recurring work on the database: settles contracts that are over, charges late reports, sweeps what is past its keep,
//! builds the pools of providers.
//!
//! Each kind of work has a lane of its own: one that fails, or has much to do, does not hold up the others. A turn is
//! bounded; what it leaves is found by the next one, in this process or another.

mod lane;
mod lanes;
mod pools;
mod relays;

use std::future::Future;
use std::path::Path;

use serde::Deserialize;
use store::{ConfigError, DatabaseConfig, DatabaseConfigError};
use trust::NetworkId;

use lane::Lane;
use relays::Watch;
use uuid::Uuid;

/// `worker.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The network's name.
    pub network: NetworkId,
    /// How often contracts that are due are looked for, ms.
    #[serde(default = "settle_every_ms")]
    pub settle_every_ms: u64,
    /// How often reports that came late are looked for, ms.
    #[serde(default = "late_every_ms")]
    pub late_every_ms: u64,
    /// How often relays beat: their `beat_interval_ms`. Everything that is said of a silent one is a multiple of it.
    #[serde(default = "relay_beat_ms")]
    pub relay_beat_ms: u64,
    /// How often rows past their keep are looked for, ms.
    #[serde(default = "sweep_every_ms")]
    pub sweep_every_ms: u64,
    /// The longest time between two looks at who is connected, to build pools from, ms; a small network is looked at more often.
    #[serde(default = "pools_every_ms")]
    pub pools_every_ms: u64,
    /// If many relays have not beaten for this long, ms, no pools are published.
    #[serde(default = "relay_silence_ms")]
    pub relay_silence_ms: u64,
    /// The way to the database.
    pub database: DatabaseConfig,
}

impl Config {
    /// All defaults.
    #[must_use]
    pub fn new(network: NetworkId, database: DatabaseConfig) -> Self {
        Self {
            network,
            settle_every_ms: settle_every_ms(),
            late_every_ms: late_every_ms(),
            relay_beat_ms: relay_beat_ms(),
            sweep_every_ms: sweep_every_ms(),
            pools_every_ms: pools_every_ms(),
            relay_silence_ms: relay_silence_ms(),
            database,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        store::config::read_toml(path)
    }
}

fn settle_every_ms() -> u64 {
    1_000
}

fn late_every_ms() -> u64 {
    15_000
}

fn relay_beat_ms() -> u64 {
    5_000
}

fn sweep_every_ms() -> u64 {
    60_000
}

fn pools_every_ms() -> u64 {
    30_000
}

fn relay_silence_ms() -> u64 {
    30_000
}

/// Works until `shutdown`. A turn that is under way is cancelled and rolled back.
///
/// # Errors
/// The way to the database makes no sense. A database that is not there is no reason to stop.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), DatabaseConfigError> {
    let store = config.database.open(config.network)?;
    tracing::info!(network = %config.network, "worker up");
    let settle = Lane::new("settle", config.settle_every_ms);
    let late = Lane::new("late reports", config.late_every_ms);
    let sweep = Lane::new("sweep", config.sweep_every_ms);
    let pools = Lane::new("pools", pools::LEAST_EVERY_MS.min(config.pools_every_ms));
    let builder = pools::Builder::new(config.relay_silence_ms, config.pools_every_ms);
    let watch = Watch::new(store.clone(), Uuid::new_v4(), config.relay_beat_ms);
    let relays = Lane::new("relays", watch.look_every_ms());
    tokio::select! {
        () = settle.run(|| lanes::settle(&store)) => {}
        () = late.run(|| lanes::late(&store)) => {}
        () = sweep.run(|| lanes::sweep(&store)) => {}
        () = pools.run(|| builder.turn(&store, watch.holds_for_many())) => {}
        () = watch.run() => {}
        () = relays.run(|| watch.judge()) => {}
        () = shutdown => {}
    }
    store.pool().close();
    tracing::info!("worker down");
    Ok(())
}
