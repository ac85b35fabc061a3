//! Storms: who tries to connect, or loses requests, far more often than before. They are named, and nothing else is done.
//!
//! A lost request is one that got no server: refused, timed out in line, or left by its client while it waited. Requests
//! that are served cost nothing here.

use super::Engine;
use crate::connection::ClientId;
use crate::events::EventKind;
use crate::origin::{Origin, short_name};
use crate::parameters::APPLICATION_NAME;
use crate::snapshot::StormRow;
use overload::storms::{StormReport, Storms};
use overload::{Moment, RateLimited, TokenBucket};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// Log lines about storms: one each ten seconds, after three at once.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
const LOG_BURST: u32 = 3;

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Attempts,
    LostRequests,
}

impl What {
    const fn label(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::LostRequests => "lost_requests",
        }
    }
}

/// Who does it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Source {
    user: Arc<str>,
    application_name: Arc<str>,
    origin: Origin,
}

/// What all sources do.
#[derive(Debug)]
pub(super) struct StormWatch {
    attempts: Storms<Source>,
    lost_requests: Storms<Source>,
    log: RateLimited,
}

impl Default for StormWatch {
    fn default() -> Self {
        Self {
            attempts: Storms::new(),
            lost_requests: Storms::new(),
            log: RateLimited::new(TokenBucket::new(1, LOG_INTERVAL, LOG_BURST)),
        }
    }
}

impl StormWatch {
    /// Storms that ever began, and that go on: of attempts, of lost requests.
    pub(super) fn counts(&self, now: Moment) -> [(&'static str, u64, usize); 2] {
        [(What::Attempts, &self.attempts), (What::LostRequests, &self.lost_requests)]
            .map(|(what, storms)| (what.label(), storms.begun(), storms.active(now)))
    }
}

impl Engine {
    /// A client has sent its start-up packet.
    pub(super) fn note_attempt(&mut self, id: ClientId, user: &str, parameters: &[(String, String)]) {
        let Some(client) = self.clients.find(id) else { return };
        let named = parameters.iter().rev().find(|(name, _)| name == "application_name");
        let source = Source {
            user: short_name(user),
            application_name: short_name(named.map_or("", |(_, value)| value)),
            origin: Origin::of(client.address),
        };
        let news = self.storms.attempts.note(self.now, &source);
        self.tell_storms(What::Attempts, &news);
    }

    /// A client's request has got no server.
    pub(super) fn note_lost_request(&mut self, id: ClientId) {
        let Some(client) = self.clients.find(id) else { return };
        let Some(user) = &client.login_user else { return };
        let name = client.parameters.value(APPLICATION_NAME);
        let source = Source {
            user: short_name(user),
            application_name: short_name(name.map_or("", AsRef::as_ref)),
            origin: Origin::of(client.address),
        };
        let news = self.storms.lost_requests.note(self.now, &source);
        self.tell_storms(What::LostRequests, &news);
    }

    fn tell_storms(&mut self, what: What, news: &[StormReport<Source>]) {
        for report in news {
            self.record(None, EventKind::StormBegan { what: what.label() });
            let Some(suppressed) = self.storms.log.allow(self.now) else { continue };
            warn!(
                what = what.label(),
                user = %report.source.user,
                application_name = %report.source.application_name,
                origin = %report.source.origin,
                per_second = report.rate_milli / 1_000,
                usual_per_second = report.usual_rate_milli / 1_000,
                suppressed,
                "a storm: one source does far more than it used to"
            );
        }
    }

    /// Storms that go on, and those of the last minutes; the greatest first.
    pub fn storm_rows(&mut self) -> Vec<StormRow> {
        let now = self.now;
        let news = self.storms.attempts.look(now);
        self.tell_storms(What::Attempts, &news);
        let news = self.storms.lost_requests.look(now);
        self.tell_storms(What::LostRequests, &news);
        let of = |what: What, storms: &Storms<Source>| {
            let rows = storms.reports().into_iter().map(move |report| StormRow {
                what: what.label(),
                user: report.source.user,
                application_name: report.source.application_name,
                origin: report.source.origin.to_string(),
                rate_milli: report.rate_milli,
                greatest_rate_milli: report.greatest_rate_milli,
                usual_rate_milli: report.usual_rate_milli,
                began: now.since(report.since),
                ended: report.over_at.map(|at| now.since(at)),
            });
            rows.collect::<Vec<_>>()
        };
        let mut rows = of(What::Attempts, &self.storms.attempts);
        rows.extend(of(What::LostRequests, &self.storms.lost_requests));
        rows
    }
}
