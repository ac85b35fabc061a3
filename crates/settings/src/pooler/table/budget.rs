use super::super::model::General;
use super::{COUNT, Kind, Setting, field};
use std::time::Duration;

/// What the key of a lock holds.
const CHUNK: Kind = Kind::Integer { minimum: 1, maximum: 4_095 };
/// A login must fit into three quarters of it.
const SETTLE: Kind = Kind::Duration { minimum: Duration::from_millis(100) };

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<General>] = &[
    Setting::new("server_budget", Kind::Text, "off", field!(General, budget.size), "Most connections of each database server, over all pools, databases, users and poolers in front of it: a number, `auto` (or 0) for what the server says that it carries less a margin, or `off`.").own().restart(),
    Setting::new("budget_reserved", COUNT, "6", field!(General, budget.reserved), "Connections of `server_budget` that no pool gets: for each pooler one for its control connection, and one for its looks at locks (`lock_pileup`) while a queue stands.").own().restart(),
    Setting::new("budget_chunk", CHUNK, "4", field!(General, budget.chunk), "Connections that a pooler leases from `server_budget` at once.").own().restart(),
    Setting::new("budget_settle", SETTLE, "0.5", field!(General, budget.settle), "How long a fresh lease rests before it is used, so that what its former holder had under way is seen; more than a server login takes.").own().restart(),
    Setting::new("budget_database", Kind::Text, "postgres", field!(General, budget.database), "Database of the control connection, whose locks are the leases; the same for all poolers.").own().restart(),
    Setting::new("budget_user", Kind::Text, "", field!(General, budget.user), "User of the control connection, with its password in `auth_file`; it should be a member of `pg_read_all_stats`.").own().restart(),
];
