//! The connections that callers keep between requests.

use std::sync::{Mutex, PoisonError};

use crate::wire::Connection;

/// Idle connections that are kept for each database; a further one is closed.
const MOST_IDLE: usize = 4_000;

/// Idle connections, by database; the one used last is used first.
#[derive(Debug)]
pub(super) struct Sessions {
    idle: Mutex<Vec<Vec<Connection>>>,
}

impl Sessions {
    pub(super) fn new(databases: usize) -> Self {
        Self { idle: Mutex::new((0..databases).map(|_| Vec::new()).collect()) }
    }

    pub(super) fn take(&self, database: usize) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).get_mut(database)?.pop()
    }

    pub(super) fn put(&self, database: usize, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(idle) = idle.get_mut(database).filter(|idle| idle.len() < MOST_IDLE) {
            idle.push(connection);
        }
    }
}
