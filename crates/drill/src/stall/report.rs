//! The judgement: when the rate was back, and whether it ever was.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::load::Record;
use super::{Bye, Fault, StallOptions};

/// Below this share of the earlier rate, in the last seconds, a pooler counts as stalled.
const STALLED_BELOW: f64 = 0.1;

/// Seconds at the end that decide about [`StallReport::stalled`].
const LAST_SECONDS: usize = 10;

/// When things happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    pub(super) fault_at: Duration,
    pub(super) healed_at: Duration,
    /// At the start of a second: connections to the database opened so far.
    pub(super) backend_opened: Vec<(usize, u64)>,
}

/// Median and 99th percentile before the fault.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
}

/// One second of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Second {
    /// Seconds since the start.
    pub second: usize,
    /// Queries answered.
    pub good: u64,
    /// Clients that gave up.
    pub gave_up: u64,
    /// Errors.
    pub errors: u64,
    /// Logins that succeeded.
    pub connects: u64,
    /// Connections that the pooler opened to the database.
    pub backend_opens: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StallReport {
    /// Where the pooler listened.
    pub pooler: String,
    /// Clients.
    pub clients: usize,
    /// Their patience, seconds.
    pub client_timeout_s: f64,
    /// What those who gave up sent.
    pub bye: Bye,
    /// Bytes of the query.
    pub query_bytes: usize,
    /// The fault.
    pub fault: Fault,
    /// Its length, seconds.
    pub fault_s: f64,
    /// Added to each new connection to the database, milliseconds.
    pub login_delay_ms: f64,
    /// Answers a second before the fault: the median of the second half of that time.
    pub goodput_before: u64,
    /// Answers a second during it.
    pub goodput_fault: Option<f64>,
    /// Answers a second in the first 10 s after it.
    pub goodput_after_0_10s: Option<f64>,
    /// Answers a second from 10 to 30 s after it.
    pub goodput_after_10_30s: Option<f64>,
    /// Answers a second in the last 10 s.
    pub goodput_last_10s: Option<f64>,
    /// From the healing to the first second from which on the rate, averaged over `hold` seconds, is at least
    /// `recover_share` of the earlier rate. None: never.
    pub seconds_to_recover: Option<usize>,
    /// Whether the rate of the last 10 s is below a tenth of the earlier rate.
    pub stalled: bool,
    /// Latency before the fault.
    pub latency_before: Option<Latency>,
    /// Errors by their text.
    pub errors_by_text: BTreeMap<String, u64>,
    /// Start of the fault, seconds since the start.
    pub fault_at_s: f64,
    /// End of the fault, seconds since the start.
    pub healed_at_s: f64,
    /// Every second.
    pub seconds: Vec<Second>,
}

pub(super) fn judge(options: &StallOptions, course: &Course, record: &Record) -> StallReport {
    let total = whole_seconds(options.before + options.fault_for + options.after);
    let seconds = merge(total, course, record);
    let good: Vec<u64> = seconds.iter().map(|second| second.good).collect();
    let before = whole_seconds(options.before);
    let base = median(&good[before / 2..before]);
    let (fault, end) = (whole_seconds(course.fault_at), whole_seconds(course.healed_at));
    let last = mean(&good, total.saturating_sub(LAST_SECONDS), total);
    StallReport {
        pooler: options.pooler.to_string(),
        clients: options.clients,
        client_timeout_s: options.patience.as_secs_f64(),
        bye: options.bye,
        query_bytes: options.query.len(),
        fault: options.fault,
        fault_s: options.fault_for.as_secs_f64(),
        login_delay_ms: options.login_delay.as_secs_f64() * 1e3,
        goodput_before: base,
        goodput_fault: mean(&good, fault, end),
        goodput_after_0_10s: mean(&good, end, end + 10),
        goodput_after_10_30s: mean(&good, end + 10, end + 30),
        goodput_last_10s: last,
        seconds_to_recover: seconds_to_recover(&good, end, base, options.recover_share, options.hold_s),
        stalled: last.unwrap_or(0.0) < STALLED_BELOW * base as f64 || base == 0,
        latency_before: latency(record, options.before),
        errors_by_text: record.error_texts.clone(),
        fault_at_s: round(course.fault_at.as_secs_f64()),
        healed_at_s: round(course.healed_at.as_secs_f64()),
        seconds,
    }
}

/// The first second after `end` from which on `hold` seconds together reach the rate. A pooler that never answered
/// before has nothing to come back to.
fn seconds_to_recover(good: &[u64], end: usize, base: u64, share: f64, hold: usize) -> Option<usize> {
    let need = base as f64 * share * hold as f64;
    let after = good.get(end..)?;
    if base == 0 || hold == 0 {
        return None;
    }
    after.windows(hold).position(|window| window.iter().sum::<u64>() as f64 >= need)
}

fn merge(total: usize, course: &Course, record: &Record) -> Vec<Second> {
    let opened: BTreeMap<usize, u64> = course.backend_opened.iter().copied().collect();
    (0..total)
        .map(|second| {
            let counts = record.seconds.get(second).copied().unwrap_or_default();
            // The last look at or before a moment.
            let at = |moment: usize| opened.range(..=moment).next_back().map_or(0, |(_, count)| *count);
            Second {
                second,
                good: counts.good,
                gave_up: counts.gave_up,
                errors: counts.errors,
                connects: counts.connects,
                backend_opens: at(second + 1).saturating_sub(at(second)),
            }
        })
        .collect()
}

fn latency(record: &Record, before: Duration) -> Option<Latency> {
    let mut took: Vec<Duration> =
        record.latencies.iter().filter(|(began, _)| *began < before).map(|(_, took)| *took).collect();
    took.sort_unstable();
    let at = |share: f64| {
        took.get((took.len() as f64 * share) as usize).map(|took| round(took.as_secs_f64() * 1e3))
    };
    Some(Latency { p50_ms: at(0.5)?, p99_ms: at(0.99)? })
}

fn mean(good: &[u64], first: usize, last: usize) -> Option<f64> {
    let part = good.get(first..last.min(good.len())).filter(|part| !part.is_empty())?;
    Some(round(part.iter().sum::<u64>() as f64 / part.len() as f64))
}

/// The upper of the two middle ones, if their number is even.
fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

fn whole_seconds(span: Duration) -> usize {
    usize::try_from(span.as_secs()).unwrap_or(usize::MAX)
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
