//! Reported parameters that belong to a client's session and follow it from server to server.
//!
//! Sets are shared and interned: equal sets are one allocation, so that the usual case, "the server has what this
//! client wants", is one pointer comparison.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The parameters tracked for each client: those that PostgreSQL reports and a client may set.
/// `track_extra_parameters` adds to them.
const ALWAYS: [&str; 5] =
    ["application_name", "client_encoding", "DateStyle", "standard_conforming_strings", "TimeZone"];

/// Index of `application_name`.
pub const APPLICATION_NAME: usize = 0;

/// Longest value that is kept for a client; a longer one is refused at login.
pub const MAX_VALUE_BYTES: usize = 1024;

/// Different sets that are interned at once. Those in use by somebody stay; beyond it, sets are merely not shared.
const MAX_INTERNED: usize = 4096;

/// Values of the tracked parameters; `None` where a server has never reported one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tracked {
    values: Box<[Option<Arc<str>>]>,
}

impl Tracked {
    /// The value at an index.
    #[must_use]
    pub fn value(&self, index: usize) -> Option<&Arc<str>> {
        self.values.get(index).and_then(Option::as_ref)
    }

    fn set(&mut self, index: usize, value: Arc<str>) {
        if self.values.len() <= index {
            let mut values = std::mem::take(&mut self.values).into_vec();
            values.resize(index + 1, None);
            self.values = values.into_boxed_slice();
        }
        self.values[index] = Some(value);
    }
}

/// Which parameters are tracked, and the sets of their values.
#[derive(Debug)]
pub struct Parameters {
    names: Vec<String>,
    /// And whether a server has taken all of their values.
    sets: HashMap<Arc<Tracked>, bool>,
    /// Sets that are not shared before unused ones are thrown out again.
    until_purge: usize,
}

impl Parameters {
    /// Tracks the usual ones and `extra`.
    #[must_use]
    pub fn new(extra: &[String]) -> Self {
        let mut names: Vec<String> = ALWAYS.iter().map(|&name| name.to_owned()).collect();
        for name in extra {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                names.push(name.clone());
            }
        }
        Self { names, sets: HashMap::new(), until_purge: 0 }
    }

    /// The index of a parameter by name; names are case-insensitive, as in PostgreSQL.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|tracked| tracked.eq_ignore_ascii_case(name))
    }

    /// The set of what these pairs say of tracked parameters.
    pub fn collect<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Arc<Tracked> {
        let mut tracked = Tracked::default();
        for (name, value) in pairs {
            if let Some(index) = self.index_of(name) {
                tracked.set(index, Arc::from(value));
            }
        }
        self.intern(tracked)
    }

    /// `base` with the values of `own` in place, where it has any.
    pub fn overlay(&mut self, base: &Arc<Tracked>, own: &Tracked) -> Arc<Tracked> {
        let mut result = Tracked::clone(base);
        for (index, value) in own.values.iter().enumerate() {
            if let Some(value) = value {
                result.set(index, value.clone());
            }
        }
        self.intern(result)
    }

    /// Takes what a server reports into a set.
    pub fn report(&mut self, set: &mut Arc<Tracked>, name: &str, value: &str) {
        if let Some(index) = self.index_of(name)
            && set.value(index).map(AsRef::as_ref) != Some(value)
        {
            let mut changed = Tracked::clone(set);
            changed.set(index, Arc::from(value));
            *set = self.intern(changed);
        }
    }

    /// The SQL that turns a server's set into a client's; `None` if they agree.
    #[must_use]
    pub fn difference(&self, server: &Arc<Tracked>, client: &Arc<Tracked>) -> Option<String> {
        if Arc::ptr_eq(server, client) {
            return None;
        }
        let mut sql = String::new();
        for (index, (wanted, name)) in client.values.iter().zip(&self.names).enumerate() {
            let Some(wanted) = wanted else { continue };
            if server.value(index) != Some(wanted) {
                // Writing to a String cannot fail.
                let _ = write!(sql, "SET {name}={};", quoted(wanted));
            }
        }
        if sql.is_empty() { None } else { Some(sql) }
    }

    /// A server has taken every value of this set.
    pub fn note_proven(&mut self, set: &Arc<Tracked>) {
        if let Some(proven) = self.sets.get_mut(set) {
            *proven = true;
        }
    }

    /// True if a server has taken every value of this set before.
    #[must_use]
    pub fn is_proven(&self, set: &Arc<Tracked>) -> bool {
        self.sets.get(set).copied().unwrap_or(false)
    }

    fn intern(&mut self, set: Tracked) -> Arc<Tracked> {
        if let Some((known, _)) = self.sets.get_key_value(&set) {
            return known.clone();
        }
        let set = Arc::new(set);
        if self.sets.len() >= MAX_INTERNED {
            if self.until_purge > 0 {
                // All were in use when last looked at: looking again for each set would cost more than sharing saves.
                self.until_purge -= 1;
                return set;
            }
            self.sets.retain(|known, _| Arc::strong_count(known) > 1);
            self.until_purge = MAX_INTERNED / 4;
        }
        if self.sets.len() < MAX_INTERNED {
            self.sets.insert(set.clone(), false);
        }
        set
    }
}

/// A value as an SQL literal. Backslashes are doubled in an E string, which reads the same whatever
/// `standard_conforming_strings` says.
fn quoted(value: &str) -> String {
    let doubled = value.replace('\'', "''");
    if doubled.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_are_one_and_differences_are_quoted() {
        let mut parameters = Parameters::new(&["IntervalStyle".to_owned(), "timezone".to_owned()]);
        let server = parameters.collect([("application_name", ""), ("timezone", "UTC")]);
        let same =
            parameters.collect([("TimeZone", "UTC"), ("server_version", "15"), ("application_name", "")]);
        assert!(Arc::ptr_eq(&server, &same));
        assert_eq!(parameters.difference(&server, &same), None);
        let client = parameters.collect([("application_name", r"o'hara\"), ("IntervalStyle", "iso_8601")]);
        assert_eq!(
            parameters.difference(&server, &client).as_deref(),
            Some(r"SET application_name=E'o''hara\\';SET IntervalStyle='iso_8601';")
        );
    }

    #[test]
    fn a_report_changes_one_set_and_leaves_the_others() {
        let mut parameters = Parameters::new(&[]);
        let before = parameters.collect([("client_encoding", "UTF8")]);
        let mut shared = before.clone();
        parameters.report(&mut shared, "client_encoding", "UTF8");
        parameters.report(&mut shared, "server_version", "15.1");
        assert!(Arc::ptr_eq(&shared, &before));
        parameters.report(&mut shared, "CLIENT_ENCODING", "LATIN1");
        let index = parameters.index_of("client_encoding").unwrap();
        assert_eq!(shared.value(index).map(AsRef::as_ref), Some("LATIN1"));
        assert_eq!(before.value(index).map(AsRef::as_ref), Some("UTF8"));
        parameters.report(&mut shared, "client_encoding", "UTF8");
        assert!(Arc::ptr_eq(&shared, &before));
    }

    #[test]
    fn the_interned_sets_are_bounded() {
        let mut parameters = Parameters::new(&[]);
        for number in 0..MAX_INTERNED + 10 {
            parameters.collect([("application_name", number.to_string().as_str())]);
        }
        assert!(parameters.sets.len() <= MAX_INTERNED);
        let kept: Vec<_> = (0..MAX_INTERNED + 10)
            .map(|number| parameters.collect([("application_name", format!("k{number}").as_str())]))
            .collect();
        assert!(parameters.sets.len() <= MAX_INTERNED);
        assert_eq!(kept[MAX_INTERNED + 9].value(APPLICATION_NAME).map(AsRef::as_ref), Some("k4105"));
    }
}
