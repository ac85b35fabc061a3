//! What a load saw, request by request, and what follows from it.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Answered within the caller's patience.
    Good,
    /// The caller's patience ended first; it has hung up.
    GaveUp,
    /// An ERROR: the session is still there.
    Refused,
    /// A FATAL, or the end of the connection.
    Broken,
    /// The caller left on purpose before an answer.
    Died,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// When it was meant, since the beginning.
    pub at: Duration,
    /// How much later it was sent.
    pub late: Duration,
    /// From the time that was meant to its end.
    pub took: Duration,
    /// Which of the load's databases.
    pub database: u16,
    /// It was tried again after a failure: it is not of the schedule.
    pub again: bool,
    /// What became of it.
    pub outcome: Outcome,
}

/// A span of a run, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bucket {
    /// Its beginning, seconds since that of the load.
    pub at_s: f64,
    /// Requests meant in it, a second.
    pub offered_per_s: f64,
    /// Good answers in it, a second.
    pub good_per_s: f64,
    /// Callers that gave up in it, a second.
    pub gave_up_per_s: f64,
    /// Refusals and broken connections in it, a second.
    pub failed_per_s: f64,
    /// 99 of 100 good answers in it took at most that, ms.
    pub p99_ms: f64,
}

/// Moments of a run, since its beginning.
pub(crate) type Span = Range<Duration>;

/// The widest window whose share has to be good for a run to be normal.
const WINDOW: Duration = Duration::from_secs(1);
/// Windows begin at multiples of it.
const STEP: Duration = Duration::from_millis(250);

/// Requests that count: who leaves on purpose has no claim to an answer.
fn counts(record: &&Record) -> bool {
    record.outcome != Outcome::Died
}

/// Share of the requests meant in a span that were answered in time; 1 if there were none.
#[must_use]
pub(crate) fn answered_share(records: &[Record], span: &Span) -> f64 {
    let (mut all, mut good) = (0_u32, 0_u32);
    for record in records.iter().filter(|record| span.contains(&record.at)).filter(counts) {
        all += 1;
        good += u32::from(record.outcome == Outcome::Good);
    }
    if all == 0 { 1.0 } else { f64::from(good) / f64::from(all) }
}

/// Good answers a second that came in a span.
#[must_use]
pub(crate) fn goodput_per_s(records: &[Record], span: &Span) -> f64 {
    let good = records.iter().filter(|record| record.outcome == Outcome::Good);
    let count = good.filter(|record| span.contains(&(record.at + record.took))).count();
    count as f64 / length_s(span)
}

/// The quantile of what good answers to requests of a span took.
#[must_use]
pub(crate) fn quantile(records: &[Record], span: &Span, share: f64) -> Duration {
    let good = records.iter().filter(|record| record.outcome == Outcome::Good && span.contains(&record.at));
    nth(good.map(|record| record.took).collect(), share)
}

/// The quantile of how late requests of a span were sent.
#[must_use]
pub(crate) fn lateness(records: &[Record], span: &Span, share: f64) -> Duration {
    let sent = records.iter().filter(|record| !record.again && span.contains(&record.at));
    nth(sent.map(|record| record.late).collect(), share)
}

/// How long after `since` all is normal: from then to `until`, in each window of a second, at least `share` of the requests
/// are answered in time. None: it is not.
#[must_use]
pub(crate) fn normal_after(
    records: &[Record],
    since: Duration,
    until: Duration,
    share: f64,
) -> Option<Duration> {
    let mut from = until.checked_sub(WINDOW).filter(|last| *last >= since)?;
    let mut normal = None;
    // Backwards, to the last window that was bad.
    loop {
        if answered_share(records, &(from..from + WINDOW)) < share {
            return normal;
        }
        normal = Some(from - since);
        match from.checked_sub(STEP).filter(|earlier| *earlier >= since) {
            Some(earlier) => from = earlier,
            None => return Some(Duration::ZERO),
        }
    }
}

/// The whole run in spans of `width`.
#[must_use]
pub(crate) fn buckets(records: &[Record], width: Duration, until: Duration) -> Vec<Bucket> {
    let count = (until.as_secs_f64() / width.as_secs_f64()).ceil() as usize;
    let mut took: Vec<Vec<Duration>> = vec![Vec::new(); count];
    let mut all = vec![Bucket::default(); count];
    let index = |at: Duration| (at.as_secs_f64() / width.as_secs_f64()) as usize;
    let one = 1.0 / width.as_secs_f64();
    for record in records {
        if let Some(bucket) = all.get_mut(index(record.at)) {
            bucket.offered_per_s += one;
        }
        let end = index(record.at + record.took);
        let Some(bucket) = all.get_mut(end) else { continue };
        match record.outcome {
            Outcome::Good => {
                bucket.good_per_s += one;
                took[end].push(record.took);
            }
            Outcome::GaveUp => bucket.gave_up_per_s += one,
            Outcome::Refused | Outcome::Broken => bucket.failed_per_s += one,
            Outcome::Died => {}
        }
    }
    for (number, (bucket, took)) in all.iter_mut().zip(took).enumerate() {
        bucket.at_s = number as f64 * width.as_secs_f64();
        bucket.p99_ms = nth(took, 0.99).as_secs_f64() * 1e3;
    }
    all
}

fn nth(mut values: Vec<Duration>, share: f64) -> Duration {
    values.sort_unstable();
    let index = (values.len() as f64 * share) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn length_s(span: &Span) -> f64 {
    span.end.saturating_sub(span.start).as_secs_f64().max(f64::EPSILON)
}

#[cfg(test)]
mod tests;
