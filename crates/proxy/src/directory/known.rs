//! Everybody who is known: by a generation of pools, or because the api was asked.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use overload::Moment;
use selection::pool::Member;
use selection::{Candidate, Country, Options, Selector, Snapshot};
use snapshot::Generation;
use trust::PublicIdentity;
use trust::api::CandidatesAnswer;
use uuid::Uuid;

use super::Provider;
use super::window::{Query, Windows};

/// A provider that a window with more than fits has not shown for so long is left out.
const UNSEEN_FOR: Duration = Duration::from_secs(60);

/// A country's pool is read for as long as customers have asked for it within this time.
const COUNTRY_USED: Duration = Duration::from_secs(60 * 60);

/// What has to be asked for before an open can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The bytes of a country's pool.
    Pool(Country),
    /// A look through a window.
    Window(Query),
}

/// A provider that the api was asked about.
#[derive(Debug)]
struct Told {
    said: trust::api::Candidate,
    provider: Arc<Provider>,
    seen_at: Moment,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) selector: Selector,
    /// By the pools that are read.
    pub(super) listed: Arc<HashMap<Uuid, Arc<Provider>>>,
    told: HashMap<Uuid, Told>,
    windows: Windows,
    /// Countries that were asked for, at most as many as there are.
    countries: HashMap<Country, Moment>,
    pub(super) generation: Option<Generation>,
    /// The api answered the last question.
    pub(super) hears: bool,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            selector: Selector::new(seed),
            listed: Arc::default(),
            told: HashMap::new(),
            windows: Windows::default(),
            countries: HashMap::new(),
            generation: None,
            hears: false,
        }
    }

    /// What has to be asked for before candidates for these options can be known.
    pub(super) fn missing(&mut self, options: &Options, now: Moment) -> Vec<Wanted> {
        let missing = self.windows.missing(options, now);
        let Some(generation) = &self.generation else {
            return missing.into_iter().map(Wanted::Window).collect();
        };
        let mut wanted = Vec::new();
        if options.providers.is_empty() {
            for country in &options.countries {
                self.countries.insert(*country, now);
                let pool = generation.manifest().pool(country.as_str());
                if pool.is_some_and(|pool| generation.blob(pool.hash).is_none()) {
                    wanted.push(Wanted::Pool(*country));
                }
            }
        }
        let windows = missing.into_iter().filter(|query| !self.is_listed(*query));
        wanted.into_iter().chain(windows.map(Wanted::Window)).collect()
    }

    /// Whether the pools show this part of the network.
    fn is_listed(&self, query: Query) -> bool {
        let Some(generation) = &self.generation else { return false };
        match query {
            // A network that has nobody yet is asked, until it has.
            Query::All => !self.listed.is_empty(),
            Query::Country(country) => generation.manifest().pool(country.as_str()).is_some(),
            Query::Provider(provider) => self.listed.contains_key(&provider),
        }
    }

    /// Nobody who fits these options could be asked.
    pub(super) fn ran_dry(&mut self, options: &Options, now: Moment) {
        self.windows.ran_dry(options, now);
    }

    /// The windows to be looked through again; with pools that are fresh, only those on what they do not show, and those in which
    /// nobody could be asked.
    pub(super) fn due(&self, has_pools: bool, now: Moment) -> Vec<Query> {
        let due = self.windows.due(now).into_iter();
        due.filter(|query| !has_pools || !self.is_listed(*query) || self.windows.is_dry(*query, now))
            .collect()
    }

    pub(super) fn looked(&mut self, wanted: Wanted, now: Moment) {
        if let Wanted::Window(query) = wanted {
            self.windows.looked(query, now);
        }
    }

    /// Whether it has been looked through just now.
    pub(super) fn is_fresh(&self, query: Query, now: Moment) -> bool {
        self.windows.is_fresh(query, now)
    }

    /// The pools that are read: the best, and the countries that customers ask for.
    pub(super) fn used_pools(&mut self, now: Moment) -> Vec<String> {
        self.countries.retain(|_, used_at| now.since(*used_at) < COUNTRY_USED);
        let countries = self.countries.keys().map(ToString::to_string);
        std::iter::once("best".to_owned()).chain(countries).collect()
    }

    /// A provider by its name: by whoever knows of its newest start.
    pub(super) fn find(&self, provider: Uuid) -> Option<Arc<Provider>> {
        let told = self.told.get(&provider).map(|told| &told.provider);
        let known = self.listed.get(&provider).into_iter().chain(told);
        known.max_by_key(|provider| provider.candidate.epoch).cloned()
    }

    pub(super) fn len(&self) -> usize {
        self.selector.list().candidates().len()
    }

    /// What the api said of those that no pool shows.
    pub(super) fn told(&self) -> Vec<trust::api::Candidate> {
        let told = self.told.iter().filter(|(provider, _)| !self.listed.contains_key(provider));
        told.map(|(_, told)| told.said.clone()).collect()
    }

    /// What the pools of a new generation show, in place of what the last ones did.
    pub(super) fn set_listed(&mut self, listed: HashMap<Uuid, Arc<Provider>>, now: Moment) {
        self.listed = Arc::new(listed);
        // Who was seen through a window that is not looked through any more.
        self.told.retain(|_, told| now.since(told.seen_at) < UNSEEN_FOR);
        self.set_list(now);
    }

    /// What has been seen through a window, or is remembered.
    pub(super) fn take_in(&mut self, answer: &CandidatesAnswer, query: Option<Query>, now: Moment) {
        if let Some(query) = query {
            self.windows.looked(query, now);
        }
        // The last good list of the api's: no newer than our own, and a different part of it each time.
        if answer.stale && self.generation.is_some() && !matches!(query, Some(Query::Provider(_))) {
            return;
        }
        let mut changed = false;
        for candidate in &answer.candidates {
            let Some(provider) = provider(candidate) else { continue };
            let id = provider.candidate.provider;
            match self.told.get_mut(&id) {
                Some(told) if *told.provider == provider => told.seen_at = now,
                // An answer that was under way longer than a newer one.
                Some(told) if told.provider.candidate.epoch > provider.candidate.epoch => {}
                _ => {
                    changed = true;
                    let (said, provider) = (candidate.clone(), Arc::new(provider));
                    self.told.insert(id, Told { said, provider, seen_at: now });
                }
            }
        }
        // An answer with all of them says who is gone; one with a part of them only over time; one that nobody vouches for, never.
        let is_whole = answer.connected <= answer.candidates.len() as u64;
        let before = self.told.len();
        self.told.retain(|_, told| {
            let unseen = now.since(told.seen_at);
            answer.stale
                || !query.is_some_and(|query| query.shows(&told.provider.candidate))
                || unseen.is_zero()
                || (!is_whole && unseen < UNSEEN_FOR)
        });
        if changed || self.told.len() != before {
            self.set_list(now);
        }
    }

    fn set_list(&mut self, now: Moment) {
        let told = self.told.values().map(|told| told.provider.candidate.clone());
        let listed = self.listed.values().map(|provider| provider.candidate.clone());
        self.selector.set_list(Arc::new(Snapshot::new(told.chain(listed))), now);
    }
}

/// A candidate of the api's, if it makes sense.
fn provider(candidate: &trust::api::Candidate) -> Option<Provider> {
    let identity: PublicIdentity = candidate.identity.parse().ok()?;
    let country = candidate.country.as_deref().and_then(Country::parse).unwrap_or(Country::UNKNOWN);
    Some(Provider {
        candidate: Candidate {
            provider: candidate.provider,
            epoch: candidate.epoch,
            connection: candidate.connected_at_ms,
            country,
            // The api does not say: the provider is asked, and refuses.
            ipv6: true,
        },
        relay: candidate.relay.as_str().into(),
        seal_key: identity.seal_key(),
    })
}

/// A provider of a pool.
pub(super) fn of_pool(member: &Member) -> Provider {
    Provider {
        candidate: Candidate {
            provider: member.provider,
            epoch: member.epoch,
            connection: member.connected_at_ms,
            country: member.country,
            ipv6: true,
        },
        relay: Arc::clone(&member.relay),
        seal_key: PublicIdentity::from_bytes(member.identity).seal_key(),
    }
}
