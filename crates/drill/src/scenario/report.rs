//! What a drill found.

use std::fmt::Write as _;

use serde::Serialize;

use super::picture;
use crate::guard::SideReport;
use crate::traffic::{Broken, Refused, Second, Sums};

/// One thing that had to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub what: String,
    /// What was seen.
    pub seen: String,
    /// What had to be.
    pub bar: String,
    /// Whether it was.
    pub passed: bool,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When, seconds since the traffic began.
    pub at_s: f64,
    /// What.
    pub what: String,
}

/// The report of a drill.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub drill: String,
    /// What was random followed from it.
    pub seed: u64,
    /// Whether everything held.
    pub passed: bool,
    /// Why the figures say nothing, if so: the machine was too busy. `passed` is false then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    /// How long it took, seconds.
    pub took_s: f64,
    /// What had to hold.
    pub checks: Vec<Check>,
    /// What was done.
    pub events: Vec<Event>,
    /// What was seen meanwhile.
    #[serde(flatten)]
    pub view: View,
}

/// What was seen, by the kind of drill.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum View {
    /// Customers of a network.
    Customers {
        /// What customers saw, together.
        sums: Sums,
        /// What customers saw, second by second.
        seconds: Vec<Second>,
        /// Streams that broke.
        broken: Vec<Broken>,
        /// Streams that did not come about.
        refused: Vec<Refused>,
    },
    /// Callers of poolers, side by side.
    Poolers {
        /// After so long a caller hangs up, seconds.
        patience_s: f64,
        /// What the database was built to give, answers a second.
        nominal_per_s: f64,
        /// Share of the machine's processors that worked while the load ran.
        machine_busy: f64,
        /// Length of the buckets, seconds.
        bucket_s: f64,
        /// The poolers.
        sides: Vec<SideReport>,
    },
}

/// Refusals shown in the table; all are in the JSON.
const MOST_SHOWN: usize = 8;

impl Report {
    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}: {} ({:.0} s)", self.drill, self.verdict(), self.took_s);
        for Event { at_s, what } in &self.events {
            let _ = writeln!(text, "  {at_s:>6.1} s  {what}");
        }
        for Check { what, seen, bar, passed } in &self.checks {
            let mark = if *passed { "ok  " } else { "FAIL" };
            let _ = writeln!(text, "  {mark}  {what}: {seen} (must be {bar})");
        }
        match &self.view {
            View::Customers { broken, refused, .. } => causes(&mut text, broken, refused),
            View::Poolers { sides, machine_busy, nominal_per_s, patience_s, .. } => {
                poolers(&mut text, sides);
                let _ = writeln!(
                    text,
                    "  capacity {nominal_per_s:.0}/s by construction, patience {patience_s} s, machine {:.0} % busy, seed {}",
                    machine_busy * 100.0,
                    self.seed
                );
            }
        }
        text
    }

    /// An SVG for those who would rather look.
    #[must_use]
    pub fn picture(&self) -> String {
        picture::draw(self)
    }

    fn verdict(&self) -> String {
        if let Some(why) = &self.not_measured {
            return format!("not measured: {why}");
        }
        let held = self.checks.iter().filter(|check| check.passed).count();
        let all = self.checks.len();
        if self.passed { format!("all {all} hold") } else { format!("{held} of {all} hold") }
    }
}

/// Causes by how often they were seen.
fn causes(text: &mut String, broken: &[Broken], refused: &[Refused]) {
    let mut causes: Vec<(String, usize)> = Vec::new();
    let seen = broken.iter().map(|broken| format!("broken: {}", broken.cause));
    for cause in seen.chain(refused.iter().map(|refused| format!("refused: {}", refused.cause))) {
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => causes.push((cause, 1)),
        }
    }
    for (cause, count) in causes.iter().take(MOST_SHOWN) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "        {count} × {cause}");
    }
}

/// What the others showed, and every pooler's errors.
fn poolers(text: &mut String, sides: &[SideReport]) {
    for side in sides {
        let _ = writeln!(
            text,
            "  {}: {} requests, {} connections, database alone {:.0}/s, load late by {} ms (p99)",
            side.pooler, side.requests, side.connects, side.capacity_per_s, side.late_ms
        );
        if side.kind == crate::guard::PoolerKind::Peer {
            for Check { what, seen, bar, passed } in &side.checks {
                let mark = if *passed { "yes" } else { "no " };
                let _ = writeln!(text, "        {mark}  {what}: {seen} (ours must be {bar})");
            }
        }
        for line in &side.log {
            let _ = writeln!(text, "        log: {line}");
        }
        for (error, count) in side.error_texts.iter().take(MOST_SHOWN) {
            let _ = writeln!(text, "        {count} × {error}");
        }
    }
}
