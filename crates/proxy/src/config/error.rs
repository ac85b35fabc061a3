//! Why a configuration cannot be used.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use selection::UsernameError;
use thiserror::Error;

/// Why the file cannot be used. The operator's to mend.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is larger than any real one.
    #[error("{} is too large to be a configuration", .0.display())]
    TooLarge(PathBuf),
    /// It is not TOML, or not these settings; with line and column.
    #[error("{0}")]
    Syntax(String),
    /// Nobody could reach it.
    #[error("`listen` is empty")]
    NoListener,
    /// A listener for everybody.
    #[error(
        "{0} can be reached from other machines, and has `no_auth_account`: everybody could use it at that account's \
         cost. Listen on a loopback address, or leave `no_auth_account` out"
    )]
    OpenProxy(SocketAddr),
    /// Not a user name.
    #[error("`no_auth_account` of {address}: {error}")]
    NoAuthAccount {
        /// The listener.
        address: SocketAddr,
        /// What is wrong.
        error: UsernameError,
    },
    /// Not a selection.
    #[error("`selection` of {address}: {error}")]
    Selection {
        /// The listener.
        address: SocketAddr,
        /// What is wrong.
        error: UsernameError,
    },
    /// A bound of nothing.
    #[error("`{0}` is 0: nothing could work")]
    Zero(&'static str),
}
