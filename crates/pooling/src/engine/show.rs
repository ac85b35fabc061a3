//! Snapshots for the console, the metrics and the health page.

use super::Engine;
use crate::client::ClientState;
use crate::connection::{ConnectionId, PoolId};
use crate::parameters::{APPLICATION_NAME, Tracked};
use crate::server::{CleaningStep, ServerState};
use crate::snapshot::{ClientRow, EventRow, HolderRow, Overview, PoolRow, ServerRow};
use settings::pooler::ServerAddress;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

impl Engine {
    /// Every pool.
    #[must_use]
    pub fn pool_rows(&self) -> Vec<PoolRow> {
        let mut rows: Vec<PoolRow> = self.pool_index.values().map(|&id| self.pool_row(id)).collect();
        rows.sort_by(|a, b| (&a.database, &a.user).cmp(&(&b.database, &b.user)));
        let at: std::collections::HashMap<(Arc<str>, Arc<str>), usize> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| ((row.database.clone(), row.user.clone()), index))
            .collect();
        for (id, server) in self.servers.iter() {
            let pool = self.pool(server.pool);
            let Some(&index) = at.get(&(pool.database.clone(), pool.user.clone())) else { continue };
            let row = &mut rows[index];
            row.cl_active_cancel_req += self.cancellers.get(&id).map_or(0, Vec::len);
            if server.cancels > 0 {
                row.sv_active_cancel += 1;
            }
            if let ServerState::Cleaning(cleaning) = &server.state {
                if server.cancels > 0 {
                    row.sv_being_canceled += 1;
                } else if cleaning.step == CleaningStep::RoundTrip {
                    row.sv_tested += 1;
                } else {
                    row.sv_used += 1;
                }
            }
        }
        rows
    }

    fn pool_row(&self, id: PoolId) -> PoolRow {
        let pool = self.pool(id);
        let now = self.now;
        let waiting = pool.line.len() + pool.welcomes.len();
        PoolRow {
            database: pool.database.clone(),
            user: pool.user.clone(),
            cl_active: pool.clients.saturating_sub(waiting),
            cl_waiting: waiting,
            cl_active_cancel_req: 0,
            sv_active: pool.active,
            sv_active_cancel: 0,
            sv_being_canceled: 0,
            sv_pinned: pool.pinned,
            sv_idle: pool.idle.len(),
            sv_used: 0,
            sv_tested: 0,
            sv_login: pool.logins,
            sv_closing: pool.closing,
            maxwait: pool.line.oldest_wait(now).max(pool.welcomes.oldest_wait(now)),
            pool_mode: pool.settings.pool_mode.as_str(),
            pool_size: pool.settings.pool_size,
            sv_behind_lock: self.servers_behind_lock(id),
            running_limit: self.running_limit_of(pool),
            failure: pool.failure.as_ref().map(|failure| {
                (failure.last.cause.label(), failure.last.client_text.clone(), now.since(failure.since))
            }),
            stall: pool.stall.as_ref().map(|stall| (stall.explanation.cause.label(), now.since(stall.began))),
            since_last_answer: pool.answered_at.map(|at| now.since(at)),
            overload: self.overload_row(pool),
            counters: pool.counters.clone(),
        }
    }

    /// Every client.
    #[must_use]
    pub fn client_rows(&self) -> Vec<ClientRow> {
        let now = self.now;
        self.clients
            .iter()
            .map(|(id, client)| {
                let (database, user) = self.names(client.pool);
                let wait = match (&client.state, client.pool) {
                    (ClientState::Waiting(ticket), Some(pool)) => {
                        self.pool(pool).line.entry(*ticket).map(|(_, since)| now.since(since))
                    }
                    (ClientState::AwaitingWelcome(ticket), Some(pool)) => {
                        self.pool(pool).welcomes.entry(*ticket).map(|(_, since)| now.since(since))
                    }
                    _ => None,
                };
                let link = match client.state {
                    ClientState::Active { server, .. } | ClientState::Preparing { server } => {
                        Some(ConnectionId::from(server).to_token())
                    }
                    _ => None,
                };
                ClientRow {
                    user,
                    database,
                    state: client.state_name(),
                    address: client.address,
                    connected: now.since(client.connected_at),
                    requested: now.since(client.request_at),
                    wait: wait.unwrap_or(Duration::ZERO),
                    link,
                    application_name: application_name(&client.parameters),
                    prepared_statements: client.statements.as_ref().map_or(0, |statements| statements.len()),
                    tls: String::new(),
                    id: ConnectionId::from(id).to_token(),
                }
            })
            .collect()
    }

    /// Every server.
    #[must_use]
    pub fn server_rows(&self) -> Vec<ServerRow> {
        let now = self.now;
        self.servers
            .iter()
            .map(|(id, server)| {
                let (database, user) = self.names(Some(server.pool));
                let port = match &self.pool(server.pool).target.address {
                    ServerAddress::Tcp { port, .. } | ServerAddress::Unix { port, .. } => *port,
                };
                let link = match server.state {
                    ServerState::Active(client) => Some(ConnectionId::from(client).to_token()),
                    _ => None,
                };
                ServerRow {
                    user,
                    database,
                    state: server.state_name(),
                    peer: server.peer,
                    port,
                    connected: now.since(server.opened_at),
                    requested: now.since(server.used_at),
                    close_needed: server.close_needed.is_some(),
                    link,
                    remote_pid: server.process_id,
                    application_name: application_name(&server.parameters),
                    prepared_statements: server.statements.len(),
                    tls: String::new(),
                    id: ConnectionId::from(id).to_token(),
                }
            })
            .collect()
    }

    /// Live clients that hold a server without using it, the longest first.
    #[must_use]
    pub fn holder_rows(&self) -> Vec<HolderRow> {
        let mut rows: Vec<HolderRow> =
            self.servers.iter().filter_map(|(_, server)| self.holder_row(server)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.held));
        rows
    }

    fn holder_row(&self, server: &crate::server::Server) -> Option<HolderRow> {
        let ServerState::Active(id) = server.state else { return None };
        let (reason, since) = self.holder_reason(id)?;
        let client = self.clients.find(id)?;
        let (database, user) = self.names(Some(server.pool));
        Some(HolderRow {
            user,
            database,
            address: client.address,
            application_name: application_name(&client.parameters),
            reason,
            held: self.now.since(since),
            waiting: self.pool(server.pool).line.len(),
            remote_pid: server.process_id,
            id: ConnectionId::from(id).to_token(),
        })
    }

    /// What has happened lately, in the order in which it began.
    #[must_use]
    pub fn event_rows(&self) -> Vec<EventRow> {
        self.recorder.rows(self.now)
    }

    /// Everything for metrics and health.
    #[must_use]
    pub fn overview(&self) -> Overview {
        Overview {
            budgets: self.budget_rows(),
            pools: self.pool_rows(),
            clients: self.clients.len(),
            clients_in_login: self.in_login,
            client_limit: self.client_limit(),
            clients_refused: self.totals.clients_refused,
            logins_refused: self.totals.logins_refused,
            probes: self.totals.probes,
            protocol_errors: self.totals.protocol_errors,
            lanes: self.lane_rows(),
            attempts: self.attempt_counts(),
            storms: self.storms.counts(self.now),
            shutting_down: self.shutdown.is_some(),
        }
    }

    /// The most clients that are let in.
    pub(super) fn client_limit(&self) -> usize {
        self.config.general.max_client_conn.min(self.descriptor_limit)
    }

    /// Clients that count against the limit.
    pub(super) fn clients_logged_in(&self) -> usize {
        self.clients.len().saturating_sub(self.in_login)
    }

    /// The line that PgBouncer logs every `stats_period`, only after a period with traffic.
    pub(super) fn log_stats(&mut self) {
        self.timers.stats_armed = false;
        let (mut xacts, mut queries, mut received, mut sent) = (0, 0, 0, 0);
        for &id in self.pool_index.values() {
            let counters = &self.pool(id).counters;
            xacts += counters.xact_count;
            queries += counters.query_count;
            received += counters.received;
            sent += counters.sent;
        }
        info!(xacts, queries, received_bytes = received, sent_bytes = sent, "stats: totals since the start");
    }

    pub(super) fn names(&self, pool: Option<PoolId>) -> (Arc<str>, Arc<str>) {
        match pool {
            Some(pool) => (self.pool(pool).database.clone(), self.pool(pool).user.clone()),
            None => (Arc::from(""), Arc::from("")),
        }
    }
}

pub(super) fn application_name(parameters: &Tracked) -> Arc<str> {
    parameters.value(APPLICATION_NAME).cloned().unwrap_or_else(|| Arc::from(""))
}
