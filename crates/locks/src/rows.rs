//! What a look brings: one row for each lock that is held or asked for on an object that somebody waits for.

use crate::mode::LockMode;
use std::sync::Arc;
use std::time::Duration;

/// Most rows of a look that are judged; a query for them must have this limit. What is beyond it is not seen.
pub const MAX_ROWS: usize = 1_000;

/// A lock that is held or asked for.
#[derive(Clone, Debug)]
pub struct LockRow {
    /// The object: equal texts are equal objects.
    pub object: Arc<str>,
    /// True for a lock of a table or index (`locktype` is `relation`), and not of a row, a transaction or an advisory number.
    pub is_relation: bool,
    /// Name of the table, where it is known: it stands in another database otherwise.
    pub relation: Option<Arc<str>>,
    /// The mode.
    pub mode: LockMode,
    /// Held, or only asked for.
    pub granted: bool,
    /// How long it has been asked for; PostgreSQL before 14 does not tell.
    pub waited: Option<Duration>,
    /// Who.
    pub backend: Backend,
}

/// A server process, as `pg_stat_activity` shows it; what the looker may not see is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backend {
    /// Its process id; 0 for a prepared transaction, which has none.
    pub pid: i32,
    /// The process that a parallel worker works for; else its own.
    pub leader: i32,
    /// `active`, `idle in transaction`, …
    pub state: String,
    /// Its user.
    pub user: String,
    /// Its `application_name`.
    pub application: String,
    /// Its statement, or the last one if it is idle.
    pub statement: String,
}
