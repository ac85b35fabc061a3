//! Does a pooler come back after the database stalls or drops it?
//!
//! Many clients each hold one connection through the pooler and send one query after another. A client that has no
//! answer within its patience closes its socket and connects afresh at once. At a given moment the link between pooler
//! and database is hurt, then healed. The report holds the answers a second before, during and after, and the seconds
//! from the healing until the rate is back.

mod bench;
mod load;
mod report;

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use bench::{BenchOptions, BenchReport, BenchRow, Progress, Variant, bench};
pub use report::{Latency, Second, StallReport};

use crate::postgres::{DATABASE, USER};
use crate::process;
use crate::relay::{Cut, Relay};
use crate::wire::{Address, ConnectOptions};
use load::{Load, Tally};
use report::Course;

/// What a client that gives up sends before it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bye {
    /// Terminate, as libpq does.
    Terminate,
    /// Nothing.
    None,
}

/// How the link to the database is hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Fault {
    /// Not at all.
    #[serde(rename = "none")]
    None,
    /// No byte passes until it is healed.
    #[serde(rename = "freeze")]
    Freeze,
    /// When it is healed, every connection is ended.
    #[serde(rename = "cut")]
    Cut,
    /// Both.
    #[serde(rename = "freeze+cut")]
    FreezeAndCut,
}

/// The scenario. The defaults are 400 clients with 5 s of patience, one query of 50 ms at a time, 50 ms for each new
/// connection to the database, and 3 s of freeze and cut between 12 s before and 60 s after.
#[derive(Clone, Debug)]
pub struct StallOptions {
    /// Where the pooler listens.
    pub pooler: Address,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, if one is asked for.
    pub password: Option<String>,
    /// Clients.
    pub clients: usize,
    /// Time after which a client gives up.
    pub patience: Duration,
    /// What they ask.
    pub query: String,
    /// Rest between a client's queries.
    pub think: Duration,
    /// A new connection for each query, even when healthy.
    pub reconnect: bool,
    /// Rest after an error (none after giving up).
    pub backoff: Duration,
    /// What a client that gives up sends.
    pub bye: Bye,
    /// Time over which the clients start.
    pub ramp: Duration,
    /// Time before the fault (whole seconds).
    pub before: Duration,
    /// Time of the fault (whole seconds).
    pub fault_for: Duration,
    /// Time after the fault (whole seconds).
    pub after: Duration,
    /// The fault.
    pub fault: Fault,
    /// Added to each new connection to the database.
    pub login_delay: Duration,
    /// If not zero, new connections are slow only from the fault until this long after it.
    pub slow_after_fault: Duration,
    /// Share of the earlier rate that counts as recovered.
    pub recover_share: f64,
    /// Seconds over which that rate is averaged.
    pub hold_s: usize,
}

impl StallOptions {
    /// The defaults, against a pooler.
    #[must_use]
    pub fn new(pooler: Address) -> Self {
        Self {
            pooler,
            user: USER.to_owned(),
            database: DATABASE.to_owned(),
            password: None,
            clients: 400,
            patience: Duration::from_secs(5),
            query: "select pg_sleep(0.05)".to_owned(),
            think: Duration::ZERO,
            reconnect: false,
            backoff: Duration::from_millis(100),
            bye: Bye::Terminate,
            ramp: Duration::from_secs(2),
            before: Duration::from_secs(12),
            fault_for: Duration::from_secs(3),
            after: Duration::from_secs(60),
            fault: Fault::FreezeAndCut,
            login_delay: Duration::from_millis(50),
            slow_after_fault: Duration::ZERO,
            recover_share: 0.7,
            hold_s: 5,
        }
    }

    fn connect_options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new(self.pooler.clone(), &self.user, &self.database);
        options.password.clone_from(&self.password);
        options.parameter("application_name", "stall")
    }
}

/// Runs the scenario; `relay` stands between the pooler and the database. `each_second` is told of every second as it
/// ends (its number, and the answers in it).
///
/// # Errors
/// The times are too short to judge by. A pooler that never answers is no error: the report says so.
pub async fn run(
    options: &StallOptions,
    relay: &Relay,
    mut each_second: impl FnMut(usize, u64),
) -> anyhow::Result<StallReport> {
    ensure!(
        options.before.as_secs() >= 2,
        "at least 2 s before the fault are needed to know the healthy rate"
    );
    ensure!(
        options.after.as_secs() >= options.hold_s as u64,
        "the time after the fault is shorter than `hold`"
    );
    process::raise_descriptor_limit();
    let slow_always = options.slow_after_fault.is_zero();
    relay.thaw();
    relay.delay_new(if slow_always { options.login_delay } else { Duration::ZERO });

    let tally = Arc::new(Tally::new(Instant::now()));
    let load = Arc::new(Load::new(options.clone(), Arc::clone(&tally)));
    let mut clients = JoinSet::new();
    for number in 0..options.clients {
        clients.spawn(Arc::clone(&load).client(number));
    }
    let mut course = Course::default();
    let mut watch =
        async |until: Duration| watch_until(until, relay, &tally, &mut course, &mut each_second).await;

    watch(options.before).await;
    let fault_at = tally.now();
    if !slow_always {
        relay.delay_new(options.login_delay);
    }
    if matches!(options.fault, Fault::Freeze | Fault::FreezeAndCut) {
        relay.freeze();
    }
    watch(options.before + options.fault_for).await;
    if matches!(options.fault, Fault::Cut | Fault::FreezeAndCut) {
        relay.cut(Cut::Close);
    }
    relay.thaw();
    let healed_at = tally.now();
    if !slow_always {
        watch(options.before + options.fault_for + options.slow_after_fault).await;
        relay.delay_new(Duration::ZERO);
    }
    watch(options.before + options.fault_for + options.after).await;
    clients.shutdown().await;
    course.fault_at = fault_at;
    course.healed_at = healed_at;
    Ok(report::judge(options, &course, &tally.take()))
}

/// Waits, and looks at the relay and the answers at the start of each second.
async fn watch_until(
    until: Duration,
    relay: &Relay,
    tally: &Tally,
    course: &mut Course,
    each_second: &mut impl FnMut(usize, u64),
) {
    loop {
        let now = tally.now();
        let second = usize::try_from(now.as_secs()).unwrap_or(usize::MAX);
        if course.backend_opened.last().is_none_or(|(seen, _)| *seen < second) {
            course.backend_opened.push((second, relay.counts().opened));
            if let Some(ended) = second.checked_sub(1) {
                each_second(ended, tally.good_in(ended));
            }
        }
        if now >= until {
            return;
        }
        let next = Duration::from_secs(now.as_secs() + 1).min(until);
        tokio::time::sleep_until(tally.start() + next).await;
    }
}

#[cfg(test)]
mod tests;
