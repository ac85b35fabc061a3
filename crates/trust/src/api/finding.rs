//! Providers and places, and what a proxy says about the exits that it used.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The most candidates in one answer, and the default of `limit`.
pub const MOST_CANDIDATES: usize = 200;
/// The most exits in one report.
pub const MOST_EXITS: usize = 1_000;

/// `GET /v1/candidates?country=DE&provider=…&limit=…`: connected providers in random order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CandidatesAnswer {
    /// At most [`MOST_CANDIDATES`].
    pub candidates: Vec<Candidate>,
    /// The api's clock.
    pub now_ms: u64,
    /// Connected providers of the network that fit, whether listed here or not.
    pub connected: u64,
    /// Registered and not disabled providers that fit, connected or not.
    pub registered: u64,
    /// The database gives no answer: this is the last good list, some of which may have left.
    #[serde(default)]
    pub stale: bool,
    /// When the list was good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of_ms: Option<u64>,
}

/// A provider to dial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub provider: Uuid,
    /// Its start.
    pub epoch: u64,
    /// 64 bytes: Ed25519 key, X25519 key (to seal to).
    pub identity: String,
    /// The relay that has it, `host:port`.
    pub relay: String,
    /// Two capital letters, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Since when it has been connected.
    pub connected_at_ms: u64,
    /// The last time that its relay said that it lives.
    pub seen_at_ms: u64,
}

/// `GET /v1/locations`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LocationsAnswer {
    /// One for each country that a connected provider named; the others stand under no country.
    pub locations: Vec<Location>,
    /// These figures are the last good ones, and nobody vouches for them now.
    #[serde(default)]
    pub stale: bool,
    /// When they were good, if they are of a generation of pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of_ms: Option<u64>,
}

/// Connected providers of one country.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Location {
    /// Two capital letters; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// How many.
    pub connected: u64,
    /// Of them, those through which a stream worked within the last hour; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<u64>,
}

/// `GET /status`: alive, whatever the database does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusAnswer {
    /// `ok`.
    pub status: String,
    /// How many providers there are; absent while nothing is known of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub providers: Option<ProviderFigures>,
}

/// How many providers a network has. To be listed is one thing, to work another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderFigures {
    /// Connected, as far as relays say.
    pub listed: u64,
    /// Of them, those through which a stream worked within the last hour.
    pub verified: u64,
    /// Registered and not disabled, connected or not.
    pub registered: u64,
    /// When this was last known to be true.
    pub as_of_ms: u64,
    /// That is longer ago than it should be.
    pub stale: bool,
    /// Why, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// `GET /v1/pools`: the newest generation of pools. With `If-None-Match` of the answer before, 304 if nothing has changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoolsAnswer {
    /// The signed manifest: see `PoolManifest::verify`. Each pool's bytes are at `GET /v1/pools/{hash}`.
    pub manifest: String,
    /// When it was last known to be true.
    pub confirmed_at_ms: u64,
    /// It has not been confirmed for longer than it should be: used all the same, and said to be so.
    pub stale: bool,
    /// Why it is stale, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The api's clock.
    pub now_ms: u64,
}

/// `POST /v1/exits`, by a proxy: again is the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitsRequest {
    /// At most [`MOST_EXITS`].
    pub exits: Vec<Exit>,
}

/// One stream that left through a provider. Kept for a bounded time, for the abuse look-up only.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// Chosen by the proxy, one a stream.
    pub exit: Uuid,
    /// The login that used it.
    pub proxy_account: String,
    /// The provider.
    pub provider: Uuid,
    /// The target's port.
    pub port: u16,
    /// When the stream was opened.
    pub opened_at_ms: u64,
    /// When it ended.
    pub closed_at_ms: u64,
}
