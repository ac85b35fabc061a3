//! What came of the checks.

use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// What is checked.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Check {
    /// Its number, which stays.
    pub number: u16,
    /// The section of `docs/protocol.md`.
    pub section: &'static str,
    /// What must be true.
    pub name: &'static str,
}

/// How one ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Result {
    /// It is true.
    Passed,
    /// It is not, as far as could be seen.
    Failed(String),
    /// It could not be looked at.
    Skipped(String),
}

/// One line of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was checked.
    #[serde(flatten)]
    pub check: Check,
    /// How it ended.
    pub result: Result,
    /// How long it took, ms.
    pub took_ms: u64,
}

/// All of them. It displays as a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// In the order of their numbers.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    pub(crate) fn add(&mut self, check: Check, result: Result, took: Duration) {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.outcomes.push(Outcome { check, result, took_ms });
    }

    /// Nothing failed, and something was looked at.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let failed = |outcome: &Outcome| matches!(outcome.result, Result::Failed(_));
        let passed = |outcome: &Outcome| outcome.result == Result::Passed;
        !self.outcomes.iter().any(failed) && self.outcomes.iter().any(passed)
    }

    /// As JSON.
    ///
    /// # Errors
    /// None that a report can cause.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        for Outcome { check, result, took_ms } in &self.outcomes {
            let (count, word, why) = match result {
                Result::Passed => (&mut passed, "ok", ""),
                Result::Failed(why) => (&mut failed, "FAILED", why.as_str()),
                Result::Skipped(why) => (&mut skipped, "skipped", why.as_str()),
            };
            *count += 1;
            let Check { number, section, name } = check;
            writeln!(formatter, "{number:>3}  §{section:<3} {word:<7} {took_ms:>6} ms  {name}")?;
            if !why.is_empty() {
                writeln!(formatter, "{:>28}{why}", "")?;
            }
        }
        write!(formatter, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}
