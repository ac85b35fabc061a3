//! What of the network is looked at, and how often.

use std::collections::HashMap;
use std::time::Duration;

use overload::Moment;
use selection::{Candidate, Country, Options};
use uuid::Uuid;

/// The most windows; the one that was used longest ago makes room.
const MAX_WINDOWS: usize = 256;

/// A window that has not been used for so long is not looked through any more.
const USED_LATELY: Duration = Duration::from_secs(30);

/// How often a window on a part is looked through; the one on all of it each time.
const PART_EVERY: Duration = Duration::from_secs(2);

/// A part of the network in which nobody could be asked is looked through for so long, whatever pools say of it: they are built
/// every few seconds, and who is back may be in none of them yet.
const DRY_FOR: Duration = Duration::from_secs(5);

/// A part of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    /// All of it.
    All,
    /// A country.
    Country(Country),
    /// One provider.
    Provider(Uuid),
}

impl Query {
    /// The parts that options ask for.
    fn of(options: &Options) -> Vec<Self> {
        let mut wanted: Vec<_> = options.providers.iter().copied().map(Self::Provider).collect();
        if wanted.is_empty() {
            wanted = options.countries.iter().copied().map(Self::Country).collect();
        }
        if wanted.is_empty() {
            wanted.push(Self::All);
        }
        wanted
    }

    /// Whether a candidate belongs to this part.
    pub(super) fn shows(self, candidate: &Candidate) -> bool {
        match self {
            Self::All => true,
            Self::Country(country) => candidate.country == country,
            Self::Provider(provider) => candidate.provider == provider,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Used {
    used_at: Moment,
    looked_at: Option<Moment>,
    dry_at: Option<Moment>,
}

#[derive(Debug, Default)]
pub(super) struct Windows(HashMap<Query, Used>);

impl Windows {
    /// The windows that have to be looked through before candidates for these options can be known.
    pub(super) fn missing(&mut self, options: &Options, now: Moment) -> Vec<Query> {
        let mut wanted = Query::of(options);
        wanted.retain(|query| {
            let used = self.entry(*query, now);
            used.used_at = now;
            // A window that nobody used for a while shows what was.
            used.looked_at.is_none_or(|looked_at| *query != Query::All && now.since(looked_at) > USED_LATELY)
        });
        wanted
    }

    /// Whether it has been looked through just now.
    pub(super) fn is_fresh(&self, query: Query, now: Moment) -> bool {
        let looked_at = self.0.get(&query).and_then(|used| used.looked_at);
        looked_at.is_some_and(|looked_at| now.since(looked_at) < PART_EVERY)
    }

    pub(super) fn looked(&mut self, query: Query, now: Moment) {
        self.entry(query, now).looked_at = Some(now);
    }

    /// Nobody who fits these options could be asked.
    pub(super) fn ran_dry(&mut self, options: &Options, now: Moment) {
        for query in Query::of(options) {
            self.entry(query, now).dry_at = Some(now);
        }
    }

    pub(super) fn is_dry(&self, query: Query, now: Moment) -> bool {
        let dry_at = self.0.get(&query).and_then(|used| used.dry_at);
        dry_at.is_some_and(|dry_at| now.since(dry_at) < DRY_FOR)
    }

    /// The windows to be looked through again.
    pub(super) fn due(&self, now: Moment) -> Vec<Query> {
        let is_due = |used: &Used| {
            now.since(used.used_at) < USED_LATELY
                && used.looked_at.is_none_or(|looked_at| now.since(looked_at) >= PART_EVERY)
        };
        let parts = self.0.iter().filter(|(query, used)| **query != Query::All && is_due(used));
        std::iter::once(Query::All).chain(parts.map(|(query, _)| *query)).collect()
    }

    fn entry(&mut self, query: Query, now: Moment) -> &mut Used {
        if self.0.len() >= MAX_WINDOWS && !self.0.contains_key(&query) {
            let oldest = self.0.iter().min_by_key(|(_, used)| used.used_at).map(|(query, _)| *query);
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        self.0.entry(query).or_insert(Used { used_at: now, looked_at: None, dry_at: None })
    }
}
