//! Which providers there are: the last good generation of pools, and what the api says of those that no pool shows.
//!
//! A generation is read whole, kept on the disk, and used for as long as there is no newer one. A network may have more providers
//! than are worth knowing: of its pools the best is read, and each country that customers ask for. What no pool shows is looked
//! for through windows: one for each country or provider that is asked for, and one on all of it while there is no generation.
//! What opens have found since (who is gone, who rests) is laid over the list by the selector, and where someone has moved to by
//! the links.

mod known;
mod pools;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::api::CandidatesQuery;
use selection::{Candidate, Fault, NoCandidate, Options, Pick, Search};
use snapshot::Shelf;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;
use trust::ClientId;
use trust::api::{CandidatesAnswer, MOST_CANDIDATES};

use crate::control::{Control, ControlError};
use clock::Clock;

use known::{State, Wanted};
pub(crate) use window::Query;

/// The longest that an open waits for windows that have just been opened, and for others who wait for theirs.
const WINDOW_WAIT: Duration = Duration::from_secs(2);

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

/// Providers, and the state of the choice among them.
#[derive(Debug)]
pub(crate) struct Directory<C> {
    control: Arc<C>,
    clock: Clock,
    state: Mutex<State>,
    /// Held by whoever asks because customers wait: the others wait for the same answer.
    looking: AsyncMutex<()>,
    /// Where generations are kept.
    shelf: Option<Shelf>,
    kept: Mutex<pools::Kept>,
}

impl<C: Control> Directory<C> {
    pub(crate) fn new(control: Arc<C>, clock: Clock, seed: u64, shelf: Option<Shelf>) -> Self {
        let (state, kept) = (Mutex::new(State::new(seed)), Mutex::default());
        Self { control, clock, state, looking: AsyncMutex::default(), shelf, kept }
    }

    /// Begins a search; asks the api first if nothing is known about what it asks for.
    pub(crate) async fn search(&self, account: &str, options: &Arc<Options>, target: &str) -> Search {
        let now = self.clock.now();
        let missing = self.lock().missing(options, now);
        if !missing.is_empty() {
            let looked = async {
                let _looking = self.looking.lock().await;
                let missing = self.lock().missing(options, self.clock.now());
                for wanted in missing {
                    match wanted {
                        Wanted::Pool(country) => self.fetch_country(country).await,
                        Wanted::Window(query) => drop(self.look(query).await),
                    }
                }
            };
            // Others may be in front, and several windows be wanted: after that time, what is known has to do.
            if timeout(WINDOW_WAIT, looked).await.is_err() {
                let mut state = self.lock();
                for wanted in missing {
                    state.looked(wanted, self.clock.now());
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
                let is_known = self.lock().is_fresh(query, self.clock.now());
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
        let pick = match state.selector.pick(search, now) {
            Ok(pick) => pick,
            Err(none) => {
                if matches!(
                    none,
                    NoCandidate::NoneKnown | NoCandidate::Resting { .. } | NoCandidate::AllTried
                ) {
                    state.ran_dry(search.options(), now);
                }
                return Err(none);
            }
        };
        match state.find(pick.candidate.provider) {
            Some(provider) => Ok((pick, provider)),
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
        self.lock().take_in(&answer, None, self.clock.now());
    }

    /// What the api said of each that no pool shows.
    pub(crate) fn records(&self) -> Vec<trust::api::Candidate> {
        self.lock().told()
    }

    /// Whether the api answered the last question.
    pub(crate) fn hears(&self) -> bool {
        self.lock().hears
    }

    /// Providers that are known.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Looks for a newer generation, and again through the windows that are used. What cannot be answered stays as it was.
    pub(crate) async fn refresh(&self) {
        let has_pools = self.refresh_pools().await;
        let due = self.lock().due(has_pools, self.clock.now());
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
        let mut state = self.lock();
        state.hears = answer.is_ok();
        match answer {
            Ok(answer) => {
                state.take_in(&answer, Some(query), self.clock.now());
                true
            }
            Err(error) => {
                tracing::debug!(%error, "candidates stay as they were last known");
                // Not every customer waits for an answer that does not come.
                state.looked(Wanted::Window(query), self.clock.now());
                false
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
