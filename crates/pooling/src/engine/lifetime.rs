//! `server_lifetime`: servers that were opened at once are not replaced at once.

use super::Engine;
use crate::connection::ServerId;
use crate::server::Server;
use overload::Moment;
use std::time::Duration;

/// Lifetimes are spread over their last part, of so many.
const SPREAD: u32 = 10;

/// Successive multiples of the golden ratio divide a range evenly, however many there are (as a fraction of 2^64).
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

impl Engine {
    /// A new server gets its own place in the last tenth of the lifetime.
    pub(super) fn begin_lifetime(&mut self, server: &mut Server) {
        self.servers_opened += 1;
        // The upper 16 bits.
        server.lifetime_share = (self.servers_opened.wrapping_mul(GOLDEN_RATIO) >> 48) as u16;
        server.old_at = self.old_at(server);
    }

    /// The lifetime may be another now.
    pub(super) fn renew_lifetime(&mut self, id: ServerId) {
        let Some(server) = self.servers.find(id) else { return };
        let old_at = self.old_at(server);
        if let Some(server) = self.servers.find_mut(id) {
            server.old_at = old_at;
        }
    }

    /// A lifetime of zero means that a server serves one client.
    pub(super) fn is_too_old(&self, server: &Server) -> bool {
        server.served && self.now >= server.old_at
    }

    fn old_at(&self, server: &Server) -> Moment {
        let lifetime = self.pool(server.pool).settings.server_lifetime;
        server.opened_at + spread(lifetime, server.lifetime_share)
    }
}

/// The lifetime less this share of its last tenth: never longer than it is set.
fn spread(lifetime: Duration, share: u16) -> Duration {
    lifetime - lifetime / (SPREAD << 16) * u32::from(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_end_in_their_last_tenth_and_far_apart() {
        let lifetime = Duration::from_secs(3600);
        let mut ends: Vec<Duration> = (1..=20_u64)
            .map(|opened| spread(lifetime, (opened.wrapping_mul(GOLDEN_RATIO) >> 48) as u16))
            .collect();
        ends.sort();
        assert!(ends[0] >= Duration::from_secs(3240) && ends[19] <= lifetime, "{ends:?}");
        let least = ends.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
        assert!(least > Duration::from_secs(5), "{least:?}");
        assert_eq!(spread(Duration::ZERO, u16::MAX), Duration::ZERO);
        assert!(spread(Duration::MAX, u16::MAX) > Duration::MAX / 10 * 8);
    }
}
