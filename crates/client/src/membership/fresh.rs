//! Keeping token and trust documents fresh.

use super::{Membership, MembershipError, is_refused_for_good};
use ::link::{Comeback, Pace};
use clock::{Clock, unix_ms};
use std::time::Duration;

/// How failed refreshes are repeated: a token lives for a week, so there is no hurry.
const PACE: Pace = Pace {
    base: Duration::from_secs(30),
    cap: Duration::from_secs(3_600),
    stable_after: Duration::from_secs(1),
};
/// The longest sleep before the clock is looked at again: a machine may have slept, or its clock been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(600);

impl Membership {
    /// Refreshes when the api said to, again and again. A failed refresh is repeated by back-off; the token at hand holds on.
    /// Ends only when the api has refused this client for good, and says why.
    pub async fn keep_fresh(&self) -> MembershipError {
        let clock = Clock::start();
        let mut comeback = Comeback::new();
        comeback.set_pace(PACE);
        loop {
            let until = self.refresh_after_ms().saturating_sub(unix_ms());
            if until > 0 {
                tokio::time::sleep(Duration::from_millis(until).min(LONGEST_SLEEP)).await;
                continue;
            }
            match self.refresh().await {
                Ok(()) => {
                    comeback = Comeback::new();
                    comeback.set_pace(PACE);
                    tracing::info!(client = %self.client(), "token refreshed");
                    // An api that says "at once" is not asked in a tight loop.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) if is_refused_for_good(&error) => return error,
                Err(error) => {
                    let named = match &error {
                        MembershipError::Api(error) => error.retry_after_ms().map(Duration::from_millis),
                        _ => None,
                    };
                    let wait = comeback.ended(named, fastrand::u64(..), clock.now());
                    tracing::warn!(%error, wait_ms = wait.as_millis(), "the token was not refreshed");
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    fn refresh_after_ms(&self) -> u64 {
        self.lock().member.refresh_after_ms
    }
}
