//! The limit on running requests (`running_limit`): no more of them than the server carries. Who is above it waits in line, where
//! waiting costs the server nothing; `observe` finds the limit and holds nobody back.

use super::Engine;
use crate::connection::PoolId;
use crate::pool::Pool;
use overload::running::{LONGEST_WINDOW, QueryTotals};
use settings::pooler::GuardPolicy;

impl Engine {
    /// A request begins, or would like to. One look at the configuration where there is no limit.
    #[inline]
    pub(super) fn look_at_running(&mut self, id: PoolId) {
        if self.config.general.running_limit != GuardPolicy::Off {
            self.find_running_limit(id);
        }
    }

    /// Judges the speed of what has ended, and moves the limit. `on` puts it in force.
    fn find_running_limit(&mut self, id: PoolId) {
        let is_on = self.config.general.running_limit == GuardPolicy::On;
        let now = self.now;
        let pool = self.pool_mut(id);
        let totals = QueryTotals { count: pool.counters.query_count, time_us: pool.counters.query_time_us };
        let greatest = pool.greatest_size();
        if !pool.line.is_empty() && pool.active >= pool.running.limit() {
            pool.running.reached();
        }
        let has_changed = pool.running.look(now, totals, greatest);
        pool.most_running = if is_on { pool.running.limit() } else { usize::MAX };
        if !is_on || pool.line.is_empty() {
            return;
        }
        if has_changed {
            // Whom a higher limit lets in is served in this turn still.
            self.arm_pool_at(id, now);
        } else if pool.active >= pool.most_running {
            // Nothing may end and nobody may come for long, where servers are held.
            self.arm_pool_at(id, now + LONGEST_WINDOW);
        }
    }

    /// A request begins that `on` would have left in line.
    pub(super) fn count_if_beyond_limit(&mut self, id: PoolId) {
        if self.config.general.running_limit == GuardPolicy::Observe {
            let pool = self.pool_mut(id);
            if pool.active > pool.running.limit() {
                pool.running.reached();
                pool.counters.running_would_hold += 1;
            }
        }
    }

    /// For the console and the metrics.
    pub(super) fn running_limit_of(&self, pool: &Pool) -> Option<usize> {
        (self.config.general.running_limit != GuardPolicy::Off).then(|| pool.running.limit())
    }

    /// A reload may have switched the limit on or off.
    pub(super) fn reset_running_limits(&mut self) {
        let ids: Vec<PoolId> = self.pool_index.values().copied().collect();
        for id in ids {
            let pool = self.pool_mut(id);
            pool.most_running = usize::MAX;
            self.look_at_running(id);
        }
    }
}
