//! Providers and places.

use serde::Deserialize;
use trust::ClientId;
use trust::api::{Candidate, CandidatesAnswer, Location, LocationsAnswer, MOST_CANDIDATES};

use super::joining::check_country;
use crate::answer::Refusal;
use crate::passwords::encode;
use crate::routes::{Answer, Context, ok};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    country: Option<String>,
    provider: Option<ClientId>,
    limit: Option<usize>,
}

pub(crate) async fn candidates(context: Context) -> Answer {
    let wanted: Wanted = context.query()?;
    if let Some(country) = &wanted.country {
        check_country(country)?;
    }
    let limit = wanted.limit.unwrap_or(MOST_CANDIDATES);
    if limit > MOST_CANDIDATES {
        return Err(Refusal::bad(format!("'limit' is at most {MOST_CANDIDATES}")));
    }
    let limit = u32::try_from(limit).unwrap_or(0);
    let (now_ms, silence_ms) = (context.now_ms, context.app.relay_silence_ms);
    let found =
        context.app.store.candidates(wanted.country, wanted.provider, limit, now_ms, silence_ms).await?;
    let candidates = found.candidates.into_iter().map(|candidate| Candidate {
        provider: candidate.provider.0,
        epoch: candidate.epoch,
        identity: encode(candidate.identity.bytes()),
        relay: candidate.relay,
        country: candidate.country,
        connected_at_ms: candidate.connected_at_ms,
        seen_at_ms: candidate.seen_at_ms,
    });
    ok(&CandidatesAnswer {
        candidates: candidates.collect(),
        now_ms,
        connected: found.connected,
        registered: found.registered,
    })
}

pub(crate) async fn locations(context: Context) -> Answer {
    let counted = context.app.store.locations(context.now_ms, context.app.relay_silence_ms).await?;
    let locations = counted.into_iter().map(|(country, connected)| Location { country, connected }).collect();
    ok(&LocationsAnswer { locations })
}
