//! Files that are there whole or not at all.

use super::{StateError, damaged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// The largest file that is read, bytes.
const FILE_MAX: u64 = 256 * 1024;

pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    disk::read(path, FILE_MAX).map_err(|error| {
        if error.kind() == io::ErrorKind::FileTooLarge {
            return damaged(path, &format!("more than {FILE_MAX} bytes"));
        }
        StateError::Io { what: "cannot read", path: path.to_owned(), error }
    })
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StateError> {
    match read(path)? {
        Some(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(path, &error)),
        None => Ok(None),
    }
}

pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    disk::replace(path, bytes).map_err(|error| StateError::Io {
        what: "cannot write",
        path: path.to_owned(),
        error,
    })
}

pub(super) fn replace_json<T: Serialize>(path: &Path, value: &T) -> Result<(), StateError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| StateError::Io {
        what: "cannot write",
        path: path.to_owned(),
        error: error.into(),
    })?;
    bytes.push(b'\n');
    replace(path, &bytes)
}
