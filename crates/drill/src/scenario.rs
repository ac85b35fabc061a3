//! Drills: a network under traffic, a fault, and a score of what became of it. Each is bounded in time.
//!
//! A scenario is a function over a [`Stage`]; the list is [`ALL`].

mod bill;
mod cache;
mod database;
mod guard;
mod keys;
mod killed;
mod membership;
mod partition;
mod picture;
mod pools;
mod report;
mod restarts;
mod stage;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};

pub(crate) use picture::escaped;
pub use report::{Check, Event, Report, View};
pub use stage::{Progress, Stage};

use crate::guard::{GuardStage, SideOptions};
use crate::namespaces::Namespaces;
use crate::network::NetworkOptions;
use crate::peer::PoolerProgram;
use stage::Wishes;

/// How a drill is run.
#[derive(Clone, Debug)]
pub struct DrillOptions {
    /// The `holdfast` program that is drilled.
    pub program: PathBuf,
    /// The long form: minutes instead of seconds.
    pub long: bool,
    /// What is random follows from it.
    pub seed: u64,
    /// Poolers to compare with, in the drills that poolers run side by side.
    pub peers: Vec<PoolerProgram>,
    /// In those drills: holdfast's `overload_policy`; none: its default in TOML.
    pub policy: Option<String>,
}

/// A drill.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What happens and what must hold, in a sentence.
    pub about: &'static str,
    /// Seconds of the short form, roughly.
    pub seconds: u32,
    run: Run,
}

type Steps = fn(&mut Stage<'_>) -> anyhow::Result<()>;

#[derive(Clone, Copy, Debug)]
enum Run {
    /// On a network of this size, under traffic.
    OnNetwork { size: fn(&mut NetworkOptions), run: Steps },
    /// The same, with each relay, proxy and provider in a network namespace of its own.
    InNamespaces {
        size: fn(&mut NetworkOptions),
        /// What the wire is like while the network comes up.
        wire: fn(&NetworkOptions) -> anyhow::Result<()>,
        wishes: Wishes,
        run: Steps,
    },
    /// On poolers side by side.
    OnPoolers { size: fn(&mut SideOptions), run: fn(&mut GuardStage<'_>) -> anyhow::Result<()> },
}

/// Every drill there is.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "database-gone",
        about: "PostgreSQL is stopped under traffic: no stream breaks, no provider goes, nothing is removed or charged twice",
        seconds: 90,
        run: Run::OnNetwork { size: database::size, run: database::gone },
    },
    Scenario {
        name: "pooler-gone",
        about: "the pooler is killed under traffic: the same must hold",
        seconds: 90,
        run: Run::OnNetwork { size: database::size, run: database::pooler_gone },
    },
    Scenario {
        name: "pooler-stalled",
        about: "every way from the pooler to PostgreSQL freezes, then goes on: the same must hold",
        seconds: 90,
        run: Run::OnNetwork { size: database::size, run: database::pooler_stalled },
    },
    Scenario {
        name: "database-slow",
        about: "every statement takes 2 to 10 s: no provider goes, and the load on the database does not grow",
        seconds: 90,
        run: Run::OnNetwork { size: database::size, run: database::slow },
    },
    Scenario {
        name: "start-without-database",
        about: "every role is killed while PostgreSQL is gone, and starts without it: known providers carry streams",
        seconds: 60,
        run: Run::OnNetwork { size: database::size, run: database::start_without },
    },
    Scenario {
        name: "rebuild-stopped",
        about: "nobody builds lists of providers: they stay, are said to be stale, and are never lists of the dead",
        seconds: 70,
        run: Run::OnNetwork { size: pools::size, run: pools::rebuild_stopped },
    },
    Scenario {
        name: "redis-gone",
        about: "Redis is killed, comes back empty, and is stopped under traffic: only freshness is lost, and comes back",
        seconds: 90,
        run: Run::OnNetwork { size: cache::single, run: cache::gone },
    },
    Scenario {
        name: "slot-moved",
        about: "the slot of the hints moves from node to node under idle listeners: the next change is heard all the same",
        seconds: 60,
        run: Run::OnNetwork { size: cache::cluster, run: cache::slot_moved },
    },
    Scenario {
        name: "reconnect-storm",
        about: "a relay with many providers is killed: all come back, spread, and streams flow again",
        seconds: 60,
        run: Run::OnNetwork { size: database::size, run: database::reconnect_storm },
    },
    Scenario {
        name: "relay-killed",
        about: "a relay is killed at 10 seeded points (200 in the long form): little use is lost, and none charged twice",
        seconds: 60,
        run: Run::OnNetwork { size: killed::size, run: killed::relay },
    },
    Scenario {
        name: "database-restarts",
        about: "PostgreSQL is stopped and started under traffic: every byte is billed, once",
        seconds: 50,
        run: Run::OnNetwork { size: killed::size, run: killed::database },
    },
    Scenario {
        name: "key-rotation",
        about: "the token key is rotated while clients refresh and dial, and a relay has died: no token is refused, no session ends",
        seconds: 90,
        run: Run::OnNetwork { size: keys::size, run: keys::rotation },
    },
    Scenario {
        name: "revoked-client",
        about: "providers are revoked and disabled: put out within an interval, refused from memory, also without a database",
        seconds: 90,
        run: Run::OnNetwork { size: keys::size, run: keys::revoked },
    },
    Scenario {
        name: "everyone-late",
        about: "no beat of any relay arrives while the worker reaches the database: nobody is removed, and a hold is reported",
        seconds: 120,
        run: Run::OnNetwork { size: membership::two, run: membership::everyone_late },
    },
    Scenario {
        name: "one-relay-dead",
        about: "one of ten relays is killed: it is removed, with its clients, and nobody else is",
        seconds: 90,
        run: Run::OnNetwork { size: membership::ten, run: membership::one_dead },
    },
    Scenario {
        name: "one-of-two-dead",
        about: "one of two relays is killed: the same must hold",
        seconds: 90,
        run: Run::OnNetwork { size: membership::two, run: membership::one_dead },
    },
    Scenario {
        name: "record-deleted",
        about: "what the database knows of relays and their clients is deleted: it is back within a beat, and nobody notices",
        seconds: 40,
        run: Run::OnNetwork { size: membership::two, run: membership::record_deleted },
    },
    Scenario {
        name: "rolling-restart",
        about: "three relays are drained and started again, one after the other, under traffic: no new stream is refused",
        seconds: 60,
        run: Run::OnNetwork { size: restarts::size, run: restarts::rolling },
    },
    Scenario {
        name: "partitioned",
        about: "in network namespaces: relays, proxies and providers are parted, in one direction too, and the wire loses packets: \
                streams of one side go on, and each provider has one relay afterwards",
        seconds: 120,
        run: Run::InNamespaces {
            size: partition::size,
            wire: partition::sides_at_start,
            wishes: partition::own_side,
            run: partition::run,
        },
    },
    Scenario {
        name: "stalled-pools",
        about: "24 of 32 pools stall and lose every connection, then 31: each serves again, and the others never stop",
        seconds: 20,
        run: Run::OnPoolers { size: guard::stalled::size, run: guard::stalled::pools },
    },
    Scenario {
        name: "slow-database",
        about: "the database gets four times slower under full load, and callers try again: all is as before once it is fast",
        seconds: 18,
        run: Run::OnPoolers { size: guard::one_pool, run: guard::slow },
    },
    Scenario {
        name: "frozen-database",
        about: "every process of PostgreSQL stands still under full load, then goes on: so does the pool, at once",
        seconds: 14,
        run: Run::OnPoolers { size: guard::one_pool, run: guard::frozen },
    },
    Scenario {
        name: "restart",
        about: "PostgreSQL restarts, and stalls as it comes back: it is not stormed, and callers are served within seconds",
        seconds: 16,
        run: Run::OnPoolers { size: guard::one_pool, run: guard::restart },
    },
    Scenario {
        name: "overload-loop",
        about: "twice the load that the database carries, with callers that try again, then the usual load: it is usual again",
        seconds: 16,
        run: Run::OnPoolers { size: guard::one_pool, run: guard::overload::load_loop },
    },
    Scenario {
        name: "dying-clients",
        about: "callers leave while they wait, at BEGIN and in statements: the next one is served, and no server connection is lost",
        seconds: 16,
        run: Run::OnPoolers { size: guard::one_pool, run: guard::dying::clients },
    },
    Scenario {
        name: "waiting-migration",
        about: "a report reads a table, an ALTER TABLE waits for it, and readers behind that: all else goes on, and the migration ends",
        seconds: 15,
        run: Run::OnPoolers { size: guard::migration::size, run: guard::migration::waiting },
    },
];

/// The drill of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// Runs it; `progress` is told what happens now.
    ///
    /// # Errors
    /// It could not be run: PostgreSQL is missing, a role did not come up. What it finds is in the report.
    pub fn run(&self, options: &DrillOptions, progress: Progress<'_>) -> anyhow::Result<Report> {
        let mut network = NetworkOptions::new(&options.program);
        match self.run {
            Run::OnNetwork { size, run } => {
                size(&mut network);
                self.on(options, network, stage::anything, run, progress)
            }
            Run::InNamespaces { size, wire, wishes, run } => {
                if let Some(missing) = Namespaces::missing() {
                    bail!("{} cannot be run here: {missing}", self.name);
                }
                size(&mut network);
                let namespaces = Namespaces::make(u8::try_from(network.sites())?)?;
                network.namespaces = Some(Arc::clone(&namespaces));
                wire(&network)?;
                namespaces.site(1).within(|| self.on(options, network, wishes, run, progress))
            }
            Run::OnPoolers { size, run } => {
                let mut stage = GuardStage::build(self.name, options, size, progress)?;
                run(&mut stage).with_context(|| format!("{} could not go on", self.name))?;
                self.with_checks(stage.finish()?)
            }
        }
    }

    fn on(
        &self,
        options: &DrillOptions,
        network: NetworkOptions,
        wishes: Wishes,
        run: Steps,
        progress: Progress<'_>,
    ) -> anyhow::Result<Report> {
        let mut stage = Stage::build(self.name, options, network, wishes, progress)?;
        let result = run(&mut stage);
        let report = stage.finish();
        result.with_context(|| format!("{} could not go on; so far:\n{}", self.name, report.table()))?;
        self.with_checks(report)
    }

    fn with_checks(&self, report: Report) -> anyhow::Result<Report> {
        if report.checks.is_empty() {
            bail!("{} has looked at nothing", self.name);
        }
        Ok(report)
    }

    /// What it needs and is not here, if something is.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        match self.run {
            Run::OnNetwork { .. } | Run::OnPoolers { .. } => None,
            Run::InNamespaces { .. } => Namespaces::missing(),
        }
    }
}
