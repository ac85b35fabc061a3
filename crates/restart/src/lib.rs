//! A planned restart of PostgreSQL, so that nobody notices more than a pause: the new settings are checked first, the pools
//! are paused, the server restarts, and the pools go on one after the other. If the server is not up in time, it gets its
//! former settings back and is started with them.
//!
//! Nothing of it is done before the check has passed, and whatever happens after the first pool was paused, all are resumed.

mod check;
mod console;
mod error;
mod files;
mod process;
mod run;
mod server;
mod socket;

pub use check::Change;
pub use error::{Error, ErrorKind};
pub use run::{Done, Outcome, Plan, Restart, Step};

use std::path::PathBuf;
use std::time::Duration;

pub use tokio_postgres::Config;

/// Poolers of one server.
pub const MOST_POOLERS: usize = 64;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's data folder.
    pub data: PathBuf,
    /// The way to the server itself, as a superuser; its database is any. None: its socket, as user `postgres`.
    pub server: Option<Config>,
    /// The consoles of the poolers that lead to it, as users that may PAUSE.
    pub poolers: Vec<Config>,
    /// A file that takes the place of the server's `postgresql.conf`. None: that file stands as it shall be.
    pub new_settings: Option<PathBuf>,
    /// The former `postgresql.conf`, for the way back where there is no `new_settings`. None: the one that the last
    /// restart has kept.
    pub former_settings: Option<PathBuf>,
    /// Restarts the server, as a line for `sh`. None: `pg_ctl restart`, with the server's own options.
    pub command: Option<String>,
    /// The server has so long to be up.
    pub up_limit: Duration,
    /// A pool has so long to come to rest.
    pub pause_limit: Duration,
    /// Between one pooler's RESUME and the next.
    pub resume_every: Duration,
}

impl Options {
    /// The defaults: 60 s to be up, 10 s to come to rest, 500 ms between poolers.
    #[must_use]
    pub fn new(data: PathBuf) -> Self {
        Self {
            data,
            server: None,
            poolers: Vec::new(),
            new_settings: None,
            former_settings: None,
            command: None,
            up_limit: Duration::from_secs(60),
            pause_limit: Duration::from_secs(10),
            resume_every: Duration::from_millis(500),
        }
    }
}
