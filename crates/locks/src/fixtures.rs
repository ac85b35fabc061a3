//! Rows as PostgreSQL gives them.

use crate::mode::LockMode;
use crate::rows::{Backend, LockRow};
use std::time::Duration;

fn row(object: &str, mode: LockMode, pid: i32) -> LockRow {
    LockRow {
        object: object.into(),
        is_relation: true,
        relation: Some(object.into()),
        mode,
        granted: true,
        waited: None,
        backend: Backend { pid, leader: pid, state: "active".to_owned(), ..Backend::default() },
    }
}

pub(crate) fn granted(object: &str, mode: LockMode, pid: i32) -> LockRow {
    LockRow { is_relation: !object.starts_with("xid"), ..row(object, mode, pid) }
}

pub(crate) fn waiting(object: &str, mode: LockMode, pid: i32, waited_ms: u64) -> LockRow {
    LockRow { granted: false, waited: Some(Duration::from_millis(waited_ms)), ..row(object, mode, pid) }
}

/// Waits for a transaction to end, as whoever wants to write a row that it has written does.
pub(crate) fn row_wait(object: &str, pid: i32, waited_ms: u64) -> LockRow {
    LockRow { is_relation: false, relation: None, ..waiting(object, LockMode::Share, pid, waited_ms) }
}
