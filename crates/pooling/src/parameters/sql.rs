//! The statements that change a server's parameters.

use std::fmt::Write as _;

/// Their values are lists of quoted names: `SET` would take a whole list as one name. Extensions cannot have such ones.
const LISTS_OF_NAMES: [&str; 4] =
    ["local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces"];

/// What turns a server's parameters into a client's. It runs as one: all of it or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Takes parameters back to the server's own values; comes first.
    pub resets: String,
    /// Gives parameters the client's values.
    pub sets: String,
}

impl Change {
    pub(super) const fn is_empty(&self) -> bool {
        self.resets.is_empty() && self.sets.is_empty()
    }

    /// Names have been checked when they were taken in; quotes keep those that are words of the language.
    pub(super) fn reset(&mut self, name: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.resets, "RESET {};", quoted_name(name));
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let value = quoted(value);
        let _ = if LISTS_OF_NAMES.iter().any(|list| list.eq_ignore_ascii_case(name)) {
            write!(self.sets, "SELECT pg_catalog.set_config({},{value},false);", quoted(name))
        } else {
            write!(self.sets, "SET {}={value};", quoted_name(name))
        };
    }
}

fn quoted_name(name: &str) -> String {
    name.split('.').map(|part| format!("\"{}\"", part.replace('"', ""))).collect::<Vec<_>>().join(".")
}

/// A value as an SQL literal. Backslashes are doubled in an E string, which reads the same whatever
/// `standard_conforming_strings` says.
pub(crate) fn quoted(value: &str) -> String {
    let doubled = value.replace('\'', "''");
    if doubled.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}
