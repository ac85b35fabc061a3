//! Who could carry a stream: an immutable list, swapped whole.

use std::collections::HashMap;
use std::fmt::{self, Display};

use uuid::Uuid;

use crate::options::{Family, Options};

/// The most candidates that a list keeps. What lies behind them is left out, and counted.
pub const MAX_CANDIDATES: usize = 200_000;

/// A country: two letters of ISO 3166-1, or `zz` for one that is not known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

impl Country {
    /// Not known.
    pub const UNKNOWN: Self = Self(*b"zz");

    /// Two letters, in either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            &[first, second] if first.is_ascii_alphabetic() && second.is_ascii_alphabetic() => {
                Some(Self([first.to_ascii_lowercase(), second.to_ascii_lowercase()]))
            }
            _ => None,
        }
    }

    /// The two letters, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A provider that is said to be connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub provider: Uuid,
    /// Its start; grows.
    pub epoch: u64,
    /// Changes with each connection of this start, and means nothing else.
    pub connection: u64,
    /// Where it is.
    pub country: Country,
    /// Whether it reaches IPv6 targets.
    pub ipv6: bool,
}

impl Candidate {
    /// Whether this is what was asked for. The one place where options meet candidates.
    #[must_use]
    pub fn answers(&self, options: &Options) -> bool {
        (options.countries.is_empty() || options.countries.contains(&self.country))
            && (options.providers.is_empty() || options.providers.contains(&self.provider))
            && (options.family != Family::V6 || self.ipv6)
    }
}

/// All candidates at one time. Each provider stands in it once, with its greatest epoch.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    candidates: Vec<Candidate>,
    by_provider: HashMap<Uuid, u32>,
    by_country: HashMap<Country, Vec<u32>>,
    left_out: usize,
}

impl Snapshot {
    /// A list from what is known. Of a provider that comes twice the greatest epoch is kept.
    #[must_use]
    pub fn new(candidates: impl IntoIterator<Item = Candidate>) -> Self {
        let mut snapshot = Self::default();
        for candidate in candidates {
            if let Some(&index) = snapshot.by_provider.get(&candidate.provider) {
                let known = snapshot.candidates.get_mut(index as usize);
                if let Some(known) = known.filter(|known| known.epoch < candidate.epoch) {
                    *known = candidate;
                }
            } else if snapshot.candidates.len() == MAX_CANDIDATES {
                snapshot.left_out += 1;
            } else {
                let index = u32::try_from(snapshot.candidates.len()).unwrap_or(u32::MAX);
                snapshot.by_provider.insert(candidate.provider, index);
                snapshot.candidates.push(candidate);
            }
        }
        for (index, candidate) in (0_u32..).zip(&snapshot.candidates) {
            snapshot.by_country.entry(candidate.country).or_default().push(index);
        }
        snapshot
    }

    /// All of them.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// How many were left out because the list was full.
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// One by its name.
    #[must_use]
    pub fn find(&self, provider: Uuid) -> Option<&Candidate> {
        self.by_provider.get(&provider).and_then(|&index| self.candidates.get(index as usize))
    }

    /// The indexes among which those that answer `options` are: as short a list as the indexes allow.
    pub(crate) fn pool(&self, options: &Options) -> Pool<'_> {
        if !options.providers.is_empty() {
            return Pool::Named(
                options.providers.iter().filter_map(|id| self.by_provider.get(id).copied()).collect(),
            );
        }
        if options.countries.is_empty() {
            return Pool::All(u32::try_from(self.candidates.len()).unwrap_or(u32::MAX));
        }
        let lists = options.countries.iter().filter_map(|country| self.by_country.get(country));
        Pool::Countries(lists.map(Vec::as_slice).collect())
    }

    pub(crate) fn at(&self, index: u32) -> Option<&Candidate> {
        self.candidates.get(index as usize)
    }
}

/// A part of a snapshot that can be drawn from at random.
pub(crate) enum Pool<'snapshot> {
    All(u32),
    Countries(Vec<&'snapshot [u32]>),
    Named(Vec<u32>),
}

impl Pool<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::All(count) => *count as usize,
            Self::Countries(lists) => lists.iter().map(|list| list.len()).sum(),
            Self::Named(list) => list.len(),
        }
    }

    pub(crate) fn get(&self, mut place: usize) -> Option<u32> {
        match self {
            Self::All(count) => u32::try_from(place).ok().filter(|place| place < count),
            Self::Named(list) => list.get(place).copied(),
            Self::Countries(lists) => {
                for list in lists {
                    if let Some(&index) = list.get(place) {
                        return Some(index);
                    }
                    place -= list.len();
                }
                None
            }
        }
    }
}
