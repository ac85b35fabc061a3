//! What can go wrong, and what is true of the server then.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why nothing was done. The server runs as before, and every pool goes on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server would not start with the new settings.
    #[error("{} is wrong, and nothing was touched: {said}", file.display())]
    Settings {
        /// The file.
        file: PathBuf,
        /// What the server says of it.
        said: String,
    },
    /// There is no way back.
    #[error(
        "there are no former settings to go back to: say which file was in force before (--former), or give the new one beside the old (--new)"
    )]
    NoWayBack,
    /// The data folder is not that of a server that runs.
    #[error("{} is not the data folder of a running server: {why}", folder.display())]
    NotRunning {
        /// The folder.
        folder: PathBuf,
        /// What is missing.
        why: String,
    },
    /// The server cannot be asked.
    #[error("the server cannot be asked: {0}")]
    Server(String),
    /// A pooler cannot be asked.
    #[error("the pooler at {pooler} cannot be asked: {why}")]
    Pooler {
        /// Where its console is.
        pooler: String,
        /// Why not.
        why: String,
    },
    /// A transaction goes on and on.
    #[error(
        "the pooler at {pooler} did not come to rest within {limit:?}: a transaction goes on; try again later, or with more time"
    )]
    Busy {
        /// Where its console is.
        pooler: String,
        /// How long it had.
        limit: Duration,
    },
    /// More poolers than [`crate::MOST_POOLERS`].
    #[error("more than {} poolers", crate::MOST_POOLERS)]
    TooMany,
    /// A file.
    #[error("{}: {source}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A program.
    #[error("cannot run {program}: {source}")]
    Program {
        /// Which.
        program: String,
        /// What the system says.
        source: io::Error,
    },
}

/// [`Error`] as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The new settings are wrong.
    Settings,
    /// What was asked for cannot be done so.
    Usage,
    /// Server or pooler cannot be reached.
    Unreachable,
    /// Later it may go.
    Busy,
    /// This machine.
    System,
}

impl Error {
    /// Its label.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings { .. } => ErrorKind::Settings,
            Self::NoWayBack | Self::TooMany => ErrorKind::Usage,
            Self::NotRunning { .. } | Self::Server(_) | Self::Pooler { .. } => ErrorKind::Unreachable,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::File { .. } | Self::Program { .. } => ErrorKind::System,
        }
    }

    pub(crate) fn file(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::File { file, source }
    }
}
