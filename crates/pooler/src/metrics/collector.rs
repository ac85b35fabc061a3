//! One overview as metric families.

mod budget;
mod lanes;
mod sources;

use super::ProcessFacts;
use super::fold::{MAX_LABELLED_POOLS, fold};
use overload::{LatencyHistogram, PatienceSource, ShedCause};
use pooling::close_cause::CloseCause;
use pooling::snapshot::{Overview, PoolCounters, PoolRow};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Encodes one overview.
#[derive(Debug)]
pub(super) struct OverviewCollector {
    overview: Overview,
    process: ProcessFacts,
}

impl OverviewCollector {
    pub(super) fn new(mut overview: Overview, process: ProcessFacts) -> Self {
        overview.pools = fold(overview.pools, MAX_LABELLED_POOLS);
        Self { overview, process }
    }
}

impl Collector for OverviewCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families { encoder: &mut encoder, pools: &self.overview.pools };
        process(&mut families, &self.overview, self.process)?;
        clients(&mut families)?;
        servers(&mut families)?;
        work(&mut families)?;
        budget::budgets(&mut families, &self.overview.budgets)?;
        sources::sources(&mut families, &self.overview)?;
        lanes::lanes(&mut families, &self.overview.lanes)?;
        overload(&mut families)?;
        trouble(&mut families)
    }
}

fn process(to: &mut Families<'_, '_>, overview: &Overview, process: ProcessFacts) -> fmt::Result {
    let mut build = to.family("build", "Version of this pooler", None, MetricType::Info)?;
    build.encode_info(&[("version", process.version)])?;
    let started = process.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    to.one_seconds("process_start_time", "When the process started, since the epoch", started)?;
    to.one_gauge("shutting_down", "1 while draining to a stop", u64::from(overview.shutting_down))?;
    to.one_gauge("clients", "Connected clients, those in login included", count(overview.clients))?;
    to.one_gauge("clients_in_login", "Clients in login", count(overview.clients_in_login))?;
    to.one_gauge("client_limit", "Most clients that are let in", count(overview.client_limit))?;
    to.one_counter(
        "clients_refused",
        "Clients refused because of a limit on clients: all of them, of a database, or of a user",
        overview.clients_refused,
    )?;
    to.one_counter(
        "logins_refused",
        "Logins refused by password, user or database",
        overview.logins_refused,
    )?;
    to.one_counter("probes", "Connections that ended before a start-up packet", overview.probes)?;
    to.one_counter("protocol_errors", "Clients that broke the protocol", overview.protocol_errors)?;
    to.one_counter(
        "log_lines_lost",
        "Log lines lost because the log could not be written fast enough",
        process.log_lines_lost,
    )?;
    let Some(config) = process.config else { return Ok(()) };
    to.one_gauge(
        "config_not_reloaded",
        "Settings that differ between the file and what was loaded",
        count(config.not_reloaded),
    )?;
    to.one_gauge(
        "config_pending_restart",
        "Settings that were loaded and wait for a restart",
        count(config.pending_restart),
    )?;
    to.one_gauge("config_broken", "1 if the file cannot be loaded as it stands", u64::from(config.broken))
}

fn clients(to: &mut Families<'_, '_>) -> fmt::Result {
    to.gauge("clients_active", "Clients of a pool that are idle or have a server", |pool| {
        count(pool.cl_active)
    })?;
    to.gauge("clients_waiting", "Clients that wait for a server", |pool| count(pool.cl_waiting))?;
    to.seconds("longest_wait", "The longest that a client has waited so far", |pool| Some(pool.maxwait))?;
    to.counter("client_logins", "Logins of clients", |counters| counters.client_login_count)?;
    to.counter("dead_waiters", "Waiters that left before a server was spent on them", |counters| {
        counters.dead_waiters
    })?;
    to.counter("dead_handoffs", "Servers given to a waiter that had left already", |counters| {
        counters.dead_handoffs
    })?;
    to.counter("wait_timeouts", "Waiters that reached query_wait_timeout", |counters| {
        counters.wait_timeouts
    })?;
    to.counter("refusals", "Requests refused because no server could be opened", |counters| {
        counters.refusals
    })?;
    to.counter(
        "holders_closed",
        "Clients closed because they held a server while others waited",
        |counters| counters.holders_closed,
    )?;
    to.gauge("pinned_servers", "Servers that stay with their client for what is in the session", |pool| {
        count(pool.sv_pinned)
    })?;
    to.counter("session_probes", "Servers asked what their session holds", |counters| {
        counters.session_probes
    })?;
    to.counter("pins", "Servers that began to stay with their client", |counters| counters.pins)?;
    to.counter("pin_refusals", "Clients dismissed for what they had left in a session", |counters| {
        counters.pin_refusals
    })
}

fn servers(to: &mut Families<'_, '_>) -> fmt::Result {
    let pools = to.pools;
    let mut family = to.family("servers", "Server connections by state", None, MetricType::Gauge)?;
    for pool in pools {
        for (state, servers) in server_states(pool) {
            family.encode_family(&Labels::with(pool, "state", state))?.encode_gauge(&count(servers))?;
        }
    }
    to.gauge("pool_size", "Most server connections of a pool", |pool| count(pool.pool_size))?;
    to.counter("server_opens", "Server connections opened", |counters| counters.server_opens)?;
    to.counter("reserve_logins", "Server logins started beyond the size of the pool", |counters| {
        counters.reserve_logins
    })?;
    to.counter_by(
        "server_open_failures",
        "Attempts to open a server connection that failed",
        "cause",
        |counters| counters.server_open_failures.clone(),
    )?;
    to.counter_by("server_closes", "Server connections closed", "cause", |counters| {
        CloseCause::ALL.iter().map(|cause| (cause.label(), counters.server_closes[*cause as usize])).collect()
    })?;
    to.counter_by(
        "cancels",
        "Cancel requests sent to servers, by what became of the client",
        "client",
        |counters| vec![("asked", counters.client_cancels), ("gone", counters.departure_cancels)],
    )?;
    to.histogram("server_login", "Connect and login of server connections", |counters| &counters.login)
}

fn work(to: &mut Families<'_, '_>) -> fmt::Result {
    to.counter("transactions", "Transactions", |counters| counters.xact_count)?;
    to.counter("queries", "Queries", |counters| counters.query_count)?;
    to.counter("server_assignments", "Times that a server was given to a client", |counters| {
        counters.server_assignment_count
    })?;
    to.counter_in(Unit::Bytes, "client_received", "Bytes from clients", |counters| counters.received)?;
    to.counter_in(Unit::Bytes, "client_sent", "Bytes to clients", |counters| counters.sent)?;
    to.counter_seconds("transaction_time", "Time in transactions", |counters| counters.xact_time_us)?;
    to.histogram("wait", "From joining the line to getting a server", |counters| &counters.wait)?;
    to.histogram("query", "From sending a query to its ReadyForQuery", |counters| &counters.query)
}

fn overload(to: &mut Families<'_, '_>) -> fmt::Result {
    to.gauge("overloaded", "1 while the line of the pool stands", |pool| {
        u64::from(pool.overload.overloaded.is_some())
    })?;
    let help =
        "Requests that were not started since their callers would not have waited long enough, by cause";
    to.counter_by("shed", help, "cause", |counters| by_cause(&counters.shed))?;
    let help = "Requests that would not have been started with overload_policy = on, by cause";
    to.counter_by("would_shed", help, "cause", |counters| by_cause(&counters.would_shed))?;
    let help = "How long somebody would wait who joined the line now, for pools with waiters";
    to.seconds("predicted_wait", help, |pool| pool.overload.predicted_wait.filter(|_| pool.cl_waiting > 0))?;
    let help = "The last patience of somebody who waited, by how it was known";
    let pools = to.pools;
    let mut family = to.family("patience", help, Some(&Unit::Seconds), MetricType::Gauge)?;
    for pool in pools {
        for (source, patience) in PatienceSource::ALL.iter().zip(pool.overload.patience) {
            if let Some(patience) = patience {
                let labels = Labels::with(pool, "source", source.label());
                family.encode_family(&labels)?.encode_gauge(&patience.as_secs_f64())?;
            }
        }
    }
    Ok(())
}

fn by_cause(counts: &[u64; ShedCause::COUNT]) -> Vec<(&'static str, u64)> {
    ShedCause::ALL.iter().map(|cause| (cause.label(), counts[*cause as usize])).collect()
}

fn trouble(to: &mut Families<'_, '_>) -> fmt::Result {
    let help = "Time since a server last answered a query, for pools with waiters";
    to.seconds("since_last_answer", help, |pool| pool.since_last_answer.filter(|_| pool.cl_waiting > 0))?;
    to.gauge("servers_behind_lock", "Servers that wait behind the lock of a pile-up", |pool| {
        count(pool.sv_behind_lock)
    })?;
    to.counter("lock_pileups", "Pile-ups of servers behind a lock", |counters| counters.lock_pileups)?;
    to.counter_by(
        "lock_actions",
        "What lock_pileup has done to a waiting DDL or a blocker, by what became of it",
        "outcome",
        |counters| counters.lock_actions.clone(),
    )?;
    to.counter_by(
        "stalls",
        "Times that clients waited and nobody got an answer for stall_after",
        "cause",
        |counters| counters.stalls.clone(),
    )?;
    let help = "How long clients have waited while nobody got an answer, by cause; only while it goes on";
    let pools = to.pools;
    let mut family = to.family("stalled", help, Some(&Unit::Seconds), MetricType::Gauge)?;
    for pool in pools {
        if let Some((cause, since)) = pool.stall {
            family.encode_family(&Labels::with(pool, "cause", cause))?.encode_gauge(&since.as_secs_f64())?;
        }
    }
    let help = "How long no server could be opened, by the cause of the last failure";
    let pools = to.pools;
    let mut family = to.family("failing", help, Some(&Unit::Seconds), MetricType::Gauge)?;
    for pool in pools {
        if let Some((cause, _, since)) = &pool.failure {
            family.encode_family(&Labels::with(pool, "cause", cause))?.encode_gauge(&since.as_secs_f64())?;
        }
    }
    Ok(())
}

const fn server_states(pool: &PoolRow) -> [(&'static str, usize); 8] {
    [
        ("active", pool.sv_active),
        ("active_cancel", pool.sv_active_cancel),
        ("being_canceled", pool.sv_being_canceled),
        ("idle", pool.sv_idle),
        ("used", pool.sv_used),
        ("tested", pool.sv_tested),
        ("login", pool.sv_login),
        ("closing", pool.sv_closing),
    ]
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Writes families, one series per pool where the pools differ.
struct Families<'a, 'e> {
    encoder: &'a mut DescriptorEncoder<'e>,
    pools: &'a [PoolRow],
}

impl<'a> Families<'a, '_> {
    fn family<'f>(
        &'f mut self,
        name: &'f str,
        help: &str,
        unit: Option<&'f Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'f>, fmt::Error> {
        self.encoder.encode_descriptor(name, help, unit, kind)
    }

    fn one_gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn one_seconds(&mut self, name: &str, help: &str, value: Duration) -> fmt::Result {
        self.family(name, help, Some(&Unit::Seconds), MetricType::Gauge)?.encode_gauge(&value.as_secs_f64())
    }

    fn one_counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(name, help, None, MetricType::Counter)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(&PoolRow) -> u64) -> fmt::Result {
        let pools = self.pools;
        let mut family = self.family(name, help, None, MetricType::Gauge)?;
        for pool in pools {
            family.encode_family(&Labels::of(pool))?.encode_gauge(&value(pool))?;
        }
        Ok(())
    }

    fn seconds(
        &mut self,
        name: &str,
        help: &str,
        value: impl Fn(&PoolRow) -> Option<Duration>,
    ) -> fmt::Result {
        let pools = self.pools;
        let mut family = self.family(name, help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for pool in pools {
            if let Some(span) = value(pool) {
                family.encode_family(&Labels::of(pool))?.encode_gauge(&span.as_secs_f64())?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Fn(&PoolCounters) -> u64) -> fmt::Result {
        self.counters(name, help, None, value)
    }

    fn counter_in(
        &mut self,
        unit: Unit,
        name: &str,
        help: &str,
        value: impl Fn(&PoolCounters) -> u64,
    ) -> fmt::Result {
        self.counters(name, help, Some(&unit), value)
    }

    fn counter_seconds(
        &mut self,
        name: &str,
        help: &str,
        micros: impl Fn(&PoolCounters) -> u64,
    ) -> fmt::Result {
        self.counters(name, help, Some(&Unit::Seconds), |counters| micros(counters) as f64 / 1e6)
    }

    fn counters<V: prometheus_client::encoding::EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: impl Fn(&PoolCounters) -> V,
    ) -> fmt::Result {
        let pools = self.pools;
        let mut family = self.family(name, help, unit, MetricType::Counter)?;
        for pool in pools {
            let labels = Labels::of(pool);
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&value(&pool.counters), None)?;
        }
        Ok(())
    }

    /// Counts that are zero have no series: most pools never meet most causes.
    fn counter_by(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl Fn(&PoolCounters) -> Vec<(&'static str, u64)>,
    ) -> fmt::Result {
        let pools = self.pools;
        let mut family = self.family(name, help, None, MetricType::Counter)?;
        for pool in pools {
            for (value, count) in values(&pool.counters).into_iter().filter(|(_, count)| *count > 0) {
                let labels = Labels::with(pool, label, value);
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        of: impl Fn(&PoolCounters) -> &LatencyHistogram,
    ) -> fmt::Result {
        let pools = self.pools;
        let mut family = self.family(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for pool in pools {
            let histogram = of(&pool.counters);
            let labels = Labels::of(pool);
            let (sum, buckets) = in_seconds(histogram);
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                sum,
                histogram.count(),
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}

/// The sum, and the buckets by their upper bounds.
fn in_seconds(histogram: &LatencyHistogram) -> (f64, Vec<(f64, u64)>) {
    let seconds = |micros: u64| micros as f64 / 1e6;
    let buckets =
        histogram.buckets().map(|(bound, count)| (bound.map_or(f64::INFINITY, seconds), count)).collect();
    (seconds(histogram.sum_us()), buckets)
}

/// Database and user, and one more label where a family has one.
#[derive(Debug)]
struct Labels<'a> {
    pool: &'a PoolRow,
    more: Option<(&'static str, &'a str)>,
}

impl<'a> Labels<'a> {
    const fn of(pool: &'a PoolRow) -> Self {
        Self { pool, more: None }
    }

    const fn with(pool: &'a PoolRow, name: &'static str, value: &'a str) -> Self {
        Self { pool, more: Some((name, value)) }
    }
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        ("database", &*self.pool.database).encode(encoder.encode_label())?;
        ("user", &*self.pool.user).encode(encoder.encode_label())?;
        if let Some(more) = self.more {
            more.encode(encoder.encode_label())?;
        }
        Ok(())
    }
}
