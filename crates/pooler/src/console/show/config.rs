//! SHOW CONFIG.

use crate::console::table::{self, plain, text};
use pgwire::message::backend::Column;
use settings::pooler::ConfigRow;

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
