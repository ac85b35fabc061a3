//! One open after the other: who is asked, who is asked next, and what is learnt from it.
//!
//! One candidate at a time: racing two would double the work exactly when there is too much of it.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use overload::{Lru, Moment};
use thiserror::Error;
use uuid::Uuid;

use crate::budget::RetryBudget;
use crate::candidate::{Candidate, Snapshot};
use crate::choice::{self, Verdict};
use crate::health::{Fault, Health};
use crate::options::{Options, Stickiness};
use crate::patience::Patience;
use crate::sticky::{self, MAX_PINS, Pins, SessionKey};

/// The most candidates that one open tries.
pub const MAX_CANDIDATES_PER_OPEN: usize = 3;

/// No further candidate is tried this long after the open began.
pub const MAX_SEARCH: Duration = Duration::from_secs(10);

/// How long it is remembered that a provider does not go to a target.
pub const REFUSAL_REMEMBERED: Duration = Duration::from_secs(60);

/// The most such refusals that are remembered; the one used longest ago makes room.
pub const MAX_REFUSALS: usize = 50_000;

/// What is known of a provider that has not been used for so long is forgotten.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 60);

/// What opens are taken to need before any has been seen.
const USUAL_MS: f64 = 100.0;

/// Why no provider can be asked. None of these is widened into "any provider will do".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoCandidate {
    /// Nothing in the list is what was asked for.
    #[error("no provider matches the selection")]
    NoneKnown,
    /// Those that match rest after failures, or take no streams now.
    #[error("no provider that matches takes streams now")]
    Resting {
        /// When the first of them may be asked again.
        retry_after: Duration,
    },
    /// A hard session has lost its provider.
    #[error("the session's provider is gone, and the session is hard")]
    SessionLost,
    /// Each of those that match has been tried for this stream.
    #[error("every provider that matches has been tried")]
    AllTried,
    /// Another may not be tried.
    #[error(transparent)]
    RetryRefused(#[from] RetryRefused),
}

/// Why another candidate may not be tried after one has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RetryRefused {
    /// Three have been.
    #[error("{MAX_CANDIDATES_PER_OPEN} providers have been tried")]
    Candidates,
    /// It has taken ten seconds.
    #[error("no provider has answered in time")]
    Time,
    /// A tenth of all opens are retries already.
    #[error("too many opens fail: the budget for further attempts is spent")]
    Budget,
}

/// An open on its way to a provider.
#[derive(Clone, Debug)]
pub struct Search {
    options: Arc<Options>,
    session: Option<SessionKey>,
    target: u64,
    began_at: Moment,
    tried: Vec<Uuid>,
}

impl Search {
    /// Candidates that have been asked.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.tried.len()
    }

    /// What is wanted.
    #[must_use]
    pub const fn options(&self) -> &Arc<Options> {
        &self.options
    }
}

/// A candidate to be asked now. Ends in exactly one of [`Selector::failed`], [`Selector::refused_by_target`],
/// [`Selector::abandoned`] and [`Selector::give_back`], or in [`Selector::opened`] and later [`Selector::closed`].
#[derive(Clone, Debug)]
pub struct Pick {
    /// Who.
    pub candidate: Candidate,
    /// How long to wait for its answer.
    pub patience: Duration,
    session: Option<SessionKey>,
    began_at: Moment,
}

/// The state of one proxy.
#[derive(Debug)]
pub struct Selector {
    list: Arc<Snapshot>,
    health: HashMap<Uuid, Health>,
    pins: Pins,
    refusals: Lru<(Uuid, u64), Moment>,
    budget: RetryBudget,
    patience: Patience,
    random: fastrand::Rng,
}

impl Selector {
    /// Nobody is known. The seed makes a run repeatable.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            list: Arc::default(),
            health: HashMap::new(),
            pins: Pins::new(MAX_PINS),
            refusals: Lru::new(MAX_REFUSALS),
            budget: RetryBudget::new(),
            patience: Patience::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// A new list, which replaces the last one whole.
    pub fn set_list(&mut self, list: Arc<Snapshot>, now: Moment) {
        self.health.retain(|provider, health| {
            health.seen(list.find(*provider));
            health.live > 0 || now.since(health.used_at) < FORGOTTEN_AFTER
        });
        self.list = list;
    }

    /// The list.
    #[must_use]
    pub const fn list(&self) -> &Arc<Snapshot> {
        &self.list
    }

    /// How many attempts and retries there have been lately, and how patient it is.
    #[must_use]
    pub const fn pace(&self) -> (&RetryBudget, &Patience) {
        (&self.budget, &self.patience)
    }

    /// A customer wants a stream to `target` (as text, `host:port`).
    pub fn search(&mut self, account: &str, options: Arc<Options>, target: &str, now: Moment) -> Search {
        self.budget.opened(now);
        let session = options.session.as_ref().map(|session| SessionKey::new(account, session));
        let target = crate::hash::of_parts(&[target.as_bytes()]);
        Search { options, session, target, began_at: now, tried: Vec::new() }
    }

    /// Who is asked now: the first candidate of a search, or the next one after a failure.
    ///
    /// # Errors
    ///
    /// If nobody can be asked, with the reason. After a failure, what that said is worth more to the customer than
    /// [`NoCandidate::AllTried`] and [`NoCandidate::RetryRefused`].
    pub fn pick(&mut self, search: &mut Search, now: Moment) -> Result<Pick, NoCandidate> {
        if search.tried.len() >= MAX_CANDIDATES_PER_OPEN {
            return Err(RetryRefused::Candidates.into());
        }
        if now.since(search.began_at) >= MAX_SEARCH {
            return Err(RetryRefused::Time.into());
        }
        let candidate = self.choose(search, now)?.clone();
        if !search.tried.is_empty() && !self.budget.take_retry(now) {
            return Err(RetryRefused::Budget.into());
        }
        search.tried.push(candidate.provider);
        let health = self.health.entry(candidate.provider).or_insert_with(|| Health::new(now));
        health.live = health.live.saturating_add(1);
        health.used_at = now;
        let patience = self.patience.current();
        Ok(Pick { candidate, patience, session: search.session.clone(), began_at: now })
    }

    /// It has opened the stream, which counts as live until [`Self::closed`].
    pub fn opened(&mut self, search: &Search, pick: &Pick, now: Moment) {
        self.answered(pick, now);
        if let (Some(key), Some(session)) = (&search.session, &search.options.session) {
            self.pins.opened(key, pick.candidate.provider, session.ttl, now);
        }
    }

    /// The target refused, could not be reached or has no name: the provider has done its part.
    pub fn refused_by_target(&mut self, pick: &Pick, now: Moment) {
        self.answered(pick, now);
        self.release(pick);
    }

    /// It has not opened the stream, and is to blame.
    pub fn failed(&mut self, search: &Search, pick: &Pick, fault: Fault, now: Moment) {
        let provider = pick.candidate.provider;
        match fault {
            Fault::TimedOut => self.patience.ran_out(now.since(pick.began_at)),
            Fault::Policy => self.refusals.insert((provider, search.target), now + REFUSAL_REMEMBERED),
            Fault::Gone | Fault::Failed | Fault::Full(_) => {}
        }
        let jitter = self.random.u64(..);
        if let Some(health) = self.health.get_mut(&provider) {
            health.failed(fault, &pick.candidate, now, jitter);
        }
        self.release(pick);
    }

    /// The customer left before there was an answer: that says nothing about the provider.
    pub fn abandoned(&mut self, pick: &Pick) {
        self.release(pick);
    }

    /// It was not its fault, nor the customer's: the same search may ask it once more.
    pub fn give_back(&mut self, search: &mut Search, pick: &Pick) {
        search.tried.retain(|tried| *tried != pick.candidate.provider);
        self.release(pick);
    }

    /// The provider that a search's session has, if it is named and pinned.
    pub fn pinned(&mut self, search: &Search, now: Moment) -> Option<Uuid> {
        search.session.as_ref().and_then(|key| self.pins.find(key, now))
    }

    /// The stream has ended.
    pub fn closed(&mut self, pick: &Pick, now: Moment) {
        self.release(pick);
        if let Some(key) = &pick.session {
            self.pins.closed(key, pick.candidate.provider, now);
        }
    }

    /// Streams and opens under way through a provider.
    #[must_use]
    pub fn live(&self, provider: Uuid) -> u32 {
        self.health.get(&provider).map_or(0, |health| health.live)
    }

    fn choose(&mut self, search: &Search, now: Moment) -> Result<&Candidate, NoCandidate> {
        let usual_ms = self.patience.smoothed().map_or(USUAL_MS, |usual| usual.as_secs_f64() * 1_000.0);
        let (health, refusals) = (&self.health, &self.refusals);
        let judge = |candidate: &Candidate| {
            let provider = candidate.provider;
            if search.tried.contains(&provider) {
                return Verdict::Tried;
            }
            let refused = refusals.peek(&(provider, search.target)).copied();
            let health = health.get(&provider);
            let rests = health.and_then(|health| health.rests(candidate, now));
            match refused.into_iter().chain(rests).filter(|until| *until > now).max() {
                Some(until) => Verdict::Rests(until),
                None => Verdict::Cost(health.map_or_else(|| usual_ms, |health| health.cost(usual_ms))),
            }
        };
        let options = &*search.options;
        let Some((key, session)) = search.session.as_ref().zip(options.session.as_ref()) else {
            return choice::cheaper_of_two(&self.list, options, &judge, &mut self.random, now);
        };
        if let Some(provider) = self.pins.find(key, now) {
            let pinned = self.list.find(provider).filter(|candidate| candidate.answers(options));
            let hard = session.stickiness == Stickiness::Hard;
            match pinned.map(|pinned| (pinned, judge(pinned))) {
                Some((pinned, Verdict::Cost(_))) => return Ok(pinned),
                Some((_, Verdict::Rests(until))) if hard => {
                    return Err(NoCandidate::Resting { retry_after: until.since(now) });
                }
                _ if hard => return Err(NoCandidate::SessionLost),
                _ => {}
            }
        }
        let place = key.hash();
        choice::greatest(
            &self.list,
            options,
            &judge,
            |candidate| sticky::weight(place, candidate.provider),
            now,
        )
    }

    fn answered(&mut self, pick: &Pick, now: Moment) {
        let took = now.since(pick.began_at);
        self.patience.answered(took);
        if let Some(health) = self.health.get_mut(&pick.candidate.provider) {
            health.answered(took, now);
        }
    }

    fn release(&mut self, pick: &Pick) {
        if let Some(health) = self.health.get_mut(&pick.candidate.provider) {
            health.live = health.live.saturating_sub(1);
        }
    }
}
