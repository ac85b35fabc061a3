//! Look-ups of candidates, shared by all who ask at about the same time: one query at once, and the database rests ten times
//! as long as it took. Each asker gets an order of its own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clock::unix_ms;
use store::{Candidate, CandidatesFound, Store};
use tokio::time::timeout;
use trust::api::MOST_CANDIDATES;

use crate::answer::Refusal;

/// A look-up holds for at least so long, ms.
const LEAST_KEEP_MS: u64 = 1_000;
/// And at most, ms: so old is a list of the living at most, but for [`STALE_MS`].
const MOST_KEEP_MS: u64 = 5_000;
/// While another one is under way, an older one serves, ms.
const STALE_MS: u64 = 10_000;
/// How long a first look-up is waited for.
const WAIT_LIMIT: Duration = Duration::from_secs(3);
/// Countries that are kept; there are 676 pairs of letters and none at all.
const MOST_KEPT: usize = 700;

#[derive(Default)]
pub(crate) struct Lookups {
    kept: Mutex<HashMap<Option<String>, Kept>>,
    turn: tokio::sync::Mutex<()>,
}

struct Kept {
    at_ms: u64,
    fresh_for_ms: u64,
    found: CandidatesFound,
}

impl Lookups {
    /// At most `limit` of the candidates of a country (or of all) in random order, and when they were looked up.
    pub(crate) async fn candidates(
        &self,
        store: &Store,
        country: Option<String>,
        limit: usize,
    ) -> Result<CandidatesFound, Refusal> {
        if let Some(found) = self.kept(&country, limit, |kept| kept.fresh_for_ms) {
            return Ok(found);
        }
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(_) => {
                if let Some(found) = self.kept(&country, limit, |_| STALE_MS) {
                    return Ok(found);
                }
                timeout(WAIT_LIMIT, self.turn.lock()).await.map_err(|_| Refusal::busy())?
            }
        };
        if let Some(found) = self.kept(&country, limit, |kept| kept.fresh_for_ms) {
            return Ok(found);
        }
        let most = u32::try_from(MOST_CANDIDATES).unwrap_or(u32::MAX);
        let begun_ms = unix_ms();
        let found = store.candidates(country.clone(), None, most).await?;
        let took_ms = unix_ms().saturating_sub(begun_ms);
        let fresh_for_ms = (10 * took_ms).clamp(LEAST_KEEP_MS, MOST_KEEP_MS);
        let answer = pick(&found, limit);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(country, Kept { at_ms: begun_ms, fresh_for_ms, found });
        Ok(answer)
    }

    fn kept(
        &self,
        country: &Option<String>,
        limit: usize,
        for_ms: impl Fn(&Kept) -> u64,
    ) -> Option<CandidatesFound> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get(country)?;
        (unix_ms().saturating_sub(kept.at_ms) < for_ms(kept)).then(|| pick(&kept.found, limit))
    }
}

fn pick(found: &CandidatesFound, limit: usize) -> CandidatesFound {
    let mut candidates: Vec<Candidate> = found.candidates.clone();
    fastrand::shuffle(&mut candidates);
    candidates.truncate(limit);
    CandidatesFound { candidates, connected: found.connected, registered: found.registered }
}
