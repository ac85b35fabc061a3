//! SHOW OVERLOAD and SHOW PATIENCE: the guard against overload. PgBouncer has no such results.

use crate::console::table::{self, Cell, int4, int8, plain, shown, text};
use overload::patience::PatienceSource;
use overload::shedding::ShedCause;
use pgwire::message::backend::Column;
use pooling::snapshot::{PatienceRow, PoolRow};
use std::time::Duration;

pub(super) const COLUMNS: [Column<'static>; 16] = [
    text("database"),
    text("user"),
    text("policy"),
    // For how long the line has stood, in milliseconds; NULL if it does not.
    int8("overloaded_ms"),
    int4("cl_waiting"),
    // What somebody would wait who joined now, and what a server needs for each; NULL before the first measurement.
    int8("predicted_wait_ms"),
    int8("service_us"),
    // The last patience in the line, by how it was known.
    int8("patience_declared_ms"),
    int8("patience_statement_timeout_ms"),
    int8("patience_learnt_ms"),
    // Requests that were not started, and those that would not have been.
    int8("shed_predicted"),
    int8("shed_deadline"),
    int8("shed_standing"),
    int8("would_shed_predicted"),
    int8("would_shed_deadline"),
    int8("would_shed_standing"),
];

/// One row per pool.
pub(in crate::console) fn overloads(out: &mut Vec<u8>, pools: &[PoolRow]) {
    let rows = pools.iter().map(|pool| {
        let overload = &pool.overload;
        let patience = |source: PatienceSource| overload.patience[source as usize].and_then(milliseconds);
        let shed = |cause: ShedCause| shown(pool.counters.shed[cause as usize]);
        let would_shed = |cause: ShedCause| shown(pool.counters.would_shed[cause as usize]);
        [
            plain(&pool.database),
            plain(&pool.user),
            plain(overload.policy),
            overload.overloaded.and_then(milliseconds),
            shown(pool.cl_waiting),
            overload.predicted_wait.and_then(milliseconds),
            overload.service.and_then(|service| shown(service.as_micros())),
            patience(PatienceSource::Declared),
            patience(PatienceSource::StatementTimeout),
            patience(PatienceSource::Learnt),
            shed(ShedCause::Predicted),
            shed(ShedCause::Deadline),
            shed(ShedCause::Standing),
            would_shed(ShedCause::Predicted),
            would_shed(ShedCause::Deadline),
            would_shed(ShedCause::Standing),
        ]
    });
    table::write(out, &COLUMNS, rows);
}

const PATIENCE_COLUMNS: [Column<'static>; 5] = [
    text("database"),
    text("user"),
    text("application_name"),
    int8("patience_ms"),
    // Of how many who gave up it is the longest wait.
    int4("samples"),
];

/// One row per kind of caller.
pub(in crate::console) fn patience(out: &mut Vec<u8>, rows: &[PatienceRow]) {
    let rows = rows.iter().map(|row| {
        [
            plain(&row.database),
            plain(&row.user),
            plain(&row.application_name),
            milliseconds(row.patience),
            shown(row.samples),
        ]
    });
    table::write(out, &PATIENCE_COLUMNS, rows);
}

fn milliseconds<'a>(span: Duration) -> Cell<'a> {
    shown(span.as_millis())
}
