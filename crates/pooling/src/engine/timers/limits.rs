//! The limits on a client's time.

use super::LOOK_AGAIN;
use crate::client::{Client, ClientState};
use crate::connection::{ClientId, PoolId};
use crate::engine::Engine;
use crate::engine::handoff::is_over;
use crate::events::EventKind;
use crate::seam::Transport;
use crate::texts;
use overload::Moment;
use std::time::Duration;

/// Limits that one client may be under at once.
const MAX_LIMITS: usize = 4;

/// A limit, and what the client is told when it is over.
struct Limit {
    since: Moment,
    /// Zero: none.
    limit: Duration,
    sqlstate: &'static str,
    text: &'static str,
    only_if_others_wait: bool,
}

impl Engine {
    /// Looks at a client; returns when to look again.
    pub(super) fn check_client(&mut self, transport: &mut impl Transport, id: ClientId) -> Option<Moment> {
        let client = self.clients.find(id)?;
        let Some(pool_id) = client.pool else { return self.check_login(transport, id) };
        if matches!(client.state, ClientState::Waiting(_)) {
            return self.check_waiter(transport, id);
        }
        let now = self.now;
        let others_wait = !self.pool(pool_id).line.is_empty();
        let mut next: Option<Moment> = None;
        for limit in self.client_limits(client, pool_id).into_iter().flatten() {
            let at = limit.since + limit.limit;
            if limit.limit.is_zero() {
                continue;
            }
            if !is_over(now, limit.since, limit.limit) {
                next = Some(next.map_or(at, |next| next.min(at)));
            } else if limit.only_if_others_wait && !others_wait {
                let at = now + LOOK_AGAIN;
                next = Some(next.map_or(at, |next| next.min(at)));
            } else {
                if limit.only_if_others_wait {
                    self.pool_mut(pool_id).counters.holders_closed += 1;
                    self.record(Some(pool_id), EventKind::HolderClosed { limit: limit.text });
                }
                let farewell = texts::fatal(limit.sqlstate, limit.text);
                self.dismiss_client(transport, id, &farewell, limit.text);
                return None;
            }
        }
        next
    }

    fn check_login(&mut self, transport: &mut impl Transport, id: ClientId) -> Option<Moment> {
        let client = self.clients.find(id)?;
        let limit = self.config.general.client_login_timeout;
        if matches!(client.state, ClientState::Cancelling) || limit.is_zero() {
            return None;
        }
        if !is_over(self.now, client.connected_at, limit) {
            return Some(client.connected_at + limit);
        }
        let farewell = texts::fatal(texts::PROTOCOL_VIOLATION, "client_login_timeout");
        self.dismiss_client(transport, id, &farewell, "client_login_timeout");
        None
    }

    /// What a logged-in client may not go beyond where it stands.
    fn client_limits(&self, client: &Client, pool: PoolId) -> [Option<Limit>; MAX_LIMITS] {
        let settings = &self.pool(pool).settings;
        let idle = |since| Limit {
            since,
            limit: settings.client_idle_timeout,
            sqlstate: texts::IDLE_SESSION_TIMEOUT,
            text: "client_idle_timeout",
            only_if_others_wait: false,
        };
        match client.state {
            ClientState::Active { server, .. } | ClientState::Preparing { server } => {
                let Some(server) = self.servers.find(server) else { return [const { None }; MAX_LIMITS] };
                let quiet_since = server.query_at.max(client.request_at);
                let at_rest = server.replies.is_settled();
                let transaction = Limit {
                    since: server.transaction_at,
                    limit: settings.transaction_timeout,
                    sqlstate: texts::QUERY_CANCELED,
                    text: "transaction timeout",
                    only_if_others_wait: false,
                };
                let present = if at_rest {
                    // A client of session mode between two transactions.
                    idle(quiet_since)
                } else if server.replies.is_empty() {
                    Limit {
                        since: quiet_since,
                        limit: settings.idle_transaction_timeout,
                        sqlstate: texts::IDLE_IN_TRANSACTION_TIMEOUT,
                        text: "idle transaction timeout",
                        only_if_others_wait: false,
                    }
                } else {
                    Limit {
                        since: server.query_at,
                        limit: settings.query_timeout,
                        sqlstate: texts::QUERY_CANCELED,
                        text: "query timeout",
                        only_if_others_wait: false,
                    }
                };
                let [unread, unfinished] = self.holder_limits(client);
                [(!at_rest).then_some(transaction), Some(present), unread, unfinished]
            }
            ClientState::Idle | ClientState::Skipping { .. } => {
                [Some(idle(client.request_at)), None, None, None]
            }
            _ => [const { None }; MAX_LIMITS],
        }
    }

    /// The limits on holding a server without using it.
    fn holder_limits(&self, client: &Client) -> [Option<Limit>; 2] {
        let general = &self.config.general;
        let limit = |since, limit, text| Limit {
            since,
            limit,
            sqlstate: texts::ADMIN_SHUTDOWN,
            text,
            only_if_others_wait: true,
        };
        let unread = client.blocked_since;
        // One that is not read cannot send the rest.
        let unfinished = client.partial_since.filter(|_| !client.throttled && !client.server_full);
        [
            unread.map(|since| limit(since, general.client_write_timeout, "client_write_timeout")),
            unfinished.map(|since| limit(since, general.client_message_timeout, "client_message_timeout")),
        ]
    }
}
