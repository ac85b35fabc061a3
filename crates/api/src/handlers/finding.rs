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
    let (app, now_ms) = (&context.app, context.now_ms);
    let silence_ms = app.relay_silence_ms;
    let found = match wanted.provider {
        Some(_) => app.store.candidates(wanted.country, wanted.provider, 1, now_ms, silence_ms).await?,
        None => app.lookups.candidates(&app.store, wanted.country, limit, silence_ms).await?,
    };
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
        ..CandidatesAnswer::default()
    })
}

pub(crate) async fn locations(context: Context) -> Answer {
    let counted = context.app.store.locations(context.now_ms, context.app.relay_silence_ms).await?;
    let locations = counted
        .into_iter()
        .map(|(country, connected)| Location { country, connected, verified: None })
        .collect();
    ok(&LocationsAnswer { locations, ..LocationsAnswer::default() })
}
