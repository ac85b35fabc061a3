//! When what failed is tried again.

/// A task that failed so often is given up. A recurring job never is.
pub const MOST_ATTEMPTS: u32 = 20;
/// Rest after the first failure, ms; doubled with each further one.
const FIRST_REST_MS: u64 = 500;
/// The longest rest, ms: within it of the database's return, work goes on.
const LONGEST_REST_MS: u64 = 5_000;
/// What an error may ask for at most, ms.
const LONGEST_ASKED_MS: u64 = 30_000;

/// The rest after so many failures in a row, ms: at least what the error asks for; random behind the cap (`random` is any
/// number), so that many workers do not fall into step.
#[must_use]
pub fn retry_ms(failures: u32, asked_ms: Option<u64>, random: u64) -> u64 {
    let most = (FIRST_REST_MS << failures.saturating_sub(1).min(16)).min(LONGEST_REST_MS);
    let rest_ms = most / 2 + random % (most / 2 + 1);
    rest_ms.max(asked_ms.unwrap_or(0).min(LONGEST_ASKED_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_the_rest_longer_up_to_five_seconds() {
        for (failures, range) in [(0, 250..=500), (1, 250..=500), (3, 1_000..=2_000), (60, 2_500..=5_000)] {
            for random in [0, 1, 17, 12_345, u64::MAX] {
                assert!(range.contains(&retry_ms(failures, None, random)), "{failures} {random}");
            }
        }
        assert!(retry_ms(1, Some(5_000), 0) >= 5_000);
        assert_eq!(retry_ms(1, Some(u64::MAX), 0), LONGEST_ASKED_MS);
    }
}
