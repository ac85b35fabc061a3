//! Files that are there whole or not at all.

use super::{StateError, damaged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The largest file that is read, bytes.
const FILE_MAX: u64 = 256 * 1024;

pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    let failed = |error| StateError::Io { what: "cannot read", path: path.to_owned(), error };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(damaged(path, &format!("more than {FILE_MAX} bytes")));
    }
    Ok(Some(bytes))
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StateError> {
    match read(path)? {
        Some(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(path, &error)),
        None => Ok(None),
    }
}

/// Writes a new file beside the old one, on the disk, and puts it in its place.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let new = path.with_extension("new");
    let written = || {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(|error| StateError::Io { what: "cannot write", path: path.to_owned(), error })
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
