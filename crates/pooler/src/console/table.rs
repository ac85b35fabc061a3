//! Results in the text format: RowDescription and DataRow.

use pgwire::message::backend::{Column, command_complete, data_row, oid, row_description};
use std::borrow::Cow;
use std::fmt::Display;
use std::time::{Duration, SystemTime};

/// A value; none is NULL.
pub(super) type Cell<'a> = Option<Cow<'a, str>>;

/// A column of `text`.
pub(super) const fn text(name: &'static str) -> Column<'static> {
    Column { name, type_oid: oid::TEXT }
}

/// A column of `integer`.
pub(super) const fn int4(name: &'static str) -> Column<'static> {
    Column { name, type_oid: oid::INT4 }
}

/// A column of `bigint`.
pub(super) const fn int8(name: &'static str) -> Column<'static> {
    Column { name, type_oid: oid::INT8 }
}

/// A column of `numeric`.
pub(super) const fn numeric(name: &'static str) -> Column<'static> {
    Column { name, type_oid: oid::NUMERIC }
}

/// Appends a whole result, its end included.
pub(super) fn write<'a, const N: usize>(
    out: &mut Vec<u8>,
    columns: &[Column<'_>; N],
    rows: impl IntoIterator<Item = [Cell<'a>; N]>,
) {
    row_description(out, columns);
    for row in rows {
        data_row(out, row);
    }
    command_complete(out, "SHOW");
}

/// A text that stands already.
pub(super) fn plain(text: &str) -> Cell<'_> {
    Some(Cow::Borrowed(text))
}

/// Anything that can be shown.
pub(super) fn shown<'a>(value: impl Display) -> Cell<'a> {
    Some(Cow::Owned(value.to_string()))
}

/// Zero, for what PgBouncer counts and there is nothing of here.
pub(super) fn zero<'a>() -> Cell<'a> {
    plain("0")
}

/// Whole seconds, and the microseconds beyond them.
pub(super) fn seconds_and_micros<'a>(span: Duration) -> (Cell<'a>, Cell<'a>) {
    (shown(span.as_secs()), shown(span.subsec_micros()))
}

/// `2026-11-30 11:19:25 UTC`. PgBouncer shows its local time with the zone's name; here the zone is always UTC.
pub(super) fn timestamp<'a>(at: SystemTime) -> Cell<'a> {
    let second = jiff::Timestamp::try_from(at).unwrap_or_default();
    shown(second.strftime("%Y-%m-%d %H:%M:%S UTC"))
}

/// The same with milliseconds, for a moment that lies `ago` before `now`.
pub(super) fn moment<'a>(now: SystemTime, ago: Duration) -> Cell<'a> {
    let at = now.checked_sub(ago).and_then(|at| jiff::Timestamp::try_from(at).ok()).unwrap_or_default();
    shown(at.strftime("%Y-%m-%d %H:%M:%S.%3f UTC"))
}
