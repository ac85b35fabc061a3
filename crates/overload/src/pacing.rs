//! How many logins to one server address may start now.

use std::time::Duration;

use crate::{Admission, Cause, Moment, Recovery, Scope, TokenBucket};
use lately::Lately;

mod lately;

/// A login is slow if it takes more than this many times the fastest one seen lately.
pub const SLOW_FACTOR: u32 = 4;

/// A login that takes no longer than this is never slow.
pub const SLOW_FLOOR: Duration = Duration::from_millis(250);

/// Slow logins do not bring the window below this, unless the configured concurrency is lower.
pub const WINDOW_FLOOR: u32 = 4;

/// Logins that may be under way at once when a server has just come back, unless the configured concurrency is lower.
pub const RAMP_START: u32 = 4;

/// What the operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLimits {
    /// Logins under way at once; also the burst of the rate. Zero counts as one.
    pub concurrency: u32,
    /// Logins started per second. Zero: no limit.
    pub rate_per_second: u32,
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self { concurrency: 64, rate_per_second: 200 }
    }
}

/// Paces the logins to one server address, over all its pools.
///
/// Several at once, so that one slow login holds up nobody. The window starts at the full concurrency, halves when
/// logins become slow or the server is full, and grows by one with each login of normal speed. After a failure that concerns the
/// whole server it rests, then lets one probe through at a time. With its first success it opens again, but not at once: from
/// [`RAMP_START`] on, one more with each login that is through, so that the window doubles with each round and a server that
/// has just come back meets no herd.
///
/// Each login is known by the moment it was started at: `started_at` is what [`Self::started`] was told as `now`.
/// Each one that was started must end in exactly one of [`Self::finished`], [`Self::failed`] and [`Self::abandoned`].
#[derive(Clone, Copy, Debug)]
pub struct LoginPacer {
    limits: LoginLimits,
    window: u32,
    halved_at: Option<Moment>,
    lately: Lately,
    bucket: TokenBucket,
    recovery: Recovery,
    /// Started since the last recovery. Only these count against the window.
    under_way: usize,
    /// Started before it, and perhaps hanging until their time-out.
    stragglers: usize,
    recovered_at: Moment,
}

impl LoginPacer {
    /// Nothing is under way, the window is open.
    #[must_use]
    pub fn new(limits: LoginLimits) -> Self {
        let limits = LoginLimits { concurrency: limits.concurrency.max(1), ..limits };
        Self {
            limits,
            window: limits.concurrency,
            halved_at: None,
            lately: Lately::new(),
            bucket: TokenBucket::per_second(limits.rate_per_second, limits.concurrency),
            recovery: Recovery::new(),
            under_way: 0,
            stragglers: 0,
            recovered_at: Moment::ORIGIN,
        }
    }

    /// How many of the `wanted` logins may start now.
    #[must_use]
    pub fn may_start(&self, now: Moment, wanted: usize) -> usize {
        let room = match self.recovery.admits(now) {
            Admission::Free => self.room(),
            // Not held back by the window: that may be full of logins that hang.
            Admission::Probe => self.room_for_probe(),
            Admission::RestUntil(_) => 0,
        };
        wanted.min(room).min(self.bucket.available(now))
    }

    /// When it is worth asking again, not before `now`. `None`: when a login ends, not before.
    #[must_use]
    pub fn next_start_at(&self, now: Moment) -> Option<Moment> {
        let (room, from) = match self.recovery.admits(now) {
            Admission::Free => (self.room(), now),
            Admission::Probe => (self.room_for_probe(), now),
            Admission::RestUntil(until) => (self.room_for_probe(), until),
        };
        (room > 0).then(|| self.bucket.next_at(now).max(from))
    }

    /// `count` logins were started.
    pub fn started(&mut self, now: Moment, count: usize) {
        if count == 0 {
            return;
        }
        self.under_way += count;
        self.bucket.spend(now, count);
        self.recovery.started(now);
    }

    /// A login succeeded.
    pub fn finished(&mut self, now: Moment, started_at: Moment) {
        self.ended(started_at);
        self.answered(now, started_at);
        let latency = now.since(started_at);
        if self.lately.is_slow(now, latency) {
            self.halve(now, started_at);
        } else if self.window < self.limits.concurrency {
            self.window += 1;
        }
    }

    /// A login failed. `jitter` is any random number. Only a cause that concerns the whole server makes all its pools
    /// rest; after another, the server has answered and it is for the pool to rest (with a [`Recovery`] of its own).
    pub fn failed(&mut self, now: Moment, started_at: Moment, cause: Cause, jitter: u64) {
        self.ended(started_at);
        if !cause.concerns_whole_server() {
            self.answered(now, started_at);
            return;
        }
        let is_news = self.recovery.failed(now, started_at, cause, jitter);
        if is_news && cause == (Cause::TooManyConnections { scope: Scope::Server }) {
            self.halve(now, started_at);
        }
    }

    /// A login was given up without an answer, because nobody needs it any more.
    pub fn abandoned(&mut self, now: Moment, started_at: Moment) {
        self.ended(started_at);
        self.recovery.abandoned(now, started_at);
    }

    /// Other limits from now on. What is under way stays so.
    pub fn set_limits(&mut self, now: Moment, limits: LoginLimits) {
        let concurrency = limits.concurrency.max(1);
        let was_open = self.window == self.limits.concurrency;
        self.window = if was_open { concurrency } else { self.window.min(concurrency) };
        self.limits = LoginLimits { concurrency, ..limits };
        self.bucket.set_rate(now, limits.rate_per_second, concurrency);
    }

    /// Why logins rest or only a probe may start. `None` if all is well.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        self.recovery.cause()
    }

    /// Logins that may be under way at once, as of now.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// Logins under way.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.under_way + self.stragglers
    }

    /// Room in the window. Stragglers do not take it up, but all together stay below twice the concurrency.
    fn room(&self) -> usize {
        (self.window as usize).saturating_sub(self.under_way).min(self.room_in_all())
    }

    fn room_for_probe(&self) -> usize {
        self.room_in_all().min(1)
    }

    fn room_in_all(&self) -> usize {
        (self.limits.concurrency as usize).saturating_mul(2).saturating_sub(self.in_flight())
    }

    /// The count of all never drifts, even if the caller mistakes a moment.
    fn ended(&mut self, started_at: Moment) {
        let is_straggler = started_at < self.recovered_at;
        if (is_straggler && self.stragglers > 0) || self.under_way == 0 {
            self.stragglers = self.stragglers.saturating_sub(1);
        } else {
            self.under_way -= 1;
        }
    }

    fn answered(&mut self, now: Moment, started_at: Moment) {
        if self.recovery.succeeded(now, started_at) {
            self.stragglers += std::mem::take(&mut self.under_way);
            self.recovered_at = now;
            self.window = self.window.min(RAMP_START);
        }
    }

    /// Once for each wave: a login that was started before the last halving tells nothing about the smaller window.
    fn halve(&mut self, now: Moment, started_at: Moment) {
        if self.halved_at.is_some_and(|halved_at| started_at < halved_at) {
            return;
        }
        self.halved_at = Some(now);
        self.window = (self.window / 2).max(WINDOW_FLOOR).min(self.limits.concurrency);
    }
}

#[cfg(test)]
mod tests;
