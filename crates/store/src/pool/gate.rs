//! Connections are opened one at a time, and after a failure not before a growing, random pause is over: a database in
//! trouble sees fewer attempts, not more.

use std::time::Duration;

use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::Config;

use crate::path::CONNECT_LIMIT;
use crate::session::Session;
use crate::{StoreError, error};

const FIRST_PAUSE_MS: u64 = 100;
const LONGEST_PAUSE_MS: u64 = 5_000;

#[derive(Default)]
pub(super) struct Gate(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    not_before: Option<Instant>,
    reason: String,
}

impl Gate {
    /// Opens a connection, unless that would have to wait until after `until`. `begun` hears when the attempt begins.
    pub(super) async fn open(
        &self,
        config: &Config,
        until: Instant,
        begun: oneshot::Sender<()>,
    ) -> Result<Session, StoreError> {
        let Ok(mut state) = tokio::time::timeout_at(until, self.0.lock()).await else {
            return Err(StoreError::Unreachable {
                reason: "others are waiting for a connection, too".to_owned(),
                retry_after_ms: FIRST_PAUSE_MS,
            });
        };
        if let Some(not_before) = state.not_before {
            if not_before > until {
                let retry_after = not_before.saturating_duration_since(Instant::now());
                return Err(state.unreachable(retry_after));
            }
            sleep_until(not_before).await;
        }
        let _ = begun.send(());
        // The driver's own limit ends with the connect: a server that accepts and says nothing would hold the gate for good.
        let limit = config.get_connect_timeout().copied().unwrap_or(CONNECT_LIMIT);
        let reason = match timeout(limit, Session::open(config)).await {
            Ok(Ok(session)) => {
                *state = State::default();
                return Ok(session);
            }
            Ok(Err(error)) => error::reason(&error),
            Err(_) => "it accepts connections, and does not answer".to_owned(),
        };
        let pause = state.failed(reason);
        Err(state.unreachable(pause))
    }
}

impl State {
    fn failed(&mut self, reason: String) -> Duration {
        let most = FIRST_PAUSE_MS.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE_MS);
        // Random after the cap, so that many processes do not fall into step.
        let pause = Duration::from_millis(fastrand::u64(most / 2..=most));
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause);
        self.reason = reason;
        pause
    }

    fn unreachable(&self, retry_after: Duration) -> StoreError {
        let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(LONGEST_PAUSE_MS);
        StoreError::Unreachable { reason: self.reason.clone(), retry_after_ms: retry_after_ms.max(1) }
    }
}
