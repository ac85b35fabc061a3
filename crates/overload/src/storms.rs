//! Storms: sources whose attempts have grown far beyond what they used to be, and who they are.
//!
//! A bounded sketch of the busiest sources (space-saving; Metwally, Agrawal and El Abbadi 2005), looked at window by
//! window. There is no timer: windows end when something is noted, or when somebody looks.

use crate::Moment;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Most sources that are told apart at once. A source that makes more than this part of all events is always among them.
pub const MAX_SOURCES: usize = 128;

/// How long events are summed before they are judged.
pub const WINDOW: Duration = Duration::from_secs(5);

/// Fewer events a second are never a storm.
pub const LEAST_RATE_PER_SECOND: u64 = 40;

/// A storm is so many times what was usual before.
pub const GROWTH: u64 = 4;

/// Windows in a row that a source must be above both: who comes back after a restart, all at once, is through in one.
pub const WINDOWS_IN_A_ROW: u32 = 2;

/// After so long a storm is what is usual.
pub const LONGEST_STORM: Duration = Duration::from_mins(10);

/// For so long a storm that is over is still shown.
pub const SHOWN_AFTER: Duration = Duration::from_mins(10);

/// Windows over which what is usual is averaged, roughly.
const MEMORY_WINDOWS: u64 = 12;

/// Rates are kept in thousandths of an event a second.
const MILLI: u64 = 1_000;

/// The busiest sources. `K` names one.
#[derive(Debug)]
pub struct Storms<K> {
    sources: HashMap<K, Source>,
    window_began: Option<Moment>,
    begun: u64,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    /// Events of the present window.
    count: u64,
    /// Of them, how many may be another's whose place this one took.
    error: u64,
    rate_milli: u64,
    usual_milli: u64,
    windows_above: u32,
    storm: Option<Storm>,
}

#[derive(Clone, Copy, Debug)]
struct Storm {
    since: Moment,
    over_at: Option<Moment>,
    greatest_milli: u64,
    /// What was usual before it.
    usual_milli: u64,
}

/// A source that has grown: what the log, the metrics and the console say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StormReport<K> {
    /// Who.
    pub source: K,
    /// Events a second in the last whole window, in thousandths.
    pub rate_milli: u64,
    /// The most of the storm so far.
    pub greatest_rate_milli: u64,
    /// What was usual before it.
    pub usual_rate_milli: u64,
    /// When it began.
    pub since: Moment,
    /// When it was over; none while it goes on.
    pub over_at: Option<Moment>,
}

impl<K> Default for Storms<K> {
    fn default() -> Self {
        Self { sources: HashMap::new(), window_began: None, begun: 0 }
    }
}

impl<K: Clone + Eq + Hash> Storms<K> {
    /// Nothing has been noted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An event of this source. Gives the storms that a window that ended with it has shown to begin.
    pub fn note(&mut self, now: Moment, source: &K) -> Vec<StormReport<K>> {
        let news = self.look(now);
        self.window_began.get_or_insert(now);
        if let Some(known) = self.sources.get_mut(source) {
            known.count += 1;
            return news;
        }
        let error = if self.sources.len() >= MAX_SOURCES { self.make_room() } else { 0 };
        let newcomer =
            Source { count: error + 1, error, rate_milli: 0, usual_milli: 0, windows_above: 0, storm: None };
        self.sources.insert(source.clone(), newcomer);
        news
    }

    /// Ends the windows that are over. Gives the storms that have shown to begin.
    pub fn look(&mut self, now: Moment) -> Vec<StormReport<K>> {
        let Some(began) = self.window_began else { return Vec::new() };
        let span = now.since(began);
        if span < WINDOW {
            return Vec::new();
        }
        self.window_began = (!self.sources.is_empty()).then_some(now);
        let mut news = Vec::new();
        let span_us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        for (key, source) in &mut self.sources {
            if source.end_window(began, now, span_us) {
                self.begun += 1;
                news.extend(source.report(key));
            }
        }
        self.sources.retain(|_, source| !source.is_forgettable(now));
        news.sort_by_key(|report| std::cmp::Reverse(report.rate_milli));
        news
    }

    /// Storms that go on, and those that were over not long ago; the greatest first.
    #[must_use]
    pub fn reports(&self) -> Vec<StormReport<K>> {
        let mut reports: Vec<_> =
            self.sources.iter().filter_map(|(key, source)| source.report(key)).collect();
        reports
            .sort_by_key(|report| (report.over_at.is_some(), std::cmp::Reverse(report.greatest_rate_milli)));
        reports
    }

    /// How many storms go on. What nobody has noted anything of for two windows is over.
    #[must_use]
    pub fn active(&self, now: Moment) -> usize {
        if self.window_began.is_none_or(|began| now.since(began) >= 2 * WINDOW) {
            return 0;
        }
        let goes_on = |source: &&Source| source.storm.is_some_and(|storm| storm.over_at.is_none());
        self.sources.values().filter(goes_on).count()
    }

    /// Storms that ever began.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Sources that are told apart.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Nobody is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The least busy source goes, one without a storm if there is one. Gives what it had counted, which the next in its
    /// place may not be told to have less than.
    fn make_room(&mut self) -> u64 {
        let least = self.sources.iter().min_by_key(|(_, source)| (source.storm.is_some(), source.count));
        let Some((key, count)) = least.map(|(key, source)| (key.clone(), source.count)) else { return 0 };
        self.sources.remove(&key);
        count
    }
}

impl Source {
    /// Judges a window; true if a storm begins.
    fn end_window(&mut self, began: Moment, now: Moment, span_us: u64) -> bool {
        let surely = self.count.saturating_sub(self.error);
        self.rate_milli = surely.saturating_mul(MILLI * 1_000_000) / span_us.max(1);
        (self.count, self.error) = (0, 0);
        let usual = self
            .storm
            .filter(|storm| storm.over_at.is_none())
            .map_or(self.usual_milli, |storm| storm.usual_milli);
        let is_above = self.rate_milli >= LEAST_RATE_PER_SECOND * MILLI
            && self.rate_milli >= usual.saturating_mul(GROWTH);
        self.windows_above = if is_above { self.windows_above.saturating_add(1) } else { 0 };
        match &mut self.storm {
            Some(storm) if storm.over_at.is_none() => {
                storm.greatest_milli = storm.greatest_milli.max(self.rate_milli);
                if !is_above {
                    storm.over_at = Some(now);
                } else if now.since(storm.since) >= LONGEST_STORM {
                    storm.over_at = Some(now);
                    self.usual_milli = self.rate_milli;
                }
                false
            }
            _ if self.windows_above >= WINDOWS_IN_A_ROW => {
                let since = began - WINDOW.saturating_mul(WINDOWS_IN_A_ROW - 1);
                let (greatest_milli, usual_milli) = (self.rate_milli, self.usual_milli);
                self.storm = Some(Storm { since, over_at: None, greatest_milli, usual_milli });
                true
            }
            // What may be the beginning of a storm is not what is usual.
            _ if is_above => false,
            _ => {
                // A long quiet time was many windows.
                let window_us = u64::try_from(WINDOW.as_micros()).unwrap_or(u64::MAX);
                let windows = (span_us / window_us.max(1)).clamp(1, MEMORY_WINDOWS);
                let kept = self.usual_milli.saturating_mul(MEMORY_WINDOWS - windows);
                self.usual_milli =
                    kept.saturating_add(self.rate_milli.saturating_mul(windows)) / MEMORY_WINDOWS;
                false
            }
        }
    }

    fn is_forgettable(&self, now: Moment) -> bool {
        let is_shown = self.storm.is_some_and(|storm| match storm.over_at {
            None => true,
            Some(over_at) => now.since(over_at) < SHOWN_AFTER,
        });
        // What is usual has faded.
        !is_shown && self.rate_milli == 0 && self.usual_milli < MILLI / 10
    }

    fn report<K: Clone>(&self, key: &K) -> Option<StormReport<K>> {
        let storm = self.storm?;
        Some(StormReport {
            source: key.clone(),
            rate_milli: self.rate_milli,
            greatest_rate_milli: storm.greatest_milli,
            usual_rate_milli: storm.usual_milli,
            since: storm.since,
            over_at: storm.over_at,
        })
    }
}

#[cfg(test)]
mod tests;
