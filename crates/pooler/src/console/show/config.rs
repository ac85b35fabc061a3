//! SHOW CONFIG, and beside PgBouncer: whether it is what the file says (SHOW CONFIG_TRUTH, SHOW CONFIG_HASH).

use crate::console::table::{self, int4, plain, shown, text};
use crate::truth::TruthReport;
use pgwire::message::backend::Column;
use settings::pooler::{ConfigRow, TruthState};

pub(super) const COLUMNS: [Column<'static>; 4] =
    [text("key"), text("value"), text("default"), text("changeable")];

/// One row per setting.
pub(in crate::console) fn config(out: &mut Vec<u8>, settings: &[ConfigRow]) {
    let rows = settings.iter().map(|setting| {
        let changeable = plain(if setting.changeable { "yes" } else { "no" });
        [plain(setting.key), plain(&setting.value), plain(setting.default), changeable]
    });
    table::write(out, &COLUMNS, rows);
}

const TRUTH_COLUMNS: [Column<'static>; 5] =
    [text("key"), text("file"), text("loaded"), text("live"), text("state")];

/// One row per setting, those of databases and users too.
pub(in crate::console) fn config_truth(out: &mut Vec<u8>, report: Option<&TruthReport>) {
    let rows = report.into_iter().flat_map(|report| &report.rows).map(|row| {
        [plain(&row.key), plain(&row.file), plain(&row.loaded), plain(&row.live), plain(row.state.label())]
    });
    table::write(out, &TRUTH_COLUMNS, rows);
}

const HASH_COLUMNS: [Column<'static>; 8] = [
    text("file"),
    text("state"),
    text("file_hash"),
    text("loaded_hash"),
    text("live_hash"),
    int4("not_reloaded"),
    int4("pending_restart"),
    text("error"),
];

/// One row.
pub(in crate::console) fn config_hash(out: &mut Vec<u8>, report: Option<&TruthReport>) {
    let rows = report.into_iter().map(|report| {
        [
            shown(report.path.display()),
            plain(report.state()),
            plain(&report.file_hash),
            plain(&report.loaded_hash),
            plain(&report.live_hash),
            shown(report.count(TruthState::NotReloaded)),
            shown(report.count(TruthState::PendingRestart)),
            plain(report.error.as_deref().unwrap_or_default()),
        ]
    });
    table::write(out, &HASH_COLUMNS, rows);
}
