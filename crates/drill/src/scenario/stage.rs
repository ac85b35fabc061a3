//! What a scenario has in hand.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::DrillOptions;
use super::report::{Check, Event, Report, View};
use crate::clock;
use crate::fleet::Guests;
use crate::network::{Network, NetworkOptions};
use crate::traffic::{self, Echo, Traffic, TrafficOptions};

/// Traffic runs for so long before anything is done to the network.
const WARM_UP: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Told what happens now.
pub type Progress<'a> = &'a (dyn Fn(&str) + Sync);
/// At which proxies customers are, and what they ask for.
pub(super) type Wishes = fn(&Network) -> Vec<(SocketAddr, String)>;

/// Customers at every proxy, who take any provider.
pub(super) fn anything(network: &Network) -> Vec<(SocketAddr, String)> {
    network.proxy_addresses().into_iter().map(|proxy| (proxy, String::new())).collect()
}

/// A network under traffic.
pub struct Stage<'a> {
    // In the order in which they go.
    traffic: Traffic,
    /// Providers for weight, if the scenario has called some.
    pub guests: Vec<Guests>,
    /// The network.
    pub network: Network,
    target: Echo,
    options: &'a DrillOptions,
    progress: Progress<'a>,
    name: &'static str,
    began: Instant,
    checks: Vec<Check>,
    events: Vec<Event>,
}

impl<'a> Stage<'a> {
    pub(super) fn build(
        name: &'static str,
        options: &'a DrillOptions,
        mut wanted: NetworkOptions,
        wishes: Wishes,
        progress: Progress<'a>,
    ) -> anyhow::Result<Self> {
        let began = clock::now();
        progress("a network comes up");
        let target = traffic::echo(wanted.hub())?;
        wanted.target = target.address();
        let network = Network::start(wanted)?;
        progress("traffic begins");
        let wishes = wishes(&network);
        let traffic = Traffic::start(&network, wishes, target.address(), TrafficOptions::default())?;
        clock::rest(WARM_UP);
        let guests = Vec::new();
        let (checks, events) = Default::default();
        Ok(Self { traffic, guests, network, target, options, progress, name, began, checks, events })
    }

    /// What customers see.
    #[must_use]
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Further customers, counted apart from the others.
    ///
    /// # Errors
    /// No thread.
    pub fn further(
        &self,
        wishes: Vec<(SocketAddr, String)>,
        options: TrafficOptions,
    ) -> anyhow::Result<Traffic> {
        Traffic::start(&self.network, wishes, self.target.address(), options)
    }

    /// Ends the traffic in order, so that both ends have counted all of it.
    ///
    /// # Errors
    /// Its thread panicked.
    pub fn stop_traffic(&mut self) -> anyhow::Result<()> {
        self.traffic.stop()
    }

    /// Bytes that have come to the target.
    #[must_use]
    pub fn target_bytes(&self) -> u64 {
        self.target.bytes()
    }

    /// The short form's span, or the long form's.
    #[must_use]
    pub const fn span(&self, short: Duration, long: Duration) -> Duration {
        if self.options.long { long } else { short }
    }

    /// It runs in its long form.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.options.long
    }

    /// What is random follows from it.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.options.seed
    }

    /// Writes down what is done now.
    pub fn event(&mut self, what: impl Display) {
        let what = what.to_string();
        (self.progress)(&what);
        self.events.push(Event { at_s: self.traffic.elapsed_s(), what });
    }

    /// Lets time pass.
    pub fn pass(&self, span: Duration) {
        let end = clock::now() + span;
        loop {
            let left = end.saturating_duration_since(clock::now());
            if left.is_zero() {
                return;
            }
            clock::rest(left.min(TELL_EVERY));
        }
    }

    /// Waits until something holds; how long that took, or none if it did not within `limit`.
    pub fn until(&mut self, limit: Duration, mut holds: impl FnMut(&mut Self) -> bool) -> Option<Duration> {
        let began = clock::now();
        while !holds(self) {
            if began.elapsed() >= limit {
                return None;
            }
            clock::rest(Duration::from_millis(100));
        }
        Some(began.elapsed())
    }

    /// Writes down whether something held.
    pub fn check(&mut self, what: &str, seen: impl Display, bar: impl Display, passed: bool) {
        let (seen, bar) = (seen.to_string(), bar.to_string());
        self.checks.push(Check { what: what.to_owned(), seen, bar, passed });
    }

    /// That a number is at most another.
    pub fn at_most(&mut self, what: &str, seen: u64, most: u64) {
        let bar = if most == 0 { "0".to_owned() } else { format!("at most {most}") };
        self.check(what, seen, bar, seen <= most);
    }

    /// That something came to pass within `limit`.
    pub fn came_within(&mut self, what: &str, took: Option<Duration>, limit: Duration) {
        let seen = took.map_or_else(|| "never".to_owned(), |took| format!("{:.1} s", took.as_secs_f64()));
        self.check(
            what,
            seen,
            format!("within {} s", limit.as_secs()),
            took.is_some_and(|took| took <= limit),
        );
    }

    pub(super) fn finish(self) -> Report {
        let passed = !self.checks.is_empty() && self.checks.iter().all(|check| check.passed);
        Report {
            drill: self.name.to_owned(),
            seed: self.options.seed,
            passed,
            not_measured: None,
            took_s: self.began.elapsed().as_secs_f64(),
            checks: self.checks,
            events: self.events,
            view: View::Customers {
                sums: self.traffic.sums(),
                seconds: self.traffic.seconds(),
                broken: self.traffic.broken(),
                refused: self.traffic.refused(),
            },
        }
    }
}
