//! Parameters that belong to a client's session and follow it from server to server.
//!
//! Two kinds: those that servers report, of which each side's value is always known, and further ones that a client asked
//! for and no server tells of. Sets are shared and interned: equal sets are one allocation, so that the usual case, "the
//! server has what this client wants", is one pointer comparison.

mod set;
mod sql;
#[cfg(test)]
mod tests;

pub use set::Tracked;
pub use sql::Change;
pub(crate) use sql::quoted;

use crate::markers::is_parameter_name;
use std::collections::HashMap;
use std::sync::Arc;

/// Names that are known from the start, so that a client's own values of them show before any server has answered.
const ALWAYS: [&str; 5] =
    ["application_name", "client_encoding", "DateStyle", "standard_conforming_strings", "TimeZone"];

/// Reported, and nobody can set them: a client is told when its next server differs.
const NOT_SETTABLE: [&str; 5] =
    ["in_hot_standby", "integer_datetimes", "is_superuser", "server_encoding", "server_version"];

/// Reported, but not in `pg_settings`.
const NOT_LISTED: &str = "session_authorization";

/// The parameter behind SET ROLE.
pub(crate) const ROLE: &str = "role";

/// Index of `application_name`.
pub const APPLICATION_NAME: usize = 0;

/// Longest value that is kept; a longer one is refused at login, and one that is set later does not follow its client.
pub const MAX_VALUE_BYTES: usize = 1024;

/// Most names of reported parameters; PostgreSQL 18 has 16 of them. Further ones are passed on and not kept.
pub const MAX_REPORTED: usize = 64;

/// Most parameters of one client that no server reports.
pub const MAX_FURTHER: usize = 64;

/// Different sets that are interned at once. Those in use by somebody stay; beyond it, sets are merely not shared.
const MAX_INTERNED: usize = 4096;

/// Which parameters servers report, and the sets of values.
#[derive(Debug)]
pub struct Parameters {
    names: Vec<Name>,
    /// And whether a server has taken all of their values.
    sets: HashMap<Arc<Tracked>, bool>,
    /// Sets that are not shared before unused ones are thrown out again.
    until_purge: usize,
}

/// A reported parameter.
#[derive(Debug)]
struct Name {
    text: Box<str>,
    settable: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self::new()
    }
}

impl Parameters {
    /// Knows those that every PostgreSQL reports; others are learnt from servers.
    #[must_use]
    pub fn new() -> Self {
        let names = ALWAYS.iter().map(|&name| Name { text: name.into(), settable: true }).collect();
        Self { names, sets: HashMap::new(), until_purge: 0 }
    }

    /// The index of a reported parameter by name; names are case-insensitive, as in PostgreSQL.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|tracked| tracked.text.eq_ignore_ascii_case(name))
    }

    /// The same for a name that a server has reported: learnt if it is new and there is room.
    fn learn(&mut self, name: &str) -> Option<usize> {
        self.index_of(name).or_else(|| {
            if self.names.len() >= MAX_REPORTED || !is_parameter_name(name) {
                return None;
            }
            let settable = !NOT_SETTABLE.iter().any(|known| known.eq_ignore_ascii_case(name));
            self.names.push(Name { text: name.into(), settable });
            Some(self.names.len() - 1)
        })
    }

    /// The set of what a server has reported at its login.
    pub fn reported<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Arc<Tracked> {
        let mut tracked = Tracked::default();
        for (name, value) in pairs {
            if let Some(index) = self.learn(name) {
                tracked.set(index, bounded(value));
            }
        }
        self.intern(tracked)
    }

    /// The set of what a client asks for at its start, before it is known what servers report. Of equal names the last one
    /// holds.
    pub fn wished<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Arc<Tracked> {
        let mut tracked = Tracked::default();
        for (name, value) in pairs {
            match self.index_of(name).filter(|&index| index < ALWAYS.len()) {
                Some(index) => tracked.set(index, Some(Arc::from(value))),
                None => tracked.set_further(&name.to_ascii_lowercase(), Arc::from(value)),
            }
        }
        self.intern(tracked)
    }

    /// The set with which a client starts: what a server reports, with the client's own wishes in place.
    pub fn start(&mut self, reported: &Arc<Tracked>, wishes: &Tracked) -> Arc<Tracked> {
        let mut result = Tracked::clone(reported);
        for (index, value) in wishes.values() {
            result.set(index, Some(value.clone()));
        }
        for (name, value) in wishes.further() {
            match self.index_of(name).filter(|&index| reported.value(index).is_some()) {
                Some(index) => result.set(index, Some(value.clone())),
                None => result.set_further(name, value.clone()),
            }
        }
        self.intern(result)
    }

    /// Takes what a server reports into a set.
    pub fn report(&mut self, set: &mut Arc<Tracked>, name: &str, value: &str) {
        let Some(index) = self.learn(name) else { return };
        if set.value(index).map(AsRef::as_ref) == Some(value) && set.further_value(name).is_none() {
            return;
        }
        let mut changed = Tracked::clone(set);
        changed.set(index, bounded(value));
        changed.remove_further(name);
        *set = self.intern(changed);
    }

    /// The value of a reported parameter in a set, by its name.
    pub(crate) fn value_of(&self, set: &Tracked, name: &str) -> Option<Arc<str>> {
        set.value(self.index_of(name)?).cloned()
    }

    /// The SQL that turns a server's set into a client's; `None` if they agree. What the client knows nothing of is to be
    /// as at the server's start.
    #[must_use]
    pub fn difference(
        &self,
        server: &Arc<Tracked>,
        start: &Arc<Tracked>,
        client: &Arc<Tracked>,
    ) -> Option<Change> {
        if Arc::ptr_eq(server, client) {
            return None;
        }
        let mut change = Change::default();
        for (name, _) in server.further() {
            let is_wanted = |index| client.value(index).is_some();
            if client.further_value(name).is_none() && !self.index_of(name).is_some_and(is_wanted) {
                change.reset(name);
            }
        }
        for (index, name) in self.names.iter().enumerate().filter(|(_, name)| name.settable) {
            if let Some(wanted) = client.value(index).or_else(|| start.value(index))
                && server.value(index).or_else(|| server.further_value(&name.text)) != Some(wanted)
            {
                change.set(&name.text, wanted);
            }
        }
        for (name, wanted) in client.further() {
            if server.further_value(name) != Some(wanted) {
                change.set(name, wanted);
            }
        }
        (!change.is_empty()).then_some(change)
    }

    /// A server now has what its client wants: both sets become one. Tells what the client has to be told, which is what
    /// cannot be set, and what the server spells in its own way.
    pub fn agree(
        &mut self,
        server: &mut Arc<Tracked>,
        client: &mut Arc<Tracked>,
        mut tell: impl FnMut(&str, &str),
    ) {
        if Arc::ptr_eq(server, client) {
            return;
        }
        for (index, value) in server.values() {
            if let Some(name) = self.names.get(index)
                && client.value(index) != Some(value)
            {
                tell(&name.text, value);
            }
        }
        let mut agreed = server.without_further();
        // What another server reported to the client, and this one does not.
        for (index, value) in client.values().filter(|&(index, _)| server.value(index).is_none()) {
            if let Some(name) = self.names.get(index).filter(|name| name.settable) {
                agreed.set_further(&name.text.to_ascii_lowercase(), value.clone());
            }
        }
        for (name, value) in client.further() {
            if self.index_of(name).is_none_or(|index| server.value(index).is_none()) {
                agreed.set_further(name, value.clone());
            }
        }
        *server = self.intern(agreed);
        *client = server.clone();
    }

    /// A server has been reset to its start: it reports what it reports, and nothing else is set. But for `role`, which
    /// `RESET ALL` spares: to reset it once more does no harm.
    pub fn forget_further(&mut self, server: &mut Arc<Tracked>) {
        if server.further().next().is_some() {
            let mut reset = server.without_further();
            if let Some(role) = server.further_value(ROLE) {
                reset.set_further(ROLE, role.clone());
            }
            *server = self.intern(reset);
        }
    }

    /// A server has been asked what is set in its session: `found`, by lower-case name. What its client has set stays the
    /// client's, and what the client has not, or no more, is as at the client's start. False if it is too much to be kept.
    pub fn settle(
        &mut self,
        server: &mut Arc<Tracked>,
        client: &mut Arc<Tracked>,
        start: &Tracked,
        found: &[(String, String)],
    ) -> bool {
        let is_found = |name: &str| found.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let mut set = server.without_further();
        let mut is_whole = true;
        for (name, value) in found {
            let is_reported = self.index_of(name).is_some_and(|index| server.value(index).is_some());
            if !is_reported {
                is_whole &= is_parameter_name(name) && set.further().count() < MAX_FURTHER;
                set.set_further(name, Arc::from(value.as_str()));
            }
        }
        let mut own = set.clone();
        for (index, name) in self.names.iter().enumerate() {
            let may_be_found = name.settable && !NOT_LISTED.eq_ignore_ascii_case(&name.text);
            if may_be_found
                && server.value(index).is_some()
                && !is_found(&name.text)
                && let Some(value) = start.value(index)
            {
                own.set(index, Some(value.clone()));
            }
        }
        for (name, value) in start.further().filter(|(name, _)| !is_found(name)) {
            match self.index_of(name).filter(|&index| server.value(index).is_some()) {
                Some(index) => own.set(index, Some(value.clone())),
                None => own.set_further(name, value.clone()),
            }
        }
        *server = self.intern(set);
        *client = self.intern(own);
        if Arc::ptr_eq(server, client) {
            self.note_proven(client);
        }
        is_whole
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

/// A value that is too long is not known: whoever wants another one sets it.
fn bounded(value: &str) -> Option<Arc<str>> {
    (value.len() <= MAX_VALUE_BYTES).then(|| Arc::from(value))
}
