//! Notices to clients that wait (`query_wait_notify`).
//!
//! A notice of ours goes only where no message of a server can be under way: to a client without a server.

use super::Engine;
use crate::connection::PoolId;
use crate::seam::Transport;
use crate::texts;
use overload::Moment;

/// PgBouncer's words, since people search for them.
const QUEUED: &str = "No server connection available in postgres backend, client being queued";

impl Engine {
    /// Tells those who have waited for `query_wait_notify`, once for each wait.
    pub(super) fn notify_waiters(&mut self, transport: &mut impl Transport, id: PoolId) {
        let limit = self.config.general.query_wait_notify;
        let now = self.now;
        let mut notice = Vec::new();
        loop {
            let pool = &mut self.pools[id.0 as usize];
            let next = pool.line.take_notice(now, limit).or_else(|| pool.welcomes.take_notice(now, limit));
            let Some(client) = next else { return };
            if notice.is_empty() {
                notice = texts::notice(QUEUED);
            }
            // One that does not take it is watched all the same; there is no more than this to keep for it.
            transport.send(client.into(), &[&notice]);
        }
    }

    /// When somebody in the pool's lines is to be told.
    pub(super) fn next_wait_notice(&self, id: PoolId) -> Option<Moment> {
        let limit = self.config.general.query_wait_notify;
        let pool = self.pool(id);
        pool.line.next_notice(limit).into_iter().chain(pool.welcomes.next_notice(limit)).min()
    }
}
