//! The one query that tells what a session holds, and its answer.
//!
//! Names are qualified, operators too: whatever `search_path` a client has set, these are PostgreSQL's own.

use super::{Held, Inquiry};
use crate::parameters::{MAX_FURTHER, MAX_VALUE_BYTES, quoted};
use pgwire::message::parse::data_row;
use std::fmt::Write as _;

/// Most rows of an answer that are taken; more cannot follow a client anyway.
const MAX_ROWS: usize = 4 * MAX_FURTHER;

/// A row that names a parameter.
const PARAMETER: &str = "parameter";

/// Each kind: how its row is called, and the condition.
const KINDS: [(Held, &str, &str); 5] = [
    (
        Held::ADVISORY_LOCK,
        "lock",
        "pg_catalog.pg_locks WHERE locktype OPERATOR(pg_catalog.=) 'advisory' \
         AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()",
    ),
    (
        Held::TEMPORARY,
        "temporary",
        "pg_catalog.pg_class WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()",
    ),
    (Held::CURSOR, "cursor", "pg_catalog.pg_cursors WHERE is_holdable"),
    (Held::STATEMENT, "statement", "pg_catalog.pg_prepared_statements WHERE from_sql"),
    (Held::LISTEN, "listen", "pg_catalog.pg_listening_channels()"),
];

/// What a server has answered.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Parameters that are set in the session, by lower-case name.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) held: Held,
}

/// The query. `names` are checked names of parameters that the server does not list.
pub(crate) fn question(inquiry: Inquiry, names: &[Box<str>]) -> String {
    let mut parts = Vec::new();
    if inquiry.parameters {
        parts.push(format!(
            "SELECT '{PARAMETER}', name, setting FROM pg_catalog.pg_settings \
             WHERE source OPERATOR(pg_catalog.=) 'session'"
        ));
        let mut other = format!("SELECT '{PARAMETER}', 'role', pg_catalog.current_setting('role')");
        for name in names {
            let name = quoted(name);
            // Writing to a String cannot fail.
            let _ = write!(
                other,
                " UNION ALL SELECT '{PARAMETER}', {name}, pg_catalog.current_setting({name}, true)"
            );
        }
        parts.push(other);
    }
    for (kind, name, condition) in KINDS {
        if inquiry.held.has(kind) {
            parts.push(format!("SELECT '{name}', NULL, NULL WHERE EXISTS (SELECT FROM {condition})"));
        }
    }
    parts.join(" UNION ALL ")
}

impl Found {
    /// Takes a DataRow.
    pub(crate) fn take_row(&mut self, body: &[u8]) {
        let mut values = data_row(body);
        let mut next = || std::str::from_utf8(values.next()??).ok();
        let (kind, name, value) = (next(), next(), next());
        match (kind, name, value) {
            (Some(PARAMETER), Some(name), Some(value)) => self.take_parameter(name, value),
            // A parameter that is not set at all has no value.
            (Some(PARAMETER), _, None) => {}
            (Some(kind), ..) => {
                if let Some((kind, ..)) = KINDS.iter().find(|(_, name, _)| *name == kind) {
                    self.held |= *kind;
                }
            }
            // Not text in our encoding: it cannot follow.
            (None, ..) => self.held |= Held::UNNAMED,
        }
    }

    fn take_parameter(&mut self, name: &str, value: &str) {
        let is_unset = (name == "role" && value == "none") || (name.contains('.') && value.is_empty());
        if is_unset {
            return;
        }
        if value.len() > MAX_VALUE_BYTES || self.parameters.len() >= MAX_ROWS {
            self.held |= Held::UNNAMED;
        } else {
            self.parameters.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
}
