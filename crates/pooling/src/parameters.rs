//! Reported parameters that belong to a client's session and follow it from server to server.
//!
//! A set is shared and immutable: the usual case, "the server has what this client wants", is one pointer comparison.

use std::fmt::Write as _;
use std::sync::Arc;

/// The parameters tracked for each client: those that PostgreSQL reports and a client may set.
/// `IntervalStyle` is PgBouncer's default for `track_extra_parameters`.
pub const TRACKED: [&str; 6] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "IntervalStyle",
    "standard_conforming_strings",
    "TimeZone",
];

/// Index of `application_name` in [`TRACKED`].
pub const APPLICATION_NAME: usize = 0;

/// Longest value that is kept for a client; a longer one is refused at login.
pub const MAX_VALUE_BYTES: usize = 1024;

/// Values of the tracked parameters; `None` where a server has never reported one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    values: [Option<Arc<str>>; TRACKED.len()],
}

/// The index of a parameter by name; names are case-insensitive, as in PostgreSQL.
#[must_use]
pub fn index_of(name: &str) -> Option<usize> {
    TRACKED.iter().position(|tracked| tracked.eq_ignore_ascii_case(name))
}

impl Tracked {
    /// The value at an index of [`TRACKED`].
    #[must_use]
    pub fn value(&self, index: usize) -> Option<&Arc<str>> {
        self.values.get(index).and_then(Option::as_ref)
    }

    /// Sets the value at an index of [`TRACKED`].
    pub fn set(&mut self, index: usize, value: &str) {
        if let Some(slot) = self.values.get_mut(index) {
            *slot = Some(Arc::from(value));
        }
    }

    /// Takes what a server reported: only tracked names count.
    pub fn set_by_name(&mut self, name: &str, value: &str) {
        if let Some(index) = index_of(name) {
            self.set(index, value);
        }
    }
}

impl Tracked {
    /// This set with the values of `own` in place, where it has any; shared if there is nothing to change.
    #[must_use]
    pub fn overlaid(self: &Arc<Self>, own: &Self) -> Arc<Self> {
        let mut result = self.clone();
        for (index, value) in own.values.iter().enumerate() {
            if let Some(value) = value
                && result.values[index].as_ref() != Some(value)
            {
                Arc::make_mut(&mut result).values[index] = Some(value.clone());
            }
        }
        result
    }
}

/// Takes a report into a shared set, copying it only if the value is new.
pub fn report(set: &mut Arc<Tracked>, name: &str, value: &str) {
    if let Some(index) = index_of(name)
        && set.value(index).map(AsRef::as_ref) != Some(value)
    {
        Arc::make_mut(set).set(index, value);
    }
}

/// The SQL that turns a server's set into a client's; `None` if they agree.
#[must_use]
pub fn difference(server: &Arc<Tracked>, client: &Arc<Tracked>) -> Option<String> {
    if Arc::ptr_eq(server, client) {
        return None;
    }
    let mut sql = String::new();
    for (index, wanted) in client.values.iter().enumerate() {
        let Some(wanted) = wanted else { continue };
        if server.values[index].as_ref() != Some(wanted) {
            // Quotes are doubled; backslashes are plain with the E-less form only under standard_conforming_strings,
            // so a value with one is written with E and doubled backslashes.
            let escaped = wanted.replace('\'', "''");
            let (prefix, escaped) =
                if escaped.contains('\\') { ("E", escaped.replace('\\', "\\\\")) } else { ("", escaped) };
            // Writing to a String cannot fail.
            let _ = write!(sql, "SET {}={prefix}'{escaped}';", TRACKED[index]);
        }
    }
    if sql.is_empty() { None } else { Some(sql) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> Arc<Tracked> {
        let mut tracked = Tracked::default();
        for (name, value) in pairs {
            tracked.set_by_name(name, value);
        }
        Arc::new(tracked)
    }

    #[test]
    fn equal_sets_need_no_sql_and_differences_are_quoted() {
        let server = set(&[("application_name", ""), ("timezone", "UTC")]);
        assert_eq!(difference(&server, &server.clone()), None);
        assert_eq!(difference(&server, &set(&[("TimeZone", "UTC"), ("application_name", "")])), None);
        let client = set(&[("application_name", r"o'hara\"), ("TimeZone", "UTC")]);
        assert_eq!(difference(&server, &client).as_deref(), Some(r"SET application_name=E'o''hara\\';"));
    }

    #[test]
    fn a_report_copies_only_what_is_new() {
        let mut shared = set(&[("client_encoding", "UTF8")]);
        let before = shared.clone();
        report(&mut shared, "client_encoding", "UTF8");
        report(&mut shared, "server_version", "15.1");
        assert!(Arc::ptr_eq(&shared, &before));
        report(&mut shared, "CLIENT_ENCODING", "LATIN1");
        assert_eq!(shared.value(index_of("client_encoding").unwrap()).map(AsRef::as_ref), Some("LATIN1"));
        assert_eq!(before.value(1).map(AsRef::as_ref), Some("UTF8"));
    }
}
