//! What a drill found.

use std::fmt::Write as _;

use serde::Serialize;

use super::picture;
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
    /// How long it took, seconds.
    pub took_s: f64,
    /// What had to hold.
    pub checks: Vec<Check>,
    /// What was done.
    pub events: Vec<Event>,
    /// What customers saw, together.
    pub sums: Sums,
    /// What customers saw, second by second.
    pub seconds: Vec<Second>,
    /// Streams that broke.
    pub broken: Vec<Broken>,
    /// Streams that did not come about.
    pub refused: Vec<Refused>,
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
        let mut causes: Vec<(String, usize)> = Vec::new();
        let seen = self.broken.iter().map(|broken| format!("broken: {}", broken.cause));
        for cause in seen.chain(self.refused.iter().map(|refused| format!("refused: {}", refused.cause))) {
            match causes.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, count)) => *count += 1,
                None => causes.push((cause, 1)),
            }
        }
        for (cause, count) in causes.iter().take(MOST_SHOWN) {
            let _ = writeln!(text, "        {count} × {cause}");
        }
        text
    }

    /// An SVG for those who would rather look.
    #[must_use]
    pub fn picture(&self) -> String {
        picture::draw(self)
    }

    fn verdict(&self) -> String {
        let held = self.checks.iter().filter(|check| check.passed).count();
        let all = self.checks.len();
        if self.passed { format!("all {all} hold") } else { format!("{held} of {all} hold") }
    }
}
