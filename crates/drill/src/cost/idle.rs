//! Clients that are connected and do nothing.

use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use tokio::time::{sleep, timeout};

use crate::peer::Peer;
use crate::postgres::{DATABASE, USER};
use crate::process::{CpuSample, resident_bytes};
use crate::wire::{Connection, block_on};

/// Time for a pooler to come to rest before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

/// Longest login or query of one client.
const PATIENCE: Duration = Duration::from_secs(10);

/// What idle clients cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleReport {
    /// The pooler, with its version.
    pub pooler: String,
    /// Clients.
    pub clients: usize,
    /// Resident memory before them, bytes.
    pub resident_at_start: u64,
    /// With all of them logged in, bytes.
    pub resident_idle: u64,
    /// After one query of each, bytes.
    pub resident_after_a_query: u64,
    /// Growth for each client, bytes.
    pub bytes_per_idle_client: f64,
    /// Growth for each client after a query of each, bytes.
    pub bytes_per_client_after_a_query: f64,
    /// Share of one CPU that the process uses while all clients do nothing.
    pub cpu_share_while_idle: f64,
}

/// Logs `clients` in, lets each ask one query, and lets them do nothing for `idle_for`. Right only for a pooler that has
/// just been started: memory that it had for others is used again.
///
/// # Errors
/// A client cannot log in or gets no answer.
pub fn idle_cost(peer: &Peer, clients: usize, idle_for: Duration) -> anyhow::Result<IdleReport> {
    block_on(measure(peer, clients, idle_for))?
}

async fn measure(peer: &Peer, clients: usize, idle_for: Duration) -> anyhow::Result<IdleReport> {
    let options = peer.connect_options(USER, DATABASE);
    sleep(SETTLE).await;
    let resident_at_start = resident_bytes(peer.pid())?;
    let mut connections = Vec::with_capacity(clients);
    for number in 0..clients {
        let connection = timeout(PATIENCE, Connection::connect(&options)).await;
        let connection = connection.map_err(anyhow::Error::from).and_then(|done| Ok(done?));
        connections
            .push(connection.with_context(|| format!("{}: login {number} of {clients}", peer.name()))?);
    }
    sleep(SETTLE).await;
    let resident_idle = resident_bytes(peer.pid())?;
    for (number, connection) in connections.iter_mut().enumerate() {
        let reply = timeout(PATIENCE, connection.query("select 1")).await;
        let reply = reply.map_err(anyhow::Error::from).and_then(|done| Ok(done?.into_result()?));
        reply.with_context(|| format!("{}: query {number} of {clients}", peer.name()))?;
    }
    sleep(SETTLE).await;
    let resident_after_a_query = resident_bytes(peer.pid())?;
    let before = CpuSample::read(peer.pid())?;
    sleep(idle_for).await;
    let used = before.until(&CpuSample::read(peer.pid())?);
    let each = |resident: u64| (resident as f64 - resident_at_start as f64) / clients.max(1) as f64;
    Ok(IdleReport {
        pooler: peer.name().to_owned(),
        clients,
        resident_at_start,
        resident_idle,
        resident_after_a_query,
        bytes_per_idle_client: each(resident_idle),
        bytes_per_client_after_a_query: each(resident_after_a_query),
        cpu_share_while_idle: used.as_secs_f64() / idle_for.as_secs_f64().max(f64::MIN_POSITIVE),
    })
}
