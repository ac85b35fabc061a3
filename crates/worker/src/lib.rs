//! The recurring work on the database: settles contracts that are over, charges late reports, sweeps what is past its keep,
//! builds the pools of providers.
//!
//! Each job is a task that recurs, in a lane with places of its own: one that fails, or has much to do, does not hold up the
//! others. A turn is bounded; what it leaves is found by the next one, in this process or another.

mod lanes;
mod pools;
mod relays;
mod runner;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use store::{ConfigError, DatabaseConfig, DatabaseConfigError, Store};
use trust::NetworkId;

use relays::Watch;
use runner::{Job, Left, Runner};
use tasks::Lane;
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
    /// A worker that dies keeps its tasks from the others for so long, ms; one that ends does not.
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
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
            lease_ms: lease_ms(),
            database,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let config: Self = store::config::read_toml(path)?;
        if config.lease_ms < LEAST_LEASE_MS {
            return Err(ConfigError::wrong(path, format!("lease_ms is less than {LEAST_LEASE_MS}")));
        }
        Ok(config)
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

fn lease_ms() -> u64 {
    30_000
}

fn relay_silence_ms() -> u64 {
    30_000
}

/// A lease that is shorter than this is over before the work that it is for, ms.
const LEAST_LEASE_MS: u64 = 3_000;
/// How often tasks that are due are moved to where they are claimed, ms.
const PROMOTE_EVERY_MS: u64 = 1_000;
/// How often connections of relays that are gone for good are looked for, ms.
const ORPHANS_EVERY_MS: u64 = 600_000;
/// How often partitions are made and dropped, ms. They are made for a day ahead.
const PARTITIONS_EVERY_MS: u64 = 600_000;

/// Works until `shutdown`. What is under way then is cancelled and rolled back, and handed back: another worker has it at once.
///
/// # Errors
/// The way to the database makes no sense. A database that is not there is no reason to stop.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), DatabaseConfigError> {
    let store = config.database.open(config.network)?;
    let worker = Uuid::new_v4();
    tracing::info!(network = %config.network, %worker, "worker up");
    let watch = Arc::new(Watch::new(store.clone(), worker, config.relay_beat_ms));
    let runner = Runner::new(store.clone(), worker, jobs(&config, &store, &watch), config.lease_ms);
    tokio::select! {
        () = runner.run(shutdown) => {}
        () = watch.run() => {}
    }
    store.pool().close();
    tracing::info!("worker down");
    Ok(())
}

/// The jobs that recur. Each is one row in the database, so workers share them, and none runs twice at once.
fn jobs(config: &Config, store: &Store, watch: &Arc<Watch>) -> Vec<Job> {
    let with = || store.clone();
    let builder = Arc::new(pools::Builder::new(config.relay_silence_ms, config.pools_every_ms));
    let pools_every_ms = pools::LEAST_EVERY_MS.min(config.pools_every_ms);
    let (judge, holds) = (Arc::clone(watch), Arc::clone(watch));
    vec![
        Job::new("settle", Lane::Ledger, config.settle_every_ms, with(), |store| async move {
            lanes::settle(&store).await
        }),
        Job::new("late_reports", Lane::Ledger, config.late_every_ms, with(), |store| async move {
            lanes::late(&store).await
        }),
        Job::new("judge_relays", Lane::Membership, watch.look_every_ms(), with(), move |_| {
            let judge = Arc::clone(&judge);
            async move { judge.judge().await }
        }),
        Job::new("pools", Lane::Pools, pools_every_ms, with(), move |store| {
            let (builder, holds) = (Arc::clone(&builder), holds.holds_for_many());
            async move { builder.turn(&store, holds).await }
        }),
        Job::new("sweep", Lane::Upkeep, config.sweep_every_ms, with(), |store| async move {
            lanes::sweep(&store).await
        }),
        Job::new("orphans", Lane::Upkeep, ORPHANS_EVERY_MS, with(), |store| async move {
            let connections = store.drop_orphaned_connections().await?;
            if connections > 0 {
                tracing::info!(connections, "connections of relays that are gone for good are dropped");
                return Ok(Left::More);
            }
            Ok(Left::Nothing)
        }),
        Job::new("promote_tasks", Lane::Upkeep, PROMOTE_EVERY_MS, with(), |store| async move {
            Ok(if store.promote_tasks().await? { Left::More } else { Left::Nothing })
        }),
        Job::new("partitions", Lane::Upkeep, PARTITIONS_EVERY_MS, with(), |store| async move {
            let (made, dropped) = store.keep_partitions().await?;
            if made + dropped > 0 {
                tracing::info!(made, dropped, "partitions of tasks");
            }
            Ok(Left::Nothing)
        }),
    ]
}
