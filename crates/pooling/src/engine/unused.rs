//! Pools that nobody uses: forgotten after `pool_idle_timeout`, and after `autodb_idle_timeout` if the `*` line serves
//! their name. Each is looked at when its own time is due; a pool at rest costs a turn nothing.

use super::Engine;
use crate::connection::PoolId;
use crate::texts;
use overload::Moment;
use tracing::info;

impl Engine {
    /// Something of the pool has ended: if that was the last, a removed one gives its place to others, and one that is
    /// only unused has its time running.
    pub(super) fn settle_pool(&mut self, id: PoolId) {
        let pool = self.pool(id);
        if !pool.is_empty() || pool.is_free {
            return;
        }
        if pool.removed {
            return self.free_pool(id);
        }
        if pool.unused_since.is_none() && pool.minimum() == 0 {
            let now = self.now;
            self.pool_mut(id).unused_since = Some(now);
            self.unused_pools.insert((now, id));
            self.arm_unused(id);
        }
    }

    /// A client has come to the pool.
    pub(super) fn note_used(&mut self, id: PoolId) {
        if let Some(since) = self.pool_mut(id).unused_since.take() {
            self.unused_pools.remove(&(since, id));
        }
    }

    /// Sets the pool's timer to when it is to be forgotten.
    pub(super) fn arm_unused(&mut self, id: PoolId) {
        if let Some(at) = self.forget_at(id) {
            self.arm_pool_at(id, at);
        }
    }

    /// Forgets the pool if its time is over; true if it is gone.
    pub(super) fn forget_if_unused(&mut self, id: PoolId) -> bool {
        if self.forget_at(id).is_none_or(|at| at > self.now) || !self.is_still_unused(id) {
            return false;
        }
        let pool = self.pool(id);
        info!(database = %pool.database, user = %pool.user, "{}", texts::IDLE_POOL);
        self.forget_pool(id);
        true
    }

    /// Makes room for another pool: the one that has been unused for longest goes.
    pub(super) fn forget_longest_unused(&mut self) -> bool {
        while let Some(&(_, id)) = self.unused_pools.first() {
            if self.is_still_unused(id) {
                self.forget_pool(id);
                return true;
            }
        }
        false
    }

    /// A reload may have given it a minimum meanwhile, and that servers: then it is not unused any more.
    fn is_still_unused(&mut self, id: PoolId) -> bool {
        let pool = self.pool(id);
        let is_unused = pool.is_empty() && pool.minimum() == 0;
        if !is_unused {
            self.note_used(id);
        }
        is_unused
    }

    fn forget_at(&self, id: PoolId) -> Option<Moment> {
        let pool = self.pool(id);
        let since = pool.unused_since?;
        let general = &self.config.general;
        let automatic = Some(general.autodb_idle_timeout).filter(|_| pool.is_automatic);
        let limits = automatic.into_iter().chain([general.pool_idle_timeout]);
        limits.filter(|limit| !limit.is_zero()).min().map(|limit| since + limit)
    }

    fn forget_pool(&mut self, id: PoolId) {
        let pool = self.pool(id);
        self.pool_index.remove(&(pool.database.clone(), pool.user.clone()));
        self.pool_mut(id).removed = true;
        self.free_pool(id);
    }

    /// Nothing is left of a pool: its place, its caps and its address are others' now.
    fn free_pool(&mut self, id: PoolId) {
        self.note_used(id);
        self.leave_all_caps(id);
        let pool = self.pool_mut(id);
        pool.is_free = true;
        // Logs, counters and a greeting of nobody.
        let address = pool.address;
        pool.greeting = None;
        pool.learnt = None;
        self.release_address(address);
        self.free_pools.push(id);
    }
}
