//! Nothing here runs as root: who starts `up` as root gets another account's rights, for good, before anything else happens.

use crate::error::UpError;
use ::cluster::Account;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::process::{Pid, Signal, geteuid, getppid, set_parent_process_death_signal};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::Path;

/// If this process is root's: gives the data folder (made if there is none) to an account without rights, becomes that account,
/// and says its name. There is no way back.
///
/// # Errors
/// There is no such account, or it cannot use the folder.
pub fn drop_root(data: &Path) -> Result<Option<String>, UpError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let Account::Other { name, user_id, group_id } = Account::unprivileged()? else { return Ok(None) };
    let disk = |what| move |source| UpError::Disk { what, path: data.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(disk("make"))?;
    let owner = fs::metadata(data).map_err(disk("look at"))?.uid();
    let is_empty = fs::read_dir(data).map_err(disk("look into"))?.next().is_none();
    // A folder with something in it belongs to whoever put it there.
    if owner != user_id && is_empty {
        chown(data, Some(user_id), Some(group_id)).map_err(disk("give away"))?;
    }
    let closed = |source: io::Error| UpError::Closed { account: name.clone(), path: data.to_owned(), source };
    let (user, group) = (Uid::from_raw(user_id), Gid::from_raw(group_id));
    setgroups(&[group])
        .and_then(|()| setgid(group))
        .and_then(|()| setuid(user))
        .map_err(|error| closed(error.into()))?;
    if fs::metadata(data).map_err(closed)?.uid() != user_id {
        return Err(closed(io::Error::other("it belongs to another account")));
    }
    fs::read_dir(data).map_err(closed)?;
    Ok(Some(name))
}

/// For a child: it ends with its parent, by this signal, however the parent ends.
///
/// # Errors
/// The parent is gone already.
pub fn become_child(parent: u32, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    // It may have ended before this was set.
    if getppid().map(|pid| Pid::as_raw(Some(pid))) == i32::try_from(parent).ok() {
        Ok(())
    } else {
        Err(io::Error::other("the process that started this one is gone"))
    }
}
