//! Abuse brake: who tries many hosts on one port, and mostly in vain, is scanning, and has to stop for a while.
//!
//! It learns nothing but digests of hosts, and reports counts: what somebody wanted to reach is nobody's business.

use overload::Moment;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// More distinct hosts than this, on one port, within [`WINDOW`], with more than half of the attempts failed: stop.
pub const HOSTS_MAX: usize = 30;
/// How long an attempt counts.
pub const WINDOW: Duration = Duration::from_secs(60);
/// How long somebody has to stop.
pub const REST: Duration = Duration::from_secs(600);
/// Attempts remembered for one user and port; the oldest is forgotten for a new one. A scan fills it faster than it ages.
pub const ATTEMPTS_MAX: usize = 128;
/// Pairs of user and port that are watched at once; the one that has been quiet for longest is forgotten for a new one.
pub const WATCHED_MAX: usize = 4_096;
/// Users that rest at once; the one with the least left is let go for a new one.
pub const RESTING_MAX: usize = 4_096;

/// What an attempt means for the one who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Fine,
    /// It has to stop: end its streams, and take no new ones until [`Brake::rests_until`] has passed.
    Stop {
        /// Distinct hosts tried on one port.
        hosts: usize,
        /// Attempts on it that failed.
        failed: usize,
    },
}

/// Watches attempts to connect, by user: whatever the driver takes for one.
#[derive(Debug)]
pub struct Brake<U> {
    watched: BTreeMap<(U, u16), Attempts>,
    resting: BTreeMap<U, Moment>,
}

#[derive(Debug, Default)]
struct Attempts {
    lately: VecDeque<Attempt>,
    failed: usize,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    at: Moment,
    host_digest: u64,
    failed: bool,
}

impl<U: Copy + Ord> Default for Brake<U> {
    fn default() -> Self {
        Self { watched: BTreeMap::new(), resting: BTreeMap::new() }
    }
}

impl<U: Copy + Ord> Brake<U> {
    /// How long `user` still has to stop; `None` if it may go on.
    pub fn rests_until(&mut self, now: Moment, user: U) -> Option<Moment> {
        let until = *self.resting.get(&user)?;
        if until > now {
            return Some(until);
        }
        self.resting.remove(&user);
        None
    }

    /// Somebody tried to connect to a host on `port`: `failed` if no connection came of it. `host_digest` is any keyed digest
    /// of what was asked for.
    pub fn attempted(&mut self, now: Moment, user: U, port: u16, host_digest: u64, failed: bool) -> Verdict {
        let key = (user, port);
        if !self.watched.contains_key(&key) {
            self.make_room(now);
        }
        let attempts = self.watched.entry(key).or_default();
        attempts.note(Attempt { at: now, host_digest, failed });
        // Nothing can have become worse by a success, and nothing is counted for those who mostly succeed.
        if !failed || attempts.failed * 2 <= attempts.lately.len() || attempts.lately.len() <= HOSTS_MAX {
            return Verdict::Fine;
        }
        let hosts = attempts.hosts();
        if hosts <= HOSTS_MAX {
            return Verdict::Fine;
        }
        let failed = attempts.failed;
        self.watched.remove(&key);
        self.rest(now, user);
        Verdict::Stop { hosts, failed }
    }

    /// Users that have to stop at `now`.
    #[must_use]
    pub fn resting(&self, now: Moment) -> usize {
        self.resting.values().filter(|until| **until > now).count()
    }

    /// `user` has to stop, for a reason of the caller's own.
    pub fn rest(&mut self, now: Moment, user: U) {
        self.resting.retain(|_, until| *until > now);
        if self.resting.len() >= RESTING_MAX
            && let Some(least) = self.resting.iter().min_by_key(|(_, until)| **until).map(|(user, _)| *user)
        {
            self.resting.remove(&least);
        }
        self.resting.insert(user, now + REST);
    }

    fn make_room(&mut self, now: Moment) {
        if self.watched.len() < WATCHED_MAX {
            return;
        }
        self.watched.retain(|_, attempts| attempts.last_at().is_some_and(|at| now.since(at) < WINDOW));
        if self.watched.len() >= WATCHED_MAX
            && let Some(quietest) =
                self.watched.iter().min_by_key(|(_, attempts)| attempts.last_at()).map(|(key, _)| *key)
        {
            self.watched.remove(&quietest);
        }
    }
}

impl Attempts {
    fn note(&mut self, attempt: Attempt) {
        while self.lately.len() >= ATTEMPTS_MAX
            || self.lately.front().is_some_and(|oldest| attempt.at.since(oldest.at) >= WINDOW)
        {
            let forgotten = self.lately.pop_front();
            self.failed -= usize::from(forgotten.is_some_and(|oldest| oldest.failed));
        }
        self.failed += usize::from(attempt.failed);
        self.lately.push_back(attempt);
    }

    fn hosts(&self) -> usize {
        self.lately.iter().map(|attempt| attempt.host_digest).collect::<BTreeSet<_>>().len()
    }

    fn last_at(&self) -> Option<Moment> {
        self.lately.back().map(|attempt| attempt.at)
    }
}

#[cfg(test)]
mod tests;
