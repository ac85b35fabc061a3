//! When to come back after a connection has ended (§3), and what a relay says before TLS (§1).

use crate::message::Welcome;
use overload::Moment;
use std::time::Duration;

/// A time that a relay names is kept up to this.
const GREATEST_WAIT: Duration = Duration::from_secs(3_600);
/// A time named before TLS is kept up to this: nobody has signed it.
const GREATEST_UNSIGNED_WAIT_MS: u32 = 300_000;
/// A random part of up to this share is added to a time that a relay has named.
const SPREAD_DIVISOR: u64 = 5;

const WAIT_PREFIX: &[u8] = b"holdfast-wait ";
const WAIT_BYTES: usize = WAIT_PREFIX.len() + 9;

/// How fast to come back; the relay's to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The greatest wait of the first attempt.
    pub base: Duration,
    /// The greatest wait of any attempt.
    pub cap: Duration,
    /// A connection that held for so long ends the count of attempts.
    pub stable_after: Duration,
}

impl Default for Pace {
    /// Before any WELCOME.
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(300),
            stable_after: Duration::from_secs(60),
        }
    }
}

impl From<&Welcome> for Pace {
    fn from(welcome: &Welcome) -> Self {
        let ms = |ms: u32| Duration::from_millis(u64::from(ms));
        Self {
            base: ms(welcome.backoff_base_ms),
            cap: ms(welcome.backoff_cap_ms),
            stable_after: ms(welcome.stable_after_ms),
        }
    }
}

/// The attempts of one client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Comeback {
    pace: Pace,
    attempts: u32,
    connected_at: Option<Moment>,
}

impl Comeback {
    /// A client that has never been connected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The relay has said how fast.
    pub const fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// WELCOME came.
    pub const fn connected(&mut self, now: Moment) {
        self.connected_at = Some(now);
    }

    /// The connection has ended, or an attempt has failed. How long to wait, with what the relay named, if it did, and any
    /// number for `jitter`.
    ///
    /// The randomness comes after the cap: a fleet that has reached it must not dial in step.
    pub fn ended(&mut self, named: Option<Duration>, jitter: u64, now: Moment) -> Duration {
        if self.connected_at.take().is_some_and(|since| now.since(since) >= self.pace.stable_after) {
            self.attempts = 0;
        }
        let doubled = self.pace.base.saturating_mul(1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX));
        let most = doubled.min(self.pace.cap);
        self.attempts = self.attempts.saturating_add(1);
        match named {
            Some(named) => {
                let named = named.min(GREATEST_WAIT);
                named + random_part(named / u32::try_from(SPREAD_DIVISOR).unwrap_or(1), jitter)
            }
            None => random_part(most, jitter),
        }
    }

    /// Attempts since a connection last held.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }
}

/// What a relay says before TLS: come back in so many milliseconds.
pub fn write_wait(out: &mut Vec<u8>, wait_ms: u32) {
    out.extend_from_slice(WAIT_PREFIX);
    out.extend_from_slice(format!("{:08}\n", wait_ms.min(99_999_999)).as_bytes());
}

/// The wait that `bytes`, the first that a relay sent, asks for; `None` if they are something else.
#[must_use]
pub fn parse_wait(bytes: &[u8]) -> Option<Duration> {
    let rest = bytes.get(..WAIT_BYTES)?.strip_prefix(WAIT_PREFIX)?.strip_suffix(b"\n")?;
    if !rest.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let wait_ms: u32 = std::str::from_utf8(rest).ok()?.parse().ok()?;
    Some(Duration::from_millis(u64::from(wait_ms.min(GREATEST_UNSIGNED_WAIT_MS))))
}

/// `bytes` are too few to tell, and could be the beginning of what [`parse_wait`] reads.
#[must_use]
pub fn may_be_wait(bytes: &[u8]) -> bool {
    bytes.len() < WAIT_BYTES && bytes.iter().zip(WAIT_PREFIX).all(|(byte, expected)| byte == expected)
}

fn random_part(most: Duration, jitter: u64) -> Duration {
    let most_us = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(jitter % most_us.saturating_add(1).max(1))
}

#[cfg(test)]
mod tests;
