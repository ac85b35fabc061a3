//! One look at what all servers do, for every pool that has to explain itself within a second.

use super::Engine;
use crate::client::ClientState;
use crate::connection::{ClientId, PoolId};
use crate::parameters::APPLICATION_NAME;
use crate::pool::AddressIndex;
use crate::seam::ClientAddress;
use crate::server::ServerState;
use overload::Moment;
use std::collections::HashMap;
use std::time::Duration;

/// How long it is believed.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// Longest `application_name` that an explanation repeats, in characters.
const MAX_NAME_CHARACTERS: usize = 64;

/// All servers at one moment.
#[derive(Debug)]
pub(super) struct Census {
    taken_at: Moment,
    pools: HashMap<PoolId, Work>,
    /// When a server last answered a query, of whatever pool.
    answered: HashMap<AddressIndex, Moment>,
}

/// What the servers do that clients of a pool have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// They owe an answer.
    pub(super) running: usize,
    /// Since when the first of these does.
    pub(super) running_since: Option<Moment>,
    /// Their clients do not use them.
    idle: usize,
    /// The longest of these: who, what it does instead, and since when.
    longest: Option<(ClientId, &'static str, Moment)>,
    /// Of session mode, between two queries: the client's to keep.
    kept: usize,
}

impl Work {
    /// Servers that some client has and does not use.
    pub(super) const fn held(&self) -> usize {
        self.idle + self.kept
    }
}

impl Census {
    pub(super) fn of(&self, pool: PoolId) -> Option<&Work> {
        self.pools.get(&pool)
    }

    pub(super) fn answered_at(&self, address: AddressIndex) -> Option<Moment> {
        self.answered.get(&address).copied()
    }
}

impl Engine {
    /// Makes sure that there is a fresh one.
    pub(super) fn take_census(&mut self) {
        let now = self.now;
        if self.stalls.census.as_ref().is_some_and(|census| now.since(census.taken_at) < FRESH_FOR) {
            return;
        }
        let mut census = Census { taken_at: now, pools: HashMap::new(), answered: HashMap::new() };
        for (_, server) in self.servers.iter() {
            let ServerState::Active(client) = server.state else { continue };
            let work = census.pools.entry(server.pool).or_default();
            if let Some((reason, since)) = self.holder_reason(client) {
                work.idle += 1;
                if work.longest.is_none_or(|(_, _, before)| since < before) {
                    work.longest = Some((client, reason, since));
                }
            } else if server.is_at_rest() {
                work.kept += 1;
            } else {
                work.running += 1;
                let since = work.running_since.map_or(server.query_at, |before| before.min(server.query_at));
                work.running_since = Some(since);
            }
        }
        for &id in self.pool_index.values() {
            let pool = self.pool(id);
            if let Some(at) = pool.answered_at {
                let latest = census.answered.entry(pool.address).or_insert(at);
                *latest = at.max(*latest);
            }
        }
        self.stalls.census = Some(census);
    }

    /// Who holds the servers of a pool.
    pub(super) fn describe_holders(&self, work: &Work) -> String {
        let count = work.held();
        let Some((id, reason, since)) = work.longest else {
            return format!("all {count} servers belong to clients of session mode that are idle");
        };
        let held = self.now.since(since).as_secs_f64();
        let who = self.describe_client(id);
        format!(
            "all {count} servers are held by clients that do not use them, the longest {reason} for {held:.1} s: {who}"
        )
    }

    fn describe_client(&self, id: ClientId) -> String {
        let Some(client) = self.clients.find(id) else { return "it has left since".to_owned() };
        let from = match client.address {
            ClientAddress::Tcp { peer, .. } => peer.to_string(),
            ClientAddress::Unix { pid, .. } => format!("unix, process {pid}"),
        };
        let user = client.login_user.as_deref().unwrap_or_default();
        let name = client.parameters.value(APPLICATION_NAME).map(|name| &**name).unwrap_or_default();
        let name: String = name.chars().take(MAX_NAME_CHARACTERS).collect();
        let pid = match client.state {
            ClientState::Active { server, .. } => self.servers.find(server).map(|server| server.process_id),
            _ => None,
        };
        let pid = pid.map(|pid| format!(", server process {pid}")).unwrap_or_default();
        format!("user \"{user}\", application \"{name}\", from {from}{pid}")
    }
}
