//! Stopping: at once, or after the clients or the servers have finished.

use super::Engine;
use crate::client::ClientState;
use crate::close_cause::CloseCause;
use crate::connection::ClientId;
use crate::events::EventKind;
use crate::seam::Transport;
use crate::server::ServerState;
use crate::texts;
use tracing::info;

/// How to stop. They are ordered: a stop can only become more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shutdown {
    /// New clients are refused; those that are there stay until they leave (TERM).
    WaitForClients,
    /// Clients are closed as soon as they are idle; transactions under way and requests in line finish (INT).
    WaitForServers,
    /// Everything is closed (QUIT, or a second signal).
    Now,
}

impl Shutdown {
    /// Its name among the events.
    const fn label(self) -> &'static str {
        match self {
            Self::WaitForClients => "wait_for_clients",
            Self::WaitForServers => "wait_for_servers",
            Self::Now => "now",
        }
    }

    /// True if servers are closed as they become free.
    pub(super) fn is_closing_servers(self) -> bool {
        self >= Self::WaitForServers
    }
}

impl Engine {
    /// Begins to stop, or stops more urgently.
    pub fn shut_down(&mut self, transport: &mut impl Transport, how: Shutdown) {
        if self.shutdown.is_some_and(|before| before >= how) {
            return;
        }
        info!(?how, clients = self.clients.len(), servers = self.servers.len(), "shutting down");
        if self.shutdown.is_none() && how != Shutdown::Now {
            let limit = self.config.general.drain_timeout;
            if !limit.is_zero() {
                self.arm_shutdown(self.now + limit);
            }
        }
        self.shutdown = Some(how);
        self.record(None, EventKind::Stopping { how: how.label() });
        let farewell = texts::fatal(texts::ADMIN_SHUTDOWN, "pooler is shutting down");
        for id in self.clients.ids() {
            let Some(client) = self.clients.find(id) else { continue };
            let goes = match client.state {
                ClientState::Login(_) => true,
                ClientState::Idle | ClientState::Skipping { .. } | ClientState::AwaitingWelcome(_) => {
                    how >= Shutdown::WaitForServers
                }
                ClientState::Active { server, .. } if how >= Shutdown::WaitForServers => {
                    how == Shutdown::Now || self.rests_pinned(server)
                }
                ClientState::Active { .. }
                | ClientState::Preparing { .. }
                | ClientState::Waiting(_)
                | ClientState::Cancelling => how == Shutdown::Now,
            };
            if goes {
                self.dismiss_client(transport, id, &farewell, "pooler is shutting down");
            }
        }
        if how.is_closing_servers() {
            for id in self.servers.ids() {
                let Some(server) = self.servers.find(id) else { continue };
                if how == Shutdown::Now || matches!(server.state, ServerState::Idle) {
                    self.close_server(transport, id, CloseCause::Shutdown);
                }
            }
        }
    }

    /// True when the engine is stopping and nothing is left to wait for.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self.shutdown {
            None => false,
            Some(Shutdown::Now) => true,
            Some(Shutdown::WaitForClients) => self.clients.is_empty(),
            Some(Shutdown::WaitForServers) => {
                self.clients.is_empty() && self.pools.iter().all(|pool| pool.live() == 0)
            }
        }
    }

    /// A client has become idle while the pooler waits for its servers.
    pub(super) fn dismiss_if_stopping(&mut self, transport: &mut impl Transport, id: ClientId) -> bool {
        if !self.shutdown.is_some_and(Shutdown::is_closing_servers) {
            return false;
        }
        let farewell = texts::fatal(texts::ADMIN_SHUTDOWN, "pooler is shutting down");
        self.dismiss_client(transport, id, &farewell, "pooler is shutting down");
        true
    }
}
