//! What an operator may set.

use crate::elsewhere::MAX_PEERS;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The `[relay]` section.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// How clients reach it, `host:port`; the listening address if empty.
    pub public_address: String,
    /// Other relays that clients are told of, `host:port`, besides those that this one has a link to.
    pub other_addresses: Vec<String>,
    /// Other relays of the network that are dialled, `host:port`, besides those that the database names.
    pub peers: Vec<String>,
    /// What becomes of a stream that is wanted from another relay's provider.
    pub forwarding: Forwarding,
    /// Silence after which another relay is asked, at least; after three times as long it is given up.
    pub peer_ping_interval_ms: u32,
    /// Where it keeps its usage journal and what it knows of keys.
    pub state_folder: PathBuf,
    /// Handshakes a second; whoever comes beyond waits in a line, or is told when to come back.
    pub admissions_per_second: u32,
    /// Connections that may wait for their handshake.
    pub admission_line: usize,
    /// Silence after which a client is asked, at least.
    pub ping_interval_ms: u32,
    /// Pings a second of all clients together: with many of them, the interval grows.
    pub pings_per_second: u32,
    /// Unanswered pings after which a client is given up.
    pub ping_misses: u8,
    /// The greatest wait before a client's first attempt to come back.
    pub backoff_base_ms: u32,
    /// The greatest wait before any attempt.
    pub backoff_cap_ms: u32,
    /// A connection that held for so long ends the count of attempts.
    pub stable_after_ms: u32,
    /// Streams of one provider at once.
    pub streams_per_provider: u32,
    /// Streams of one opener at once.
    pub streams_per_opener: u32,
    /// The credit that each end of a stream starts with.
    pub window_bytes: u32,
    /// The most that it may grow to.
    pub greatest_window_bytes: u32,
    /// A stream whose block of bytes is used up waits for so long for the one that follows.
    pub contract_wait_ms: u64,
    /// A database that has owed an answer for so long is gone: contracts that are used up go on for a bounded allowance. It is asked at
    /// least every 5 s; together that is to be less than `contract_wait_ms`.
    pub offline_after_ms: u64,
    /// What may wait here for slow receivers, all connections together.
    pub buffer_bytes: usize,
    /// A refused client is held for so long before it is closed, so that it does not come back at once.
    pub hold_refused_ms: u64,
    /// When draining: streams may go on for so long.
    pub drain_deadline_ms: u32,
    /// When draining: clients go within this time.
    pub drain_spread_ms: u32,
    /// How often the relay says that it lives. The worker's `relay_beat_ms` has to be the same.
    pub beat_interval_ms: u64,
    /// How often usage is written. What was used since the last time is lost if the relay is killed.
    pub usage_interval_ms: u64,
    /// Usage that the database has not taken yet may fill so much of the disk; beyond it, no new streams are begun.
    pub journal_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8443)),
            public_address: String::new(),
            other_addresses: Vec::new(),
            peers: Vec::new(),
            forwarding: Forwarding::Asked,
            peer_ping_interval_ms: 5_000,
            state_folder: PathBuf::from("relay"),
            admissions_per_second: 1_000,
            admission_line: 2_000,
            ping_interval_ms: 60_000,
            pings_per_second: 500,
            ping_misses: 2,
            backoff_base_ms: 1_000,
            backoff_cap_ms: 300_000,
            stable_after_ms: 60_000,
            streams_per_provider: 1_024,
            streams_per_opener: 65_536,
            window_bytes: 256 * 1024,
            greatest_window_bytes: 4 * 1024 * 1024,
            contract_wait_ms: 10_000,
            offline_after_ms: 4_000,
            buffer_bytes: 512 * 1024 * 1024,
            hold_refused_ms: 60_000,
            drain_deadline_ms: 600_000,
            drain_spread_ms: 30_000,
            beat_interval_ms: 5_000,
            usage_interval_ms: 1_000,
            journal_bytes: 1 << 30,
        }
    }
}

/// Whether streams are passed on to other relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forwarding {
    /// Where the opener says that it cannot go there; others are told where to go.
    #[default]
    Asked,
    /// Always, if there is a link to that relay.
    Always,
    /// Never.
    Never,
}

/// A configuration that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("relay.{setting}: {reason}")]
pub struct InvalidConfig {
    /// Which setting.
    pub setting: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Config {
    /// How clients and relays reach it.
    #[must_use]
    pub fn reached_at(&self) -> String {
        if self.public_address.is_empty() { self.listen.to_string() } else { self.public_address.clone() }
    }

    /// Looks for what cannot work.
    ///
    /// # Errors
    /// The first setting that cannot.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        let wrong = |setting, reason| Err(InvalidConfig { setting, reason });
        if self.admissions_per_second == 0 {
            return wrong("admissions_per_second", "nobody could ever come in");
        }
        if self.buffer_bytes < 16 * 1024 * 1024 {
            return wrong("buffer_bytes", "is less than 16 MiB: a few slow receivers would fill it");
        }
        if self.pings_per_second == 0 || self.ping_interval_ms == 0 || self.ping_misses == 0 {
            return wrong("ping_interval_ms", "a silent client must be asked at some time");
        }
        if !(10..=60_000).contains(&self.beat_interval_ms) {
            return wrong("beat_interval_ms", "is not between 10 ms and a minute");
        }
        if self.peer_ping_interval_ms == 0 {
            return wrong("peer_ping_interval_ms", "a silent relay must be asked at some time");
        }
        if self.peers.len() >= MAX_PEERS {
            return wrong("peers", "names more relays than a network has");
        }
        if self.backoff_base_ms > self.backoff_cap_ms {
            return wrong("backoff_base_ms", "is more than backoff_cap_ms");
        }
        if self.offline_after_ms == 0 {
            return wrong("offline_after_ms", "every pause of the database would be an outage");
        }
        if self.offline_after_ms >= self.contract_wait_ms {
            return wrong(
                "offline_after_ms",
                "is not less than contract_wait_ms: streams would be reset before an outage counts as one",
            );
        }
        if self.window_bytes < 16_384 {
            return wrong("window_bytes", "holds less than one frame");
        }
        if self.window_bytes > self.greatest_window_bytes {
            return wrong("window_bytes", "is more than greatest_window_bytes");
        }
        Ok(())
    }
}
