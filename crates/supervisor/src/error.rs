//! Why a network on this machine does not start, or cannot be looked at.

use crate::preflight::Finding;
use client::{ApiError, MembershipError};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use trust::{CertificateError, DocumentError, KeyError};

/// What went wrong, each with its cure where there is one.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// A file or folder cannot be used.
    #[error("cannot {what} {}: {source}", path.display())]
    Disk {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error("{} is damaged: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit, with line and column if it has any.
        cause: String,
    },
    /// Root runs this, and the account that is taken instead cannot use the folder.
    #[error(
        "account {account}, which is taken because nothing here runs as root, cannot use {}: {source}; \
         name a folder that it can enter: --data /var/lib/holdfast", path.display()
    )]
    Closed {
        /// The account.
        account: String,
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no account to take instead of root.
    #[error(transparent)]
    Account(#[from] ::cluster::NoAccount),
    /// No PostgreSQL server is installed, or its program does not run.
    #[error("{0:#}")]
    Server(anyhow::Error),
    /// Another `up` has this folder.
    #[error("{} is up already (process {pid}); `holdfast up status` shows it", path.display())]
    AlreadyUp {
        /// The folder.
        path: PathBuf,
        /// Its process.
        pid: u32,
    },
    /// Nothing runs from this folder.
    #[error("nothing is up in {}", .0.display())]
    NotUp(PathBuf),
    /// It did not end in time.
    #[error("process {pid} has not ended within {limit_s} s; its log is in {}", log.display())]
    StillUp {
        /// Its process.
        pid: u32,
        /// How long was waited.
        limit_s: u64,
        /// Where to look.
        log: PathBuf,
    },
    /// Something on this machine is in the way.
    #[error("{}", list(.0))]
    Preflight(Vec<Finding>),
    /// A child did not come up.
    #[error("{name} {cause}; the end of {}:\n{tail}", log.display())]
    Child {
        /// Which.
        name: &'static str,
        /// How it went.
        cause: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The database was not brought to this program's schema.
    #[error(transparent)]
    Migrate(#[from] store::migrate::MigrateError),
    /// No keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No certificates.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// No signed documents.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Our own provider or proxy did not join.
    #[error("joining the network that has just been started: {0}")]
    Membership(#[from] MembershipError),
    /// The api that has just been started did not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// It was told to stop while it started.
    #[error("stopped while starting")]
    Interrupted,
}

fn list(findings: &[Finding]) -> String {
    findings.iter().fold("this machine is not ready:".to_owned(), |mut text, finding| {
        // Writing into a string does not fail.
        let _ = write!(text, "\n  {finding}");
        text
    })
}
