//! Attempts to connect, storms, and the limit on running requests.

use super::{Families, Labels, count};
use pooling::snapshot::Overview;
use prometheus_client::encoding::NoLabelSet;
use prometheus_client::metrics::MetricType;
use std::fmt;

pub(super) fn sources(to: &mut Families<'_, '_>, overview: &Overview) -> fmt::Result {
    let attempts = &overview.attempts;
    let help = "Attempts to connect that were turned away unseen (connection_attempts)";
    let mut family = to.family("connection_attempts_refused", help, None, MetricType::Counter)?;
    for (cause, value) in [("too_many", attempts.too_many), ("refused_before", attempts.refused_before)] {
        family.encode_family(&[("cause", cause)])?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
    }
    to.one_counter(
        "connection_attempts_would_refuse",
        "Attempts to connect that would have been turned away (connection_attempts = observe)",
        attempts.would_refuse,
    )?;
    to.one_gauge(
        "connection_attempt_sources",
        "Users and addresses whose attempts to connect are remembered",
        count(attempts.sources),
    )?;
    let help = "Times that one source began to do far more than it used to";
    let mut family = to.family("storms", help, None, MetricType::Counter)?;
    for (what, begun, _) in overview.storms {
        family.encode_family(&[("what", what)])?.encode_counter::<NoLabelSet, _, u64>(&begun, None)?;
    }
    let mut family = to.family("storms_active", "Storms that go on", None, MetricType::Gauge)?;
    for (what, _, active) in overview.storms {
        family.encode_family(&[("what", what)])?.encode_gauge(&count(active))?;
    }
    running(to)
}

fn running(to: &mut Families<'_, '_>) -> fmt::Result {
    let pools = to.pools;
    let help = "Requests that may run at once, as running_limit has found";
    let mut family = to.family("running_limit", help, None, MetricType::Gauge)?;
    for pool in pools {
        if let Some(limit) = pool.running_limit {
            family.encode_family(&Labels::of(pool))?.encode_gauge(&count(limit))?;
        }
    }
    to.counter(
        "running_holds",
        "Requests that waited since as many ran as the server carries",
        |counters| counters.running_holds,
    )?;
    let help = "Requests that would have waited for that (running_limit = observe)";
    to.counter("running_would_hold", help, |counters| counters.running_would_hold)
}
