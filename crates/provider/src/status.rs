//! What `status` says: one screen for people, or JSON for programs.

use crate::limits::ByteCount;
use crate::state::Held;
use crate::wall::for_people;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How a provider stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// Whether it runs.
    pub running: bool,
    /// Its name in the network; absent if it has not joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The network's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The number of this start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The link to the relay.
    #[serde(default)]
    pub link: LinkStatus,
    /// Why no streams are taken; absent: they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// When streams are taken again by themselves, ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at_ms: Option<u64>,
    /// The owner has paused it.
    pub paused: bool,
    /// Streams.
    #[serde(default)]
    pub streams: StreamStatus,
    /// Bytes, both directions together.
    #[serde(default)]
    pub bytes: ByteStatus,
    /// What the owner gives.
    #[serde(default)]
    pub limits: LimitStatus,
    /// Where streams may go.
    #[serde(default)]
    pub policy: PolicyStatus,
    /// A credential that was definitely refused: it is not tried again by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The network's servers that it knows, `host:port`.
    #[serde(default)]
    pub servers: Vec<String>,
    /// The state folder.
    pub folder: String,
    /// When this was said, ms since 1970.
    pub now_ms: u64,
}

/// The link to the relay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// `connected`, `connecting`, `waiting`, `resting` (no streams are wanted), `held`, `draining`, or `down`.
    pub state: String,
    /// The relay, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<String>,
    /// What it runs over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Since when, ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// The last round trip, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// Connections that have stood since the start.
    pub connections: u64,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When, ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error_at_ms: Option<u64>,
    /// When it dials next, ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_dial_at_ms: Option<u64>,
    /// So much is this clock ahead of the relay's, ms, as it was at the start of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
    /// When the token ends, ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expires_at_ms: Option<u64>,
}

/// Streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamStatus {
    /// Now.
    pub now: usize,
    /// Since the start.
    pub taken: u64,
    /// Opens that became no stream, by cause, since the start.
    pub refused: BTreeMap<String, u64>,
    /// Streams that are over, by how they ended, since the start.
    pub ended: BTreeMap<String, u64>,
    /// Users that were stopped by the brake for scans, since the start.
    pub braked: u64,
}

/// Bytes, both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteStatus {
    /// Today, by the local calendar.
    pub today: u64,
    /// This month.
    pub month: u64,
}

/// What the owner gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Bytes a month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub month_bytes: Option<u64>,
    /// Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbit_s: Option<u32>,
    /// Streams at once.
    pub streams: u32,
    /// Hours of the day.
    pub hours: String,
}

/// Where streams may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// `web`, `open`, or a list.
    pub ports: String,
    /// Exceptions: single addresses that are reached although the rules say no.
    pub allow_exact: Vec<String>,
}

impl Status {
    /// What happens next without anybody doing anything.
    #[must_use]
    pub fn next(&self) -> String {
        if self.provider.is_none() && !self.running {
            return "nothing, until it joins a network with `holdfast provider join LINK`".to_owned();
        }
        if !self.running {
            return "nothing, until `holdfast provider up` is run".to_owned();
        }
        if let Some(held) = &self.held {
            return format!(
                "nothing: the network refused this provider for good ({}). Join again with `holdfast provider join`, or run \
                 `holdfast provider retry` if it has been cleared up",
                held.code
            );
        }
        if self.paused {
            return "nothing, until `holdfast provider resume` is run".to_owned();
        }
        if let Some(at_ms) = self.opens_at_ms {
            return format!("takes streams again {}", at(at_ms, self.now_ms));
        }
        match self.link.next_dial_at_ms {
            Some(at_ms) => format!("dials again {}", at(at_ms, self.now_ms)),
            None if self.link.state == "connected" => "carries streams".to_owned(),
            None => "is about to dial".to_owned(),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.provider.as_deref().unwrap_or("(not joined)");
        let runs = if self.running { "runs" } else { "does not run" };
        writeln!(out, "provider   {name}, {runs}, holdfast {}", self.version)?;
        if let Some(network) = &self.network {
            writeln!(out, "network    {network}")?;
        }
        writeln!(out, "link       {}", self.link_line())?;
        if let Some(error) = &self.link.last_error {
            let when =
                self.link.last_error_at_ms.map(|ms| format!(" ({})", for_people(ms))).unwrap_or_default();
            writeln!(out, "last error {error}{when}")?;
        }
        if let Some(held) = &self.held {
            writeln!(out, "REFUSED    {}: {} ({})", held.code, held.cause, for_people(held.at_ms))?;
        }
        writeln!(out, "next       {}", self.next())?;
        let closed = self.closed.as_ref().map(|why| format!(", takes none: {why}")).unwrap_or_default();
        writeln!(out, "streams    {} now, {} since the start{closed}", self.streams.now, self.streams.taken)?;
        for (what, counts) in [("refused", &self.streams.refused), ("ended", &self.streams.ended)] {
            if !counts.is_empty() {
                let counts: Vec<_> = counts.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
                writeln!(out, "  {what:8} {}", counts.join(", "))?;
            }
        }
        if self.streams.braked > 0 {
            writeln!(out, "  braked   {} (scans)", self.streams.braked)?;
        }
        let (today, month) = (ByteCount(self.bytes.today), ByteCount(self.bytes.month));
        writeln!(out, "bytes      {today} today, {month} this month{}", self.month_line())?;
        writeln!(out, "limits     {}", self.limit_line())?;
        writeln!(out, "ports      {}", self.policy.ports)?;
        for exact in &self.policy.allow_exact {
            writeln!(
                out,
                "WARNING    {exact} may be reached although the rules say no (egress.allow_exact)"
            )?;
        }
        write!(out, "folder     {}", self.folder)
    }
}

impl Status {
    fn link_line(&self) -> String {
        let mut line = self.link.state.clone();
        if let Some(relay) = &self.link.relay {
            line += &format!(" {relay}");
        }
        if let Some(transport) = &self.link.transport {
            line += &format!(" over {transport}");
        }
        if let Some(us) = self.link.round_trip_us {
            line += &format!(", round trip {}.{:01} ms", us / 1_000, us % 1_000 / 100);
        }
        if let Some(since_ms) = self.link.since_ms {
            line += &format!(", for {}", span(self.now_ms.saturating_sub(since_ms)));
        }
        if self.link.connections > 1 {
            line += &format!(", connection {}", self.link.connections);
        }
        line
    }

    fn month_line(&self) -> String {
        self.limits.month_bytes.map(|limit| format!(" of {}", ByteCount(limit))).unwrap_or_default()
    }

    fn limit_line(&self) -> String {
        let mut parts = vec![format!("{} streams", self.limits.streams)];
        parts.push(
            self.limits.month_bytes.map_or_else(
                || "no limit a month".to_owned(),
                |limit| format!("{} a month", ByteCount(limit)),
            ),
        );
        parts.push(
            self.limits.rate_mbit_s.map_or_else(|| "any rate".to_owned(), |rate| format!("{rate} Mbit/s")),
        );
        parts.push(format!("hours {}", self.limits.hours));
        parts.join(", ")
    }
}

fn at(at_ms: u64, now_ms: u64) -> String {
    let left = at_ms.saturating_sub(now_ms);
    if left < 3_600_000 { format!("in {}", span(left)) } else { format!("at {}", for_people(at_ms)) }
}

/// A span in its two greatest units.
fn span(ms: u64) -> String {
    let s = ms.div_ceil(1_000);
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        Status {
            version: "0.1.0".to_owned(),
            running: true,
            provider: Some("3f".to_owned()),
            link: LinkStatus {
                state: "connected".to_owned(),
                relay: Some("relay.example:443".to_owned()),
                transport: Some("TLS".to_owned()),
                since_ms: Some(1_000),
                round_trip_us: Some(12_340),
                connections: 1,
                ..LinkStatus::default()
            },
            now_ms: 3_662_000,
            folder: "/x".to_owned(),
            ..Status::default()
        }
    }

    #[test]
    fn a_screen_says_where_it_is_connected_how_fast_and_for_how_long() {
        let text = status().to_string();
        assert!(
            text.contains("connected relay.example:443 over TLS, round trip 12.3 ms, for 1 h 1 min"),
            "{text}"
        );
        assert!(text.contains("next       carries streams"), "{text}");
        assert!(text.lines().count() <= 24, "one screen");
    }

    #[test]
    fn what_happens_next_is_what_stands_in_the_way_first() {
        let mut status = status();
        status.link.next_dial_at_ms = Some(3_672_000);
        assert_eq!(status.next(), "dials again in 10 s");
        status.opens_at_ms = Some(3_662_000 + 120_000);
        assert_eq!(status.next(), "takes streams again in 2 min 0 s");
        status.paused = true;
        assert!(status.next().contains("resume"));
        status.held = Some(Held {
            code: "revoked".to_owned(),
            cause: "x".to_owned(),
            at_ms: 0,
            version: "0".to_owned(),
        });
        assert!(status.next().contains("revoked") && status.to_string().contains("REFUSED"));
        status.running = false;
        assert!(status.next().contains("provider up"));
    }

    #[test]
    fn an_exception_is_shown_as_a_warning() {
        let mut status = status();
        status.policy.allow_exact = vec!["127.0.0.1:8081".to_owned()];
        assert!(status.to_string().contains("WARNING    127.0.0.1:8081"));
    }

    #[test]
    fn programs_read_what_was_written() {
        let status = status();
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), status);
    }
}
