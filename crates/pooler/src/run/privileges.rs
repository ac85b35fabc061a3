//! Becoming another user once everything is bound.

use super::pidfile::Pidfile;
use nix::errno::Errno;
use nix::unistd::{User, geteuid, initgroups, setgid, setuid};
use std::ffi::CString;

/// The change of user failed; nothing has been served.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// `user` names nobody.
    #[error("user {0:?} does not exist on this system; correct `user`")]
    NoSuchUser(String),
    /// The system refused.
    #[error("cannot become user {user:?}: {error}")]
    Refused {
        /// Whom.
        user: String,
        /// Why.
        #[source]
        error: Errno,
    },
}

/// Becomes `user` if we are root. To be called before any other thread exists.
pub(super) fn give_up(user: Option<&str>, pidfile: Option<&Pidfile>) -> Result<(), PrivilegeError> {
    let Some(name) = user else {
        if geteuid().is_root() {
            tracing::warn!("running as root without need: set `user`, or start as another user");
        }
        return Ok(());
    };
    let refused = |error| PrivilegeError::Refused { user: name.to_owned(), error };
    let found = User::from_name(name).map_err(refused)?;
    let found = found.ok_or_else(|| PrivilegeError::NoSuchUser(name.to_owned()))?;
    if !geteuid().is_root() {
        if geteuid() != found.uid {
            tracing::warn!(user = name, "`user` has no effect: only root can become another user");
        }
        return Ok(());
    }
    if let Some(pidfile) = pidfile {
        pidfile.give_to(found.uid.as_raw(), found.gid.as_raw());
    }
    let c_name = CString::new(name).map_err(|_| PrivilegeError::NoSuchUser(name.to_owned()))?;
    // In this order: without root the first two are refused.
    initgroups(&c_name, found.gid).map_err(refused)?;
    setgid(found.gid).map_err(refused)?;
    setuid(found.uid).map_err(refused)
}
