//! Providers and places.

use selection::Country;
use selection::pool::{Member, PoolName};
use serde::Deserialize;
use trust::ClientId;
use trust::api::{Candidate, CandidatesAnswer, Location, LocationsAnswer, MOST_CANDIDATES};

use super::joining::check_country;
use crate::answer::Refusal;
use crate::passwords::encode;
use crate::pools::Served;
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
    if app.pools.is_database_silent()
        && let Some(answer) = last_good(&context, &wanted, limit)
    {
        return answer;
    }
    let country = wanted.country.clone();
    let found = match wanted.provider {
        Some(_) => {
            let found = app.store.candidates(country, wanted.provider, 1).await;
            found.map_err(Refusal::from)
        }
        None => app.lookups.candidates(&app.store, country, limit).await,
    };
    let found = match found {
        Ok(found) => found,
        Err(refusal) => return last_good(&context, &wanted, limit).unwrap_or(Err(refusal)),
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

/// What the last generation of pools says, while the database says nothing.
fn last_good(context: &Context, wanted: &Wanted, limit: usize) -> Option<Answer> {
    let served = context.app.pools.current()?;
    let country = wanted.country.as_deref().and_then(Country::parse);
    let fits = |member: &&Member| {
        country.is_none_or(|country| member.country == country)
            && wanted.provider.is_none_or(|provider| member.provider == provider.0)
    };
    let mut members: Vec<&Member> = served.members().iter().filter(fits).collect();
    let connected = members.len() as u64;
    fastrand::shuffle(&mut members);
    members.truncate(limit);
    let as_of_ms = served.generation.confirmed_at_ms();
    let candidates = members.into_iter().map(|member| Candidate {
        provider: member.provider,
        epoch: member.epoch,
        identity: encode(&member.identity),
        relay: member.relay.to_string(),
        country: named(member.country),
        connected_at_ms: member.connected_at_ms,
        seen_at_ms: as_of_ms,
    });
    // How many are registered besides those that are connected is known for all of them only.
    let all = wanted.country.is_none() && wanted.provider.is_none();
    let registered = if all { served.generation.manifest().registered } else { connected };
    Some(ok(&CandidatesAnswer {
        candidates: candidates.collect(),
        now_ms: context.now_ms,
        connected,
        registered,
        stale: true,
        as_of_ms: Some(as_of_ms),
    }))
}

/// How the api writes a country; nothing for one that is not known.
fn named(country: Country) -> Option<String> {
    (country != Country::UNKNOWN).then(|| country.as_str().to_ascii_uppercase())
}

pub(crate) async fn locations(context: Context) -> Answer {
    let served = context.app.pools.current();
    // A generation that is fresh costs no database.
    if let Some(served) = served.as_ref().filter(|served| !served.age(context.now_ms).stale) {
        return ok(&counted(served, false));
    }
    match context.app.store.locations().await {
        Ok(counted) => {
            let location = |(country, connected)| Location { country, connected, verified: None };
            let locations = counted.into_iter().map(location).collect();
            ok(&LocationsAnswer { locations, ..LocationsAnswer::default() })
        }
        Err(error) => match served {
            Some(served) => ok(&counted(&served, true)),
            None => Err(error.into()),
        },
    }
}

/// The figures of a generation, the largest first.
fn counted(served: &Served, stale: bool) -> LocationsAnswer {
    let pools = served.generation.manifest().pools.iter();
    let mut locations: Vec<Location> = pools
        .filter_map(|pool| match pool.name.parse() {
            Ok(PoolName::Country(country)) => Some(Location {
                country: named(country),
                connected: pool.connected.into(),
                verified: Some(pool.verified.into()),
            }),
            _ => None,
        })
        .collect();
    locations.sort_by(|one, other| other.connected.cmp(&one.connected).then(one.country.cmp(&other.country)));
    LocationsAnswer { locations, stale, as_of_ms: Some(served.generation.confirmed_at_ms()) }
}
