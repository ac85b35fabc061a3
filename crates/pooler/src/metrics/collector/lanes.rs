//! Classes of work, over all pools: as many series as there are lanes.

use super::{Families, count};
use pooling::snapshot::LaneRow;
use prometheus_client::encoding::NoLabelSet;
use prometheus_client::metrics::MetricType;
use std::fmt;
use std::time::Duration;

/// One lane of all pools.
#[derive(Debug, Default)]
struct Sum {
    waiting: usize,
    active: usize,
    served: u64,
    maxwait: Duration,
}

pub(super) fn lanes(to: &mut Families<'_, '_>, rows: &[LaneRow]) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let sums = summed(rows);
    let mut family = to.family(
        "lane_clients_waiting",
        "Clients of a lane that wait for a server",
        None,
        MetricType::Gauge,
    )?;
    for (lane, sum) in &sums {
        family.encode_family(&[("lane", *lane)])?.encode_gauge(&count(sum.waiting))?;
    }
    let mut family = to.family("lane_servers_active", "Servers that a lane uses", None, MetricType::Gauge)?;
    for (lane, sum) in &sums {
        family.encode_family(&[("lane", *lane)])?.encode_gauge(&count(sum.active))?;
    }
    let unit = prometheus_client::registry::Unit::Seconds;
    let help = "The longest that a client of a lane has waited so far";
    let mut family = to.family("lane_longest_wait", help, Some(&unit), MetricType::Gauge)?;
    for (lane, sum) in &sums {
        family.encode_family(&[("lane", *lane)])?.encode_gauge(&sum.maxwait.as_secs_f64())?;
    }
    let mut family = to.family(
        "lane_server_assignments",
        "Servers given to clients of a lane",
        None,
        MetricType::Counter,
    )?;
    for (lane, sum) in &sums {
        family.encode_family(&[("lane", *lane)])?.encode_counter::<NoLabelSet, _, u64>(&sum.served, None)?;
    }
    Ok(())
}

/// In the order in which the lanes first stand; they are few.
fn summed(rows: &[LaneRow]) -> Vec<(&str, Sum)> {
    let mut sums: Vec<(&str, Sum)> = Vec::new();
    for row in rows {
        let at = sums.iter().position(|(lane, _)| *lane == &*row.lane).unwrap_or_else(|| {
            sums.push((&row.lane, Sum::default()));
            sums.len() - 1
        });
        let sum = &mut sums[at].1;
        sum.waiting += row.waiting;
        sum.active += row.active;
        sum.served = sum.served.saturating_add(row.served);
        sum.maxwait = sum.maxwait.max(row.maxwait);
    }
    sums
}
