//! Who is on the console now, and how many there may be.

use super::MAX_CONSOLE_SESSIONS;
use pooling::seam::ClientAddress;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// A session that is open.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// As SHOW CLIENTS prints it. Counts down from the greatest `int4`, away from the identities of clients.
    pub(super) id: i32,
    pub(super) user: String,
    pub(super) address: ClientAddress,
    /// Version and suite; empty without TLS.
    pub(super) tls: String,
    pub(super) connected: Instant,
    pub(super) requested: Instant,
}

/// What the row `pgbouncer` of SHOW STATS counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConsoleTotals {
    pub(super) queries: u64,
    pub(super) logins: u64,
}

/// The open sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: Mutex<Open>,
    queries: AtomicU64,
    logins: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    entries: BTreeMap<i32, Entry>,
    opened: i32,
}

/// Gives the place back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat<'a> {
    sessions: &'a Sessions,
    id: i32,
}

impl Sessions {
    /// A place, unless all are taken.
    pub(super) fn open(&self, user: &str, address: ClientAddress, tls: String) -> Option<Seat<'_>> {
        let now = Instant::now();
        let mut open = self.lock();
        if open.entries.len() >= MAX_CONSOLE_SESSIONS {
            return None;
        }
        let mut id = i32::MAX - open.opened;
        while open.entries.contains_key(&id) {
            id -= 1;
        }
        open.opened = (i32::MAX - id + 1) % (i32::MAX / 2);
        let user = user.to_owned();
        open.entries.insert(id, Entry { id, user, address, tls, connected: now, requested: now });
        drop(open);
        self.logins.fetch_add(1, Ordering::Relaxed);
        Some(Seat { sessions: self, id })
    }

    /// All of them.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.lock().entries.values().rev().cloned().collect()
    }

    pub(super) fn totals(&self) -> ConsoleTotals {
        ConsoleTotals {
            queries: self.queries.load(Ordering::Relaxed),
            logins: self.logins.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat<'_> {
    /// Notes that a request came.
    pub(super) fn requested(&self) {
        self.sessions.queries.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = self.sessions.lock().entries.get_mut(&self.id) {
            entry.requested = Instant::now();
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.sessions.lock().entries.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: ClientAddress = ClientAddress::Unix { port: 6432, uid: 0, pid: 7 };

    #[test]
    fn one_session_more_than_the_limit_is_refused_until_one_leaves() {
        let sessions = Sessions::default();
        let mut seats: Vec<_> =
            (0..MAX_CONSOLE_SESSIONS).map(|_| sessions.open("admin", ADDRESS, String::new())).collect();
        assert!(seats.iter().all(Option::is_some));
        assert!(sessions.open("admin", ADDRESS, String::new()).is_none());
        seats.pop();
        assert!(sessions.open("admin", ADDRESS, String::new()).is_some());
        assert_eq!(sessions.totals().logins, MAX_CONSOLE_SESSIONS as u64 + 1);
    }

    #[test]
    fn identities_of_open_sessions_differ() {
        let sessions = Sessions::default();
        let first = sessions.open("a", ADDRESS, String::new()).unwrap();
        let second = sessions.open("b", ADDRESS, String::new()).unwrap();
        assert_ne!(first.id, second.id);
        assert_eq!(sessions.entries().len(), 2);
    }
}
