//! Which providers there are: what the api said last, kept while it says nothing.
//!
//! A network may have more providers than are worth knowing. So a proxy looks at it through windows: one on all of it, and one
//! for each country and provider that customers ask for. Each is asked for again every so often while it is used.

mod window;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::api::CandidatesQuery;
use overload::Moment;
use selection::{Candidate, Country, Fault, NoCandidate, Options, Pick, Search, Selector, Snapshot};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;
use trust::api::{CandidatesAnswer, MOST_CANDIDATES};
use trust::{ClientId, PublicIdentity};
use uuid::Uuid;

use crate::control::{Control, ControlError};
use clock::Clock;

pub(crate) use window::Query;
use window::Windows;

/// The longest that an open waits for windows that have just been opened, and for others who wait for theirs.
const WINDOW_WAIT: Duration = Duration::from_secs(2);

/// A provider that a window with more than fits has not shown for so long is left out.
const UNSEEN_FOR: Duration = Duration::from_secs(60);

/// A provider, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Who and where.
    pub candidate: Candidate,
    /// The relay that has it, `host:port`.
    pub relay: Arc<str>,
    /// The X25519 key to seal to.
    pub seal_key: [u8; 32],
}

#[derive(Debug)]
struct Listed {
    said: trust::api::Candidate,
    provider: Arc<Provider>,
    seen_at: Moment,
}

/// Providers, and the state of the choice among them.
#[derive(Debug)]
pub(crate) struct Directory<C> {
    control: Arc<C>,
    clock: Clock,
    state: Mutex<State>,
    /// Held by whoever asks because customers wait: the others wait for the same answer.
    looking: AsyncMutex<()>,
}

#[derive(Debug)]
struct State {
    selector: Selector,
    providers: HashMap<Uuid, Listed>,
    windows: Windows,
    /// The api answered the last question.
    hears: bool,
}

impl<C: Control> Directory<C> {
    pub(crate) fn new(control: Arc<C>, clock: Clock, seed: u64) -> Self {
        let selector = Selector::new(seed);
        let state = State { selector, providers: HashMap::new(), windows: Windows::default(), hears: false };
        Self { control, clock, state: Mutex::new(state), looking: AsyncMutex::default() }
    }

    /// Begins a search; asks the api first if nothing is known about what it asks for.
    pub(crate) async fn search(&self, account: &str, options: &Arc<Options>, target: &str) -> Search {
        let now = self.clock.now();
        let missing = self.lock().windows.missing(options, now);
        if !missing.is_empty() {
            let looked = async {
                let _looking = self.looking.lock().await;
                let missing = self.lock().windows.missing(options, self.clock.now());
                for query in missing {
                    self.look(query).await;
                }
            };
            // Others may be in front, and several windows be wanted: after that time, what is known has to do.
            if timeout(WINDOW_WAIT, looked).await.is_err() {
                let mut state = self.lock();
                for query in missing {
                    state.windows.looked(query, self.clock.now());
                }
            }
        }
        self.lock().selector.search(account, Arc::clone(options), target, now)
    }

    /// Who is asked now.
    pub(crate) async fn pick(&self, search: &mut Search) -> Result<(Pick, Arc<Provider>), NoCandidate> {
        let lost = match self.pick_known(search) {
            Err(NoCandidate::SessionLost) => {
                let now = self.clock.now();
                self.lock().selector.pinned(search, now)
            }
            other => return other,
        };
        // The list may only not have shown it.
        if let Some(query) = lost.map(Query::Provider) {
            let looked = async {
                let _looking = self.looking.lock().await;
                let is_known = self.lock().windows.is_fresh(query, self.clock.now());
                if !is_known {
                    self.look(query).await;
                }
            };
            let _ = timeout(WINDOW_WAIT, looked).await;
        }
        self.pick_known(search)
    }

    fn pick_known(&self, search: &mut Search) -> Result<(Pick, Arc<Provider>), NoCandidate> {
        let now = self.clock.now();
        let mut state = self.lock();
        let pick = state.selector.pick(search, now)?;
        match state.providers.get(&pick.candidate.provider) {
            Some(listed) => Ok((pick, Arc::clone(&listed.provider))),
            None => {
                state.selector.abandoned(&pick);
                Err(NoCandidate::NoneKnown)
            }
        }
    }

    pub(crate) fn opened(&self, search: &Search, pick: &Pick) {
        self.lock().selector.opened(search, pick, self.clock.now());
    }

    pub(crate) fn refused_by_target(&self, pick: &Pick) {
        self.lock().selector.refused_by_target(pick, self.clock.now());
    }

    pub(crate) fn failed(&self, search: &Search, pick: &Pick, fault: Fault) {
        self.lock().selector.failed(search, pick, fault, self.clock.now());
    }

    pub(crate) fn abandoned(&self, pick: &Pick) {
        self.lock().selector.abandoned(pick);
    }

    pub(crate) fn give_back(&self, search: &mut Search, pick: &Pick) {
        self.lock().selector.give_back(search, pick);
    }

    pub(crate) fn closed(&self, pick: &Pick) {
        self.lock().selector.closed(pick, self.clock.now());
    }

    /// Takes in providers of an earlier run.
    pub(crate) fn restore(&self, candidates: Vec<trust::api::Candidate>) {
        // Nothing is said about who is not among them.
        let connected = u64::MAX;
        let answer =
            CandidatesAnswer { candidates, connected, registered: connected, ..CandidatesAnswer::default() };
        let mut state = self.lock();
        state.take_in(&answer, None, self.clock.now());
    }

    /// What the api said of each.
    pub(crate) fn records(&self) -> Vec<trust::api::Candidate> {
        self.lock().providers.values().map(|listed| listed.said.clone()).collect()
    }

    /// Whether the api answered the last question.
    pub(crate) fn hears(&self) -> bool {
        self.lock().hears
    }

    /// Providers that are known.
    pub(crate) fn len(&self) -> usize {
        self.lock().providers.len()
    }

    /// Asks again for the windows that are used. What cannot be answered stays as it was.
    pub(crate) async fn refresh(&self) {
        let due = self.lock().windows.due(self.clock.now());
        for query in due {
            if !self.look(query).await {
                // The others would hear the same.
                return;
            }
        }
    }

    /// Looks through one window. `false` if nobody answers.
    async fn look(&self, query: Query) -> bool {
        let country = if let Query::Country(country) = &query { Some(country.as_str()) } else { None };
        let provider = if let Query::Provider(provider) = query { Some(ClientId(provider)) } else { None };
        let asked = CandidatesQuery { country, provider, limit: Some(MOST_CANDIDATES) };
        let answer = timeout(WINDOW_WAIT, self.control.candidates(asked)).await;
        let answer = answer.unwrap_or_else(|_| Err(ControlError::Silent("no answer in time".into())));
        match answer {
            Ok(answer) => {
                let mut state = self.lock();
                state.hears = true;
                state.take_in(&answer, Some(query), self.clock.now());
                true
            }
            Err(error) => {
                tracing::debug!(%error, "candidates stay as they were last known");
                // Not every customer waits for an answer that does not come.
                let mut state = self.lock();
                state.hears = false;
                state.windows.looked(query, self.clock.now());
                false
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What has been seen through a window, or is remembered.
    fn take_in(&mut self, answer: &CandidatesAnswer, query: Option<Query>, now: Moment) {
        if let Some(query) = query {
            self.windows.looked(query, now);
        }
        let mut changed = false;
        for candidate in &answer.candidates {
            let Some(provider) = provider(candidate) else { continue };
            let id = provider.candidate.provider;
            match self.providers.get_mut(&id) {
                Some(listed) if *listed.provider == provider => listed.seen_at = now,
                // An answer that was under way longer than a newer one.
                Some(listed) if listed.provider.candidate.epoch > provider.candidate.epoch => {}
                _ => {
                    changed = true;
                    let (said, provider) = (candidate.clone(), Arc::new(provider));
                    self.providers.insert(id, Listed { said, provider, seen_at: now });
                }
            }
        }
        // An answer with all of them says who is gone; one with a part of them only over time.
        let is_whole = answer.connected <= answer.candidates.len() as u64;
        let before = self.providers.len();
        self.providers.retain(|_, listed| {
            let unseen = now.since(listed.seen_at);
            !query.is_some_and(|query| query.shows(&listed.provider.candidate))
                || unseen.is_zero()
                || (!is_whole && unseen < UNSEEN_FOR)
        });
        if changed || self.providers.len() != before {
            let candidates = self.providers.values().map(|listed| listed.provider.candidate.clone());
            self.selector.set_list(Arc::new(Snapshot::new(candidates)), now);
        }
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

#[cfg(test)]
mod tests;
