//! Attempts to connect (`connection_attempts`): who tries too often, or has been refused too often, is turned away before
//! anything is done for him. No hash is made, no password looked at, no server asked.

use super::Engine;
use crate::connection::ClientId;
use crate::events::EventKind;
use crate::origin::{Origin, short_name};
use crate::seam::Transport;
use crate::snapshot::AttemptCounts;
use crate::texts;
use overload::attempts::{AttemptLimits, AttemptRefusal, Attempts};
use settings::pooler::GuardPolicy;
use std::sync::Arc;

/// Who tries.
type Source = (Arc<str>, Origin);

/// Attempts of all sources, and how many were turned away.
#[derive(Debug, Default)]
pub(super) struct ConnectionAttempts {
    sources: Attempts<Source>,
    counts: AttemptCounts,
}

impl Engine {
    /// True if this attempt is not looked at; then the client is told when to come back.
    pub(super) fn refuse_attempt(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        user: &str,
    ) -> bool {
        let policy = self.config.general.connection_attempts;
        if policy == GuardPolicy::Off {
            return false;
        }
        let Some(source) = self.source_of(id, user) else { return false };
        let (now, limits) = (self.now, self.attempt_limits());
        let Err(refusal) = self.connection_attempts.sources.admit(now, &source, limits) else { return false };
        if policy == GuardPolicy::Observe {
            self.connection_attempts.counts.would_refuse += 1;
            return false;
        }
        let (what, cause) = match refusal {
            AttemptRefusal::TooMany { .. } => {
                self.connection_attempts.counts.too_many += 1;
                ("too many connection attempts", "too_many")
            }
            AttemptRefusal::Refused { .. } => {
                self.connection_attempts.counts.refused_before += 1;
                ("too many failed logins", "refused_before")
            }
        };
        self.record(None, EventKind::AttemptRefused { cause });
        let text = format!("{what} of user \"{}\" from this address (connection_attempts)", source.0);
        // Rounded up, so that who keeps to it is not too early.
        let wait_ms = refusal.retry_at().since(now).as_micros().div_ceil(1_000);
        let farewell = texts::fatal_with_hint(
            texts::ATTEMPT_REFUSED,
            &text,
            &format!("Nothing was done; retry after {wait_ms} ms."),
        );
        self.dismiss_client(transport, id, &farewell, &text);
        true
    }

    /// A client has not proved who it is.
    pub(super) fn note_refused_proof(&mut self, transport: &mut impl Transport, id: ClientId, user: &str) {
        if self.config.general.connection_attempts == GuardPolicy::Off {
            return;
        }
        let Some(source) = self.source_of(id, user) else { return };
        let [a, b, c, d, e, f, g, h, ..] = transport.random();
        let jitter = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let (now, limits) = (self.now, self.attempt_limits());
        self.connection_attempts.sources.refused(now, &source, limits, jitter);
    }

    /// A client has proved who it is.
    pub(super) fn note_proof(&mut self, id: ClientId, user: &str) {
        if !self.connection_attempts.sources.is_empty()
            && let Some(source) = self.source_of(id, user)
        {
            self.connection_attempts.sources.succeeded(&source);
        }
    }

    /// A reload may have corrected what was refused, or switched the limits off: nothing is held against anybody.
    pub(super) fn forget_attempts(&mut self) {
        self.connection_attempts.sources.clear();
    }

    /// For the metrics.
    pub(super) fn attempt_counts(&self) -> AttemptCounts {
        AttemptCounts { sources: self.connection_attempts.sources.len(), ..self.connection_attempts.counts }
    }

    fn source_of(&self, id: ClientId, user: &str) -> Option<Source> {
        Some((short_name(user), Origin::of(self.clients.find(id)?.address)))
    }

    fn attempt_limits(&self) -> AttemptLimits {
        let general = &self.config.general;
        AttemptLimits {
            rate_per_second: general.connection_attempt_rate,
            burst: general.connection_attempt_burst,
            refusals: general.failed_login_limit,
        }
    }
}
