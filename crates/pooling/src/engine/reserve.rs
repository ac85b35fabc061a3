//! The reserve (`reserve_pool_size`): servers beyond the size of a pool, for clients that have waited for
//! `reserve_pool_timeout`. Once there, they serve everyone, and leave by `server_idle_timeout`.

use super::Engine;
use crate::connection::PoolId;
use overload::Moment;

impl Engine {
    /// Counts those who have waited so long that the reserve is for them, as many as it could serve, and sets the pool's
    /// timer to the next.
    pub(super) fn note_overdue(&mut self, id: PoolId) {
        let timeout = self.config.general.reserve_pool_timeout;
        let now = self.now;
        let pool = &mut self.pools[id.0 as usize];
        let most = pool.settings.reserve_pool_size;
        if most == 0 || timeout.is_zero() {
            pool.overdue = 0;
            return;
        }
        let mut next = None;
        let mut overdue = |since| {
            let at = since + timeout;
            if at > now {
                next = Some(next.map_or(at, |earlier: Moment| earlier.min(at)));
            }
            at <= now
        };
        let in_line = pool.line.count_while(most, &mut overdue);
        // The greeting needs one server, however many wait for it.
        let in_welcomes = pool.welcomes.iter().take(1).take_while(|(_, since)| overdue(*since)).count();
        pool.overdue = in_line + in_welcomes;
        if let Some(at) = next
            && pool.total() < pool.greatest_size()
        {
            self.arm_pool_at(id, at);
        }
    }
}
