//! What all streams of a client are counted against together: an allowance of bytes, and a rate. No lock: it stands on the data
//! path.

use overload::Moment;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Bytes that may go at once after a quiet time, as time at the full rate.
const BURST: Duration = Duration::from_millis(50);
/// Stands for "no limit".
const NO_LIMIT: u64 = u64::MAX;

/// Told of one stream's plain bytes as they pass, in either direction: see [`crate::Stream::set_counter`]. It is called under the
/// link's lock, so it must neither wait nor touch the link.
pub trait Counter: std::fmt::Debug + Send + Sync {
    /// So many have passed.
    fn carried(&self, bytes: u64);
}

/// Counts plain bytes of both directions. Copies of the `Arc` around it go to each link of a client.
#[derive(Debug)]
pub struct Meter {
    /// Bytes carried that nobody has collected yet.
    carried: AtomicU64,
    /// Bytes that may still be carried this month.
    left: AtomicU64,
    used_up: AtomicBool,
    now_used_up: Notify,
    /// Nanoseconds a byte, times 1024; 0 without a limit.
    cost: AtomicU64,
    /// When all that was carried is paid for at the rate, in microseconds of the driver's clock.
    paid_at_us: AtomicU64,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            carried: AtomicU64::new(0),
            left: AtomicU64::new(NO_LIMIT),
            used_up: AtomicBool::new(false),
            now_used_up: Notify::new(),
            cost: AtomicU64::new(0),
            paid_at_us: AtomicU64::new(0),
        }
    }
}

impl Meter {
    /// Counts a chunk that has been carried. `now` is asked for only if there is a rate.
    pub(crate) fn carried(&self, bytes: usize, now: impl FnOnce() -> Moment) {
        let bytes = bytes as u64;
        self.carried.fetch_add(bytes, Ordering::Relaxed);
        if self.left.load(Ordering::Relaxed) != NO_LIMIT {
            self.spend(bytes);
        }
        let cost = self.cost.load(Ordering::Relaxed);
        if cost != 0 {
            self.pay(bytes, cost, now().as_micros());
        }
    }

    /// Until when nothing more may be taken in, if the rate has been exceeded.
    pub(crate) fn rests_until(&self, now: Moment) -> Option<Moment> {
        if self.cost.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let until = Moment::from_micros(self.paid_at_us.load(Ordering::Relaxed)) - BURST;
        (until > now).then_some(until)
    }

    /// Bytes since it was last asked.
    #[must_use]
    pub fn collect(&self) -> u64 {
        self.carried.swap(0, Ordering::Relaxed)
    }

    /// Bytes that may be carried from now on; `None` without a limit.
    pub fn set_left(&self, left: Option<u64>) {
        self.left
            .store(left.unwrap_or(NO_LIMIT).min(NO_LIMIT - u64::from(left.is_some())), Ordering::Relaxed);
        let used_up = left == Some(0);
        self.used_up.store(used_up, Ordering::Relaxed);
        if used_up {
            self.now_used_up.notify_waiters();
        }
    }

    /// The greatest rate of all streams together, from now on.
    pub fn set_rate(&self, mbit_s: Option<u32>) {
        // 1 Mbit/s is 8,000 ns a byte.
        let cost = mbit_s.filter(|rate| *rate > 0).map_or(0, |rate| (8_000 * 1_024 / u64::from(rate)).max(1));
        self.cost.store(cost, Ordering::Relaxed);
    }

    /// Comes back once the month is used up.
    pub async fn used_up(&self) {
        loop {
            let notified = self.now_used_up.notified();
            if self.used_up.load(Ordering::Relaxed) {
                return;
            }
            notified.await;
        }
    }

    fn spend(&self, bytes: u64) {
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left != NO_LIMIT).then(|| left.saturating_sub(bytes))
        });
        if spent.is_ok_and(|before| before <= bytes) && !self.used_up.swap(true, Ordering::Relaxed) {
            self.now_used_up.notify_waiters();
        }
    }

    fn pay(&self, bytes: u64, cost: u64, now_us: u64) {
        let price_us = bytes.saturating_mul(cost) / (1_024 * 1_000);
        // It never fails: the closure always gives a value.
        let _ = self.paid_at_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |paid_at| {
            Some(paid_at.max(now_us).saturating_add(price_us))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> impl Fn() -> Moment {
        move || Moment::from_micros(micros)
    }

    #[test]
    fn without_limits_everything_is_counted_and_nothing_waits() {
        let meter = Meter::default();
        meter.carried(1 << 30, || panic!("no rate, no clock"));
        assert_eq!((meter.collect(), meter.collect()), (1 << 30, 0));
        assert_eq!(meter.rests_until(Moment::ORIGIN), None);
    }

    #[test]
    fn an_allowance_ends_in_the_middle_of_a_stream() {
        let is_used_up = |meter: &Meter| meter.used_up.load(Ordering::Relaxed);
        let meter = Meter::default();
        meter.set_left(Some(100));
        meter.carried(60, at(0));
        assert!(!is_used_up(&meter));
        meter.carried(60, at(0));
        assert!(is_used_up(&meter));
        assert_eq!(meter.collect(), 120, "what was carried counts, also beyond the limit");
        meter.set_left(Some(100));
        assert!(!is_used_up(&meter));
        meter.set_left(Some(u64::MAX));
        meter.carried(1, at(0));
        assert!(!is_used_up(&meter));
        meter.set_left(Some(0));
        assert!(is_used_up(&meter));
    }

    #[tokio::test]
    async fn whoever_waits_for_the_end_of_the_month_hears_of_it() {
        let meter = std::sync::Arc::new(Meter::default());
        meter.set_left(Some(10));
        let waiting = tokio::spawn({
            let meter = std::sync::Arc::clone(&meter);
            async move { meter.used_up().await }
        });
        tokio::task::yield_now().await;
        meter.carried(10, at(0));
        tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
    }

    #[test]
    fn a_second_of_chunks_carries_what_the_rate_says() {
        let meter = Meter::default();
        meter.set_rate(Some(8));
        let (mut now_us, mut carried) = (5_000_000, 0);
        while now_us < 6_000_000 {
            carried += 10_000;
            meter.carried(10_000, at(now_us));
            if let Some(until) = meter.rests_until(Moment::from_micros(now_us)) {
                now_us = until.as_micros();
            }
        }
        // 8 Mbit/s are 1,000,000 bytes, and 50 ms of burst.
        assert!((1_000_000..=1_080_000).contains(&carried), "{carried}");
    }
}
