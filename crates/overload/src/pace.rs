//! How fast a pool serves those who wait, and how long the next one will.

use crate::Moment;
use std::time::Duration;

/// A measurement needs at least so much time with somebody waiting …
pub const LEAST_WINDOW: Duration = Duration::from_millis(100);
/// … and so many servers that became free; or else the whole of [`LONG_WINDOW`].
pub const LEAST_FREED: u32 = 8;
/// With fewer servers that become free, a measurement takes so long.
pub const LONG_WINDOW: Duration = Duration::from_secs(1);

/// Silence of more than so many times of service is a stall, and says nothing of the pace.
const STALL_IN_SERVICES: u32 = 4;

/// The time that one server needs for one waiter, measured only while somebody waits.
///
/// By Little's law that time is the number of servers over the rate at which they become free, so nothing has to be noted when
/// a server is given. Kept a server, it holds for a pool that has grown or shrunk meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    service: Option<Duration>,
    /// Time with somebody waiting, and servers that became free in it, since the last measurement.
    window: Duration,
    freed: u32,
    /// When a server became free, or when the first began to wait, whichever is later.
    at: Moment,
}

impl Pace {
    /// Somebody begins to wait where nobody did.
    pub const fn began(&mut self, now: Moment) {
        self.at = now;
    }

    /// One of `servers` has become free for somebody who waits.
    pub fn freed(&mut self, servers: usize, now: Moment) {
        let gap = now.since(self.at);
        self.at = now;
        match self.service {
            Some(service) => {
                let counted = gap.min(service.saturating_mul(STALL_IN_SERVICES));
                self.window = self.window.saturating_add(counted);
            }
            // Nothing to compare with: it may be a stall.
            None if gap > LONG_WINDOW => return,
            None => self.window += gap,
        }
        self.freed += 1;
        let is_enough = self.freed >= LEAST_FREED && self.window >= LEAST_WINDOW;
        if is_enough || self.window >= LONG_WINDOW {
            let servers = u32::try_from(servers.max(1)).unwrap_or(u32::MAX);
            let fresh = self.window.saturating_mul(servers) / self.freed;
            self.service = Some(self.service.map_or(fresh, |before| before.saturating_add(fresh) / 2));
            self.window = Duration::ZERO;
            self.freed = 0;
        }
    }

    /// How long one server needs for one waiter. `None` before the first measurement.
    #[must_use]
    pub const fn service(&self) -> Option<Duration> {
        self.service
    }

    /// How long somebody will wait with `ahead` before him. Servers that are silent are taken to be so for as long again.
    /// `None` before the first measurement.
    #[must_use]
    pub fn predicted_wait(&self, ahead: usize, servers: usize, now: Moment) -> Option<Duration> {
        let service = self.service?;
        let servers = u32::try_from(servers.max(1)).unwrap_or(u32::MAX);
        let turns = u32::try_from(ahead.saturating_add(1)).unwrap_or(u32::MAX);
        let silence = if ahead > 0 { now.since(self.at) } else { Duration::ZERO };
        Some((service.saturating_mul(turns) / servers).saturating_add(silence))
    }
}

#[cfg(test)]
mod tests;
