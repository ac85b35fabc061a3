//! The answers, without HTTP: a status code, a media type and a text.

use super::rules::{self, Evidence, Finding, State};
use super::{HealthContext, LIVE_LIMIT};
use crate::console::source::Source;
use crate::console::wall_clock;
use crate::metrics::{self, ConfigFacts, Format, ProcessFacts};
use hyper::StatusCode;
use pooling::snapshot::Overview;
use serde_json::{Value, json};
use settings::pooler::TruthState;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::Instant;

/// Most pools that `/healthz/database` names.
pub(super) const MAX_NAMED_POOLS: usize = 20;

const JSON: &str = "application/json";

/// One answer.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) text: String,
}

impl Page {
    pub(super) fn json(status: StatusCode, value: &Value) -> Self {
        Self { status, content_type: JSON, text: format!("{value}\n") }
    }
}

/// `/metrics`.
pub(super) async fn metrics<S: Source>(context: &HealthContext<S>, format: Format) -> Page {
    let Some(overview) = overview(context).await else { return silent() };
    if let Ok(config) = context.source.config().await {
        context.console.observe(&overview.pools, config.general.stats_period);
    }
    let facts = ProcessFacts {
        version: context.version,
        started: context.started,
        log_lines_lost: (context.lost_lines)(),
        config: context.console.truth().await.map(|report| ConfigFacts {
            not_reloaded: report.count(TruthState::NotReloaded),
            pending_restart: report.count(TruthState::PendingRestart),
            broken: report.error.is_some(),
        }),
    };
    match metrics::encode(overview, facts, format) {
        Ok(text) => Page { status: StatusCode::OK, content_type: format.content_type(), text },
        Err(error) => {
            let value = json!({ "error": format!("the metrics cannot be written: {error}") });
            Page::json(StatusCode::INTERNAL_SERVER_ERROR, &value)
        }
    }
}

/// `/healthz/live`.
pub(super) async fn live<S: Source>(context: &HealthContext<S>) -> Page {
    match overview(context).await {
        Some(_) => Page::json(StatusCode::OK, &json!({ "state": "live" })),
        None => silent(),
    }
}

/// `/healthz/ready`.
pub(super) async fn ready<S: Source>(context: &HealthContext<S>) -> Page {
    let Some(overview) = overview(context).await else { return silent() };
    let reason = if overview.shutting_down {
        "shutting down"
    } else if context.is_listening() {
        return Page::json(StatusCode::OK, &json!({ "state": "ready" }));
    } else {
        "not listening yet"
    };
    Page::json(StatusCode::SERVICE_UNAVAILABLE, &json!({ "state": "not ready", "reason": reason }))
}

/// `/healthz/database`.
pub(super) async fn database<S: Source>(context: &HealthContext<S>) -> Page {
    let Some(overview) = overview(context).await else { return silent() };
    let holders = context.source.holders().await.unwrap_or_default();
    let overview = Arc::new(overview);
    let earlier = context.exchange(Instant::now(), &overview);
    let config = context.source.config().await.ok();
    let evidence = Evidence {
        overview: &overview,
        holders: &holders,
        earlier: earlier.as_deref(),
        config: config.as_deref(),
    };
    let (state, findings) = rules::judge(evidence);
    verdict(state, &findings, wall_clock())
}

/// The verdict on the database as a page.
pub(super) fn verdict(state: State, findings: &[Finding], now: SystemTime) -> Page {
    let status = if state == State::Gone { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let named: Vec<Value> = findings.iter().take(MAX_NAMED_POOLS).map(|finding| pool(finding, now)).collect();
    let value =
        json!({ "state": state.label(), "pools": named, "pools_left_out": findings.len() - named.len() });
    Page::json(status, &value)
}

fn pool(finding: &Finding, now: SystemTime) -> Value {
    let since = now.checked_sub(finding.since).and_then(|since| jiff::Timestamp::try_from(since).ok());
    json!({
        "database": &*finding.database,
        "user": &*finding.user,
        "state": finding.state.label(),
        "cause": finding.cause,
        "text": finding.text,
        "since": since.map(|since| since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        "for_seconds": finding.since.as_secs_f64(),
        "clients_waiting": finding.waiting,
    })
}

async fn overview<S: Source>(context: &HealthContext<S>) -> Option<Overview> {
    tokio::time::timeout(LIVE_LIMIT, context.source.overview()).await.ok()?.ok()
}

fn silent() -> Page {
    let reason = format!("the data plane gave no answer within {} s", LIVE_LIMIT.as_secs());
    Page::json(StatusCode::SERVICE_UNAVAILABLE, &json!({ "state": "not live", "reason": reason }))
}
