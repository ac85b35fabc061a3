//! The name of a Unix socket in the file system: room before it, removal after it.

use super::BindError;
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Removes the name when dropped, unless a later process has taken it over.
#[derive(Debug)]
pub(crate) struct UnixPath {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl UnixPath {
    /// The socket that has just been bound there.
    pub(crate) fn of(path: PathBuf) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(&path)?;
        Ok(Self { path, device: metadata.dev(), inode: metadata.ino() })
    }

    pub(crate) fn as_path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixPath {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| metadata.dev() == self.device && metadata.ino() == self.inode);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the Unix socket");
        }
    }
}

/// Removes what a process that is gone has left under this name.
///
/// # Errors
/// Somebody listens there, it is no socket, or it cannot be removed.
pub(super) fn make_room(path: &Path) -> Result<(), BindError> {
    let failed = |error| BindError::Unix { path: path.to_owned(), error };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(BindError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(BindError::InUse { path: path.to_owned() }),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::CONNREFUSED) => fs::remove_file(path).map_err(failed),
            Some(Errno::NOENT) => Ok(()),
            Some(Errno::AGAIN) => Err(BindError::InUse { path: path.to_owned() }),
            _ => Err(failed(error)),
        },
    }
}
