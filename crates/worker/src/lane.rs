//! One kind of work, turn after turn.

use std::future::Future;
use std::time::Duration;

use store::StoreError;
use tokio::time::sleep;

/// Rest after the first turn that failed; doubled with each further one, ms.
const FIRST_REST_MS: u64 = 500;
/// The longest rest after a turn that failed, ms.
const LONGEST_REST_MS: u64 = 30_000;
/// Rest between two turns while there is more to do, ms: others get at the database as well.
const MORE_REST_MS: u64 = 20;

/// What a turn leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing that is due.
    Nothing,
    /// There is more.
    More,
}

pub(crate) struct Lane {
    name: &'static str,
    every_ms: u64,
}

impl Lane {
    pub(crate) fn new(name: &'static str, every_ms: u64) -> Self {
        Self { name, every_ms: every_ms.max(1) }
    }

    /// Never ends.
    pub(crate) async fn run<F: Future<Output = Result<Left, StoreError>>>(&self, turn: impl Fn() -> F) {
        let mut failures = 0_u32;
        loop {
            let rest_ms = match turn().await {
                Ok(left) => {
                    failures = 0;
                    if left == Left::More { MORE_REST_MS } else { self.every_ms }
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    let rest_ms = rest_ms(failures, error.retry_after_ms());
                    tracing::warn!(lane = self.name, kind = error.kind().label(), %error, rest_ms, "a turn failed");
                    rest_ms
                }
            };
            sleep(Duration::from_millis(rest_ms)).await;
        }
    }
}

/// At least what the error asks for; random behind the cap, so that many workers do not fall into step.
fn rest_ms(failures: u32, asked_ms: Option<u64>) -> u64 {
    let most = (FIRST_REST_MS << failures.saturating_sub(1).min(16)).min(LONGEST_REST_MS);
    fastrand::u64(most / 2..=most).max(asked_ms.unwrap_or(0).min(LONGEST_REST_MS))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{Instant, timeout};

    use super::*;

    #[test]
    fn failures_make_the_rest_longer_up_to_half_a_minute() {
        for (failures, range) in [(1, 250..=500), (3, 1_000..=2_000), (60, 15_000..=30_000)] {
            for _ in 0..50 {
                assert!(range.contains(&rest_ms(failures, None)));
            }
        }
        assert!(rest_ms(1, Some(5_000)) >= 5_000);
        assert!(rest_ms(1, Some(u64::MAX)) <= LONGEST_REST_MS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_goes_on_after_failures_and_at_once_while_there_is_more() {
        let (turns, begun) = (AtomicU32::new(0), Instant::now());
        let lane = Lane::new("test", 60_000);
        let turn = || async {
            match turns.fetch_add(1, Ordering::Relaxed) {
                0..3 => Err(StoreError::PoolClosed),
                3..103 => Ok(Left::More),
                _ => Ok(Left::Nothing),
            }
        };
        let _ = timeout(Duration::from_secs(70), lane.run(turn)).await;
        assert_eq!(turns.load(Ordering::Relaxed), 105);
        assert!(begun.elapsed() <= Duration::from_secs(70));
    }
}
