//! Who may begin a handshake now: a rule, without sockets.

use overload::{Moment, TokenBucket};
use std::time::Duration;

/// The longest time after which anybody is told to come back.
const GREATEST_WAIT: Duration = Duration::from_secs(300);
/// Nobody waits in the line for longer: a client gives up after 20 s, and is better told a time.
const GREATEST_LINE: u32 = 5;
/// Tokens that may be spent at once, as a part of a second's.
const BURST_DIVISOR: u32 = 10;

/// What to do with a connection that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its handshake may begin.
    Admit,
    /// It waits in the line.
    Wait,
    /// It is told to come back then.
    PutOff(Duration),
}

/// A token bucket, a line, and times to come back that are given out at the bucket's rate: so that a fleet that comes at
/// once is in within little more than its size divided by the rate.
#[derive(Debug)]
pub(crate) struct Admission {
    bucket: TokenBucket,
    interval: Duration,
    waiting: usize,
    most_waiting: usize,
    next_return: Moment,
}

impl Admission {
    pub(crate) fn new(per_second: u32, most_waiting: usize) -> Self {
        let per_second = per_second.max(1);
        Self {
            bucket: TokenBucket::per_second(per_second, (per_second / BURST_DIVISOR).max(1)),
            interval: Duration::from_secs(1) / per_second,
            waiting: 0,
            most_waiting: most_waiting
                .min(usize::try_from(per_second.saturating_mul(GREATEST_LINE)).unwrap_or(usize::MAX)),
            next_return: Moment::ORIGIN,
        }
    }

    /// A connection has come.
    pub(crate) fn arrive(&mut self, now: Moment) -> Verdict {
        if self.waiting == 0 && self.bucket.take(now) {
            return Verdict::Admit;
        }
        if self.waiting < self.most_waiting {
            self.waiting += 1;
            return Verdict::Wait;
        }
        // Behind those in the line, and behind those who were put off before.
        let line = self.interval * u32::try_from(self.waiting).unwrap_or(u32::MAX);
        self.next_return = self.next_return.max(now + line) + self.interval;
        Verdict::PutOff(self.next_return.since(now).min(GREATEST_WAIT))
    }

    /// The first in the line may begin, or when to ask again; nothing if nobody waits.
    pub(crate) fn next(&mut self, now: Moment) -> Option<Result<(), Moment>> {
        if self.waiting == 0 {
            return None;
        }
        if self.bucket.take(now) {
            self.waiting -= 1;
            return Some(Ok(()));
        }
        Some(Err(self.bucket.next_at(now)))
    }

    /// The one that was let in has left, and the next in the line takes its place; `false` if nobody waits. What was spent
    /// is spent once.
    pub(crate) const fn skip(&mut self) -> bool {
        match self.waiting.checked_sub(1) {
            Some(rest) => {
                self.waiting = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod tests;
