//! Folders for servers: short paths (a Unix socket's path has at most 107 bytes), removed with their owner.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use cluster::Account;

/// Longer temporary folders leave too little room for the name of a Unix socket.
const LONGEST_BASE_BYTES: usize = 48;

/// The folder that holds everything this room writes: `holdfast-drill-UID` in the system's temporary folder.
///
/// # Errors
/// It cannot be made, or it belongs to someone else.
pub fn base() -> anyhow::Result<PathBuf> {
    let user_id = rustix::process::geteuid().as_raw();
    let mut system = std::env::temp_dir();
    if system.as_os_str().len() > LONGEST_BASE_BYTES {
        system = PathBuf::from("/tmp");
    }
    let base = system.join(format!("holdfast-drill-{user_id}"));
    fs::create_dir_all(&base).with_context(|| format!("cannot make {}", base.display()))?;
    let meta = fs::symlink_metadata(&base).with_context(|| format!("cannot read {}", base.display()))?;
    ensure!(
        meta.is_dir() && meta.uid() == user_id,
        "{} does not belong to this account: remove it, or set TMPDIR to another folder",
        base.display()
    );
    // Servers of another account must be able to pass through.
    if meta.mode() & 0o777 != 0o755 {
        fs::set_permissions(&base, Permissions::from_mode(0o755))?;
    }
    Ok(base)
}

/// A folder of its own, given to `account`, removed with everything in it when dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Makes one; its name starts with `prefix`. Everyone may enter it (sockets), only `account` and root may write.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(prefix: &str, account: &Account) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("{prefix}-"))
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(base()?)
            .context("cannot make a folder for a server")?;
        account.give(folder.path()).context("cannot give a server its folder")?;
        Ok(Self { folder })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
