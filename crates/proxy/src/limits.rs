//! What one account may do at once and a second, and how often an address may come in and guess. No clock.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overload::{Moment, TokenBucket};
use trust::api::Limits;

use crate::refusal::{Reason, Refusal};

/// Distinct targets are counted over this span.
pub(crate) const TARGET_WINDOW: Duration = Duration::from_secs(60);

/// A failed login is forgiven after this time.
pub(crate) const FAILURE_FORGIVEN_AFTER: Duration = Duration::from_secs(6);

/// So many logins may fail at once, from one address.
pub(crate) const FAILURES_AT_ONCE: u32 = 10;

/// Addresses whose failures are remembered; beyond, those that are forgiven go, and then any.
pub(crate) const MAX_ADDRESSES: usize = 10_000;

/// An account may be so far ahead of its rate.
const BURST: Duration = Duration::from_millis(250);

/// The state of one account's limits.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    targets_per_minute: u32,
    live: u32,
    opens: TokenBucket,
    targets: HashSet<u64>,
    /// Nobody can know which targets have the same hash.
    hasher: RandomState,
    window_began: Moment,
    /// When all that has passed is paid for at the rate.
    paid_at: Moment,
}

impl Gate {
    /// Nothing is open. `targets_per_minute` of 0 is no limit.
    pub(crate) fn new(limits: Limits, targets_per_minute: u32) -> Self {
        Self {
            limits,
            targets_per_minute,
            live: 0,
            opens: bucket(limits),
            targets: HashSet::new(),
            hasher: RandomState::new(),
            window_began: Moment::ORIGIN,
            paid_at: Moment::ORIGIN,
        }
    }

    /// Other limits from now on; what is open stays.
    pub(crate) fn set_limits(&mut self, limits: Limits, now: Moment) {
        if limits.streams_per_second != self.limits.streams_per_second {
            self.opens.set_rate(now, limits.streams_per_second, limits.streams_per_second);
        }
        self.limits = limits;
    }

    /// Whether its bytes have to be counted out.
    pub(crate) const fn is_paced(&self) -> bool {
        self.limits.bytes_per_second != 0
    }

    /// So many bytes have passed; how long to wait before the next, so that the rate is kept.
    pub(crate) fn passed(&mut self, bytes: usize, now: Moment) -> Duration {
        let rate = u128::from(self.limits.bytes_per_second.max(1));
        let price_us = (bytes as u128 * 1_000_000).div_ceil(rate);
        let price = Duration::from_micros(u64::try_from(price_us).unwrap_or(u64::MAX));
        self.paid_at = self.paid_at.max(now) + price;
        self.paid_at.since(now).saturating_sub(BURST)
    }

    /// Streams, and opens under way.
    pub(crate) const fn live(&self) -> u32 {
        self.live
    }

    /// Another stream to a target, `host:port`. Ends in [`Self::close`] if it is admitted.
    pub(crate) fn open(&mut self, target: &str, now: Moment) -> Result<(), Refusal> {
        if self.limits.streams != 0 && self.live >= self.limits.streams {
            let cause = format!("this account has {} streams open, as many as it may", self.live);
            return Err(Refusal::new(Reason::LimitStreams, cause));
        }
        let target = self.hasher.hash_one(target);
        let in_window = now.since(self.window_began);
        if in_window >= TARGET_WINDOW {
            self.targets.clear();
            self.window_began = now;
        }
        let limit = usize::try_from(self.targets_per_minute).unwrap_or(usize::MAX);
        if limit != 0 && self.targets.len() >= limit && !self.targets.contains(&target) {
            let cause = format!("this account may reach for {limit} targets a minute");
            let wait = TARGET_WINDOW.saturating_sub(in_window);
            return Err(Refusal::new(Reason::LimitTargets, cause).after(wait));
        }
        if !self.opens.take(now) {
            let cause = format!("this account may open {} streams a second", self.limits.streams_per_second);
            return Err(Refusal::new(Reason::LimitOpens, cause).after(self.opens.next_at(now).since(now)));
        }
        if limit != 0 {
            self.targets.insert(target);
        }
        self.live += 1;
        Ok(())
    }

    /// A stream has ended, or was not opened after all.
    pub(crate) fn close(&mut self) {
        self.live = self.live.saturating_sub(1);
    }
}

fn bucket(limits: Limits) -> TokenBucket {
    TokenBucket::per_second(limits.streams_per_second, limits.streams_per_second)
}

/// Failed logins by address: guessing is slowed down, whoever the guess is about.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    buckets: HashMap<IpAddr, TokenBucket>,
}

impl Guesses {
    /// Until when no login from this address is looked at, if so.
    pub(crate) fn wait(&self, peer: IpAddr, now: Moment) -> Option<Duration> {
        let bucket = self.buckets.get(&network(peer))?;
        (bucket.available(now) == 0).then(|| bucket.next_at(now).since(now))
    }

    /// A login from this address has failed.
    pub(crate) fn failed(&mut self, peer: IpAddr, now: Moment) {
        let peer = network(peer);
        if self.buckets.len() >= MAX_ADDRESSES && !self.buckets.contains_key(&peer) {
            self.buckets.retain(|_, bucket| bucket.available(now) < FAILURES_AT_ONCE as usize);
            if self.buckets.len() >= MAX_ADDRESSES
                && let Some(any) = self.buckets.keys().next().copied()
            {
                self.buckets.remove(&any);
            }
        }
        let fresh = || TokenBucket::new(1, FAILURE_FORGIVEN_AFTER, FAILURES_AT_ONCE);
        self.buckets.entry(peer).or_insert_with(fresh).spend(now, 1);
    }
}

/// Connections that have not logged in, by address: nobody takes all places by only coming in.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: u32,
    by_address: Mutex<HashMap<IpAddr, u32>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    strangers: Arc<Strangers>,
    address: IpAddr,
}

impl Strangers {
    /// At most so many of one address.
    pub(crate) fn new(most: u32) -> Arc<Self> {
        Arc::new(Self { most, by_address: Mutex::default() })
    }

    /// Another one of this address, if there is a place.
    pub(crate) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Stranger> {
        let address = network(peer);
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Stranger { strangers: Arc::clone(self), address })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut by_address = self.strangers.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// Who an address belongs to: for IPv6, whoever has the /64.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests;
