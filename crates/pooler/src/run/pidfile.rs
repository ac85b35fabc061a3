//! The file with our process id.

use rustix::fs::{Gid, OFlags, Uid, chown};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The pidfile could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum PidfileError {
    /// Somebody else runs.
    #[error("pidfile {} holds {pid}, which is alive: another pooler runs with this configuration; stop it, or choose another pidfile", path.display())]
    Alive {
        /// Which file.
        path: PathBuf,
        /// Whose number it holds.
        pid: i32,
    },
    /// It cannot be read or written.
    #[error("cannot write pidfile {}: {error}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

/// Removes the file when dropped, if it still holds our number.
#[derive(Debug)]
pub(super) struct Pidfile {
    path: PathBuf,
}

impl Pidfile {
    /// Writes our process id, unless the file holds that of another live process.
    pub(super) fn claim(path: &Path) -> Result<Self, PidfileError> {
        if let Some(pid) = holder(path).filter(|&pid| pid != getpid() && is_alive(pid)) {
            return Err(PidfileError::Alive { path: path.to_owned(), pid: pid.as_raw_nonzero().get() });
        }
        let write = || -> io::Result<()> {
            // A link that somebody has put there must not lead our privileges elsewhere.
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o644)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)?;
            writeln!(file, "{}", getpid())
        };
        write().map_err(|error| PidfileError::Write { path: path.to_owned(), error })?;
        Ok(Self { path: path.to_owned() })
    }

    /// Gives the file to the user that we become, so that it can be emptied at the end.
    pub(super) fn give_to(&self, uid: u32, gid: u32) {
        if let Err(error) = chown(&self.path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
            tracing::warn!(%error, path = %self.path.display(), "cannot hand the pidfile over");
        }
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        if holder(&self.path) != Some(getpid()) {
            return;
        }
        // Without the right to remove it, an empty file says the same.
        if let Err(error) = fs::remove_file(&self.path).or_else(|_| fs::write(&self.path, "")) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the pidfile");
        }
    }
}

fn holder(path: &Path) -> Option<Pid> {
    Pid::from_raw(fs::read_to_string(path).ok()?.trim().parse().ok().filter(|&pid: &i32| pid > 0)?)
}

/// A process that we may not signal is alive as well.
fn is_alive(pid: Pid) -> bool {
    !matches!(test_kill_process(pid), Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pidfile_of_a_live_process_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pooler.pid");
        fs::write(&path, "1\n").unwrap();
        assert!(matches!(Pidfile::claim(&path), Err(PidfileError::Alive { pid: 1, .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[test]
    fn a_stale_pidfile_is_taken_over_and_removed_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pooler.pid");
        for stale in ["", "nonsense", "-1", "2147483646\n"] {
            fs::write(&path, stale).unwrap();
            let pidfile = Pidfile::claim(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap().trim(), getpid().to_string());
            drop(pidfile);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pooler.pid");
        let precious = directory.path().join("precious");
        fs::write(&precious, "keep").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        assert!(matches!(Pidfile::claim(&path), Err(PidfileError::Write { .. })));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "keep");
    }
}
