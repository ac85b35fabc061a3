//! The state folder: what this provider has carried, what its owner has said, and what was refused for good. Its keys and its
//! membership stand in the same folder, and belong to [`client::Membership`].
//!
//! Mode 0700, each file replaced by a rename.

mod file;
mod kept;

pub use kept::{Held, MonthCap, Wishes};

use crate::limits::Usage;
use client::Pace;
use file::{read_json, replace_json};
use kept::PaceMs;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The mode of the folder.
const FOLDER_MODE: u32 = 0o700;
/// What others may do with the folder: nothing.
const OTHERS: u32 = 0o077;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Something is wrong with a file or the folder.
    #[error("{what} {}: {error}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// A file has been damaged.
    #[error("{} is damaged ({cause}); restore it from a copy, or remove it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        cause: String,
    },
    /// Others could read the keys in it.
    #[error("{} may be read or written by others; run `chmod 700` on it", .0.display())]
    Open(PathBuf),
    /// It belongs to somebody else.
    #[error("{} belongs to another user (uid {owner}); run this as that user, or name another folder", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
}

/// Where the folder is if nobody says otherwise; `variable` reads the environment. `None` without a home folder.
pub fn default_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HOLDFAST_PROVIDER_STATE")
        // Of a systemd unit with StateDirectory= (systemd.exec(5)).
        .or_else(|| set("STATE_DIRECTORY"))
        .or_else(|| set("XDG_STATE_HOME").map(|base| base.join("holdfast/provider")))
        .or_else(|| set("HOME").map(|home| home.join(".local/state/holdfast/provider")))
}

/// The folder.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
}

impl StateFolder {
    /// Opens the folder, or makes it.
    ///
    /// # Errors
    ///
    /// It cannot be made, belongs to another user, or others may look inside.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let failed = |what, error| StateError::Io { what, path: path.to_owned(), error };
        DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(path)
            .map_err(|error| failed("cannot make the folder", error))?;
        let found = fs::metadata(path).map_err(|error| failed("cannot look at", error))?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(StateError::Foreign { path: path.to_owned(), owner: found.uid() });
        }
        if found.mode() & OTHERS != 0 {
            return Err(StateError::Open(path.to_owned()));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The folder of another user, for root: good for asking the provider that runs with it, not for writing into it.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn visit(path: &Path) -> Result<Self, StateError> {
        let found = fs::metadata(path);
        found.map_err(|error| StateError::Io { what: "cannot look at", path: path.to_owned(), error })?;
        Ok(Self { path: path.to_owned() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration file in it.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.path.join("provider.toml")
    }

    /// The socket for `status`, `pause` and the like.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.path.join("control.sock")
    }

    /// The log file in it.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.path.join("provider.log")
    }

    /// The credential that was definitely refused, if it was.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub fn held(&self) -> Result<Option<Held>, StateError> {
        read_json(&self.path.join("held.json"))
    }

    /// Keeps a refusal for good.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    pub fn hold(&self, held: &Held) -> Result<(), StateError> {
        replace_json(&self.path.join("held.json"), held)
    }

    /// The owner says that it may be tried again.
    ///
    /// # Errors
    ///
    /// The file is there and cannot be removed.
    pub fn release(&self) -> Result<(), StateError> {
        let path = self.path.join("held.json");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StateError::Io { what: "cannot remove", path, error })
            }
            _ => Ok(()),
        }
    }

    /// What was carried. A damaged file counts as nothing carried, with a warning: it must not keep a provider from working.
    #[must_use]
    pub fn usage(&self) -> Usage {
        match read_json(&self.path.join("usage.json")) {
            Ok(usage) => usage.unwrap_or_default(),
            Err(error) => {
                tracing::warn!("{error}; this month's count begins again");
                Usage::default()
            }
        }
    }

    /// Keeps what was carried.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    pub fn keep_usage(&self, usage: &Usage) -> Result<(), StateError> {
        replace_json(&self.path.join("usage.json"), usage)
    }

    /// The pace that the last relay set: a start after an outage keeps to it from its first attempt. `None` if none is known.
    pub(crate) fn pace(&self) -> Option<Pace> {
        let kept: Option<PaceMs> = read_json(&self.path.join("pace.json")).unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        });
        kept.map(PaceMs::pace)
    }

    pub(crate) fn keep_pace(&self, pace: Pace) -> Result<(), StateError> {
        replace_json(&self.path.join("pace.json"), &PaceMs::of(pace))
    }

    /// What the owner has said by command.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub fn wishes(&self) -> Result<Wishes, StateError> {
        read_json(&self.path.join("wishes.json")).map(Option::unwrap_or_default)
    }

    /// Keeps what the owner has said.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    pub fn keep_wishes(&self, wishes: &Wishes) -> Result<(), StateError> {
        replace_json(&self.path.join("wishes.json"), wishes)
    }
}

fn damaged(path: &Path, cause: &dyn std::fmt::Display) -> StateError {
    StateError::Damaged { path: path.to_owned(), cause: cause.to_string() }
}

#[cfg(test)]
mod tests;
