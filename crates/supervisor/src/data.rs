//! The data folder: one place for everything that a network on this machine keeps.

use crate::error::UpError;
use std::path::{Path, PathBuf, absolute};

/// Where root keeps a service's data (Filesystem Hierarchy Standard §5.8).
const ROOT_FOLDER: &str = "/var/lib/holdfast";
/// The largest file of ours that is read whole, in bytes.
const MAX_FILE_LEN: u64 = 8 * 1_024 * 1_024;

/// The folder, which only its owner may enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// Where it is unless it is named: `/var/lib/holdfast` for root, else `holdfast` in the user's data folder (XDG).
    #[must_use]
    pub fn default_path() -> PathBuf {
        if rustix::process::geteuid().is_root() {
            return PathBuf::from(ROOT_FOLDER);
        }
        let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        named("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| named("HOME").map(|home| home.join(".local/share")))
            .unwrap_or_else(|| PathBuf::from("."))
            .join("holdfast")
    }

    /// Takes the folder, and makes it if there is none.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<Self, UpError> {
        let path =
            absolute(path).map_err(|source| UpError::Disk { what: "find", path: path.to_owned(), source })?;
        let made = disk::private_folder(&path);
        made.map_err(|source| UpError::Disk { what: "make", path: path.clone(), source })?;
        Ok(Self { path })
    }

    /// Takes a folder that is there.
    ///
    /// # Errors
    /// Nothing of ours is there.
    pub fn open(path: &Path) -> Result<Self, UpError> {
        let path =
            absolute(path).map_err(|source| UpError::Disk { what: "find", path: path.to_owned(), source })?;
        if path.is_dir() { Ok(Self { path }) } else { Err(UpError::NotUp(path)) }
    }

    /// Its path, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The log of a child.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("log").join(format!("{name}.log"))
    }

    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, UpError> {
        let path = self.file(name);
        let made = disk::private_folder(&path);
        made.map_err(|source| UpError::Disk { what: "make", path: path.clone(), source })?;
        Ok(path)
    }

    /// The text of a file; `None` if there is no such file.
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, UpError> {
        let path = self.file(name);
        disk::read_text(&path, MAX_FILE_LEN).map_err(|source| UpError::Disk { what: "read", path, source })
    }

    /// Replaces a file whole; only its owner may read it.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), UpError> {
        let path = self.file(name);
        disk::replace(&path, text.as_bytes()).map_err(|source| UpError::Disk { what: "write", path, source })
    }

    pub(crate) fn damaged(&self, name: &str, cause: impl ToString) -> UpError {
        UpError::Damaged { path: self.file(name), cause: cause.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_written_is_whole_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::create(&folder.path().join("a/b")).unwrap();
        assert_eq!(data.read("file").unwrap(), None);
        data.write("file", "one").unwrap();
        data.write("file", "two").unwrap();
        assert_eq!(data.read("file").unwrap().as_deref(), Some("two"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(data.path()), mode(&data.file("file"))), (0o700, 0o600));
        assert!(!data.file("file.new").exists());
        assert!(DataFolder::open(&folder.path().join("c")).is_err());
    }
}
