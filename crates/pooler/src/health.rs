//! Metrics and health over HTTP, on `metrics_listen`. Nothing here takes a slot of a pool or a place in a line.
//!
//! | path | answers 200 when |
//! |---|---|
//! | `/metrics` | the data plane answers |
//! | `/healthz/live` | the data plane answers within a second |
//! | `/healthz/ready` | it also listens and is not stopping |
//! | `/healthz/database` | no pool's database is gone; `state` tells `fine` from `saturated` |
//!
//! A pool that is merely full is `saturated` and still 200: restarting a pooler, or taking it out of a balancer, because
//! its pools are full makes the load on what is left worse.

mod http;
mod page;
pub mod rules;
#[cfg(test)]
mod tests;

use crate::console::source::Source;
use crate::console::{ConsoleContext, wall_clock};
use crate::control::EngineHandle;
use pooling::snapshot::Overview;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

pub use http::{MAX_CONNECTIONS, MAX_HEAD_BYTES, serve};

/// How soon a live data plane answers.
pub const LIVE_LIMIT: Duration = Duration::from_secs(1);

/// How old the overview is at least with which a new one is compared.
const COMPARE_AFTER: Duration = Duration::from_secs(5);

/// Counts the log lines that were lost.
pub type LostLines = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What all requests share.
pub struct HealthContext<S = EngineHandle> {
    source: S,
    console: Arc<ConsoleContext<S>>,
    version: &'static str,
    started: SystemTime,
    listening: AtomicBool,
    lost_lines: LostLines,
    earlier: Mutex<Earlier>,
}

#[derive(Debug, Default)]
struct Earlier {
    /// What is compared with.
    compared: Option<Arc<Overview>>,
    /// What will be, once it is old enough.
    next: Option<(Instant, Arc<Overview>)>,
}

impl<S: Source> HealthContext<S> {
    /// `console` is told of each scrape, for its averages.
    #[must_use]
    pub fn new(
        source: S,
        console: Arc<ConsoleContext<S>>,
        version: &'static str,
        lost_lines: LostLines,
    ) -> Self {
        Self {
            source,
            console,
            version,
            started: wall_clock(),
            listening: AtomicBool::new(false),
            lost_lines,
            earlier: Mutex::default(),
        }
    }

    /// Says that clients can connect now, or no longer.
    pub fn set_listening(&self, listening: bool) {
        self.listening.store(listening, Ordering::Relaxed);
    }

    fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// Keeps `overview` for later and gives one from at least [`COMPARE_AFTER`] ago, if there is one.
    fn exchange(&self, now: Instant, overview: &Arc<Overview>) -> Option<Arc<Overview>> {
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        if earlier.next.as_ref().is_none_or(|(since, _)| now.duration_since(*since) >= COMPARE_AFTER) {
            let last = earlier.next.replace((now, Arc::clone(overview)));
            earlier.compared = last.map(|(_, overview)| overview);
        }
        earlier.compared.clone()
    }
}

impl<S> std::fmt::Debug for HealthContext<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HealthContext").field("listening", &self.listening).finish_non_exhaustive()
    }
}
