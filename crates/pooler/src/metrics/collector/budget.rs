//! The budget of each database server: as many series as there are servers.

use super::{Families, count};
use pooling::snapshot::BudgetRow;
use prometheus_client::encoding::NoLabelSet;
use prometheus_client::metrics::MetricType;
use std::fmt;

pub(super) fn budgets(to: &mut Families<'_, '_>, rows: &[BudgetRow]) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    gauge(to, rows, "budget_connections", "The whole budget of a database server", |row| row.lease.budget)?;
    gauge(to, rows, "budget_places", "Connections that this pooler has leased", |row| {
        Some(row.lease.places)
    })?;
    gauge(to, rows, "budget_usable", "Leased connections that may be used", |row| Some(row.lease.usable))?;
    gauge(to, rows, "budget_used", "Connections that count, until they are really gone", |row| {
        Some(row.lease.used)
    })?;
    gauge(to, rows, "budget_wanted", "Further connections that pools could use now", |row| Some(row.wanted))?;
    gauge(to, rows, "budget_unowned", "Connections to the server that belong to no pooler", |row| {
        Some(row.lease.unowned)
    })?;
    gauge(to, rows, "budget_exhausted", "1 while no further connection is to be had", |row| {
        Some(usize::from(row.lease.is_exhausted))
    })?;
    gauge(
        to,
        rows,
        "budget_lost",
        "1 while there is no control connection, so that nothing is opened",
        |row| Some(usize::from(row.lease.state == budget::LeaseState::Lost)),
    )?;
    let help = "Times that the control connection was lost or could not be opened";
    let mut family = to.family("budget_losses", help, None, MetricType::Counter)?;
    for row in rows {
        let labels = [("server", row.address.as_str())];
        family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&row.lease.losses, None)?;
    }
    Ok(())
}

fn gauge(
    to: &mut Families<'_, '_>,
    rows: &[BudgetRow],
    name: &str,
    help: &str,
    value: impl Fn(&BudgetRow) -> Option<usize>,
) -> fmt::Result {
    let mut family = to.family(name, help, None, MetricType::Gauge)?;
    for row in rows {
        if let Some(value) = value(row) {
            family.encode_family(&[("server", row.address.as_str())])?.encode_gauge(&count(value))?;
        }
    }
    Ok(())
}
