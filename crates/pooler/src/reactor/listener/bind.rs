//! Binding listening sockets, with errors that say which address, why, and what helps.

use super::{Endpoint, Listener, UnixPath, set_keepalive};
use nix::unistd::Group;
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr, set_socket_reuseport, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, getsockname, listen, socket_with,
};
use settings::pooler::Keepalive;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A socket could not be bound. Trying again does not help before somebody acts.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// TCP.
    #[error("cannot listen on {address}: {error}{}", cure(error))]
    Tcp {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A Unix socket.
    #[error("cannot listen on the Unix socket {}: {error}{}", path.display(), cure(error))]
    Unix {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Somebody answers there.
    #[error("cannot listen on the Unix socket {}: another process listens there; stop it, or choose another unix_socket_dir or listen_port", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// `unix_socket_group` names nobody.
    #[error("there is no group {0:?} on this system; correct `unix_socket_group`")]
    NoSuchGroup(String),
    /// Something else has that name.
    #[error("cannot listen on the Unix socket {}: a file that is no socket has this name; move it away", path.display())]
    NotASocket {
        /// Where.
        path: PathBuf,
    },
}

/// Who may connect to a Unix socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnixAccess<'a> {
    /// Mode of its file.
    pub(crate) mode: u32,
    /// Group of its file, by name or number; the process's if none.
    pub(crate) group: Option<&'a str>,
}

/// Binds a TCP address; accepted connections inherit its options. With `reuse_port` other processes of the same user may
/// bind it as well.
///
/// # Errors
/// [`BindError::Tcp`].
pub(crate) fn bind_tcp(
    address: SocketAddr,
    backlog: u32,
    reuse_port: bool,
    keepalive: Keepalive,
) -> Result<Listener, BindError> {
    let failed = |error| BindError::Tcp { address, error };
    let bound = || -> io::Result<(OwnedFd, SocketAddr)> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let descriptor = socket_with(family, SocketType::STREAM, flags(), None)?;
        set_socket_reuseaddr(&descriptor, true)?;
        if reuse_port {
            set_socket_reuseport(&descriptor, true)?;
        }
        if address.is_ipv6() {
            // `*` is bound for both families by two sockets.
            set_ipv6_v6only(&descriptor, true)?;
        }
        set_tcp_nodelay(&descriptor, true)?;
        set_keepalive(descriptor.as_fd(), keepalive)?;
        bind(&descriptor, &address)?;
        listen(&descriptor, backlog_of(backlog))?;
        let local = SocketAddr::try_from(getsockname(&descriptor)?)?;
        Ok((descriptor, local))
    };
    let (descriptor, local) = bound().map_err(failed)?;
    Ok(Listener { descriptor, endpoint: Endpoint::Tcp { local }, ready: false })
}

/// Binds `DIRECTORY/.s.PGSQL.PORT`, replacing what a process that is gone has left there.
///
/// # Errors
/// Any [`BindError`] but the first.
pub(crate) fn bind_unix(
    directory: &Path,
    port: u16,
    access: UnixAccess<'_>,
    backlog: u32,
) -> Result<Listener, BindError> {
    let group = access.group.map(group_id).transpose()?;

    let path = directory.join(format!(".s.PGSQL.{port}"));
    super::unix_path::make_room(&path)?;
    let bound = || -> io::Result<(OwnedFd, UnixPath)> {
        let descriptor = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None)?;
        bind(&descriptor, &SocketAddrUnix::new(&path)?)?;
        let path = UnixPath::of(path.clone())?;
        // Nobody can connect before it listens, so nobody slips in before the mode is set.
        if group.is_some() {
            std::os::unix::fs::chown(path.as_path(), None, group)?;
        }
        chmod(path.as_path(), Mode::from_raw_mode(access.mode))?;
        listen(&descriptor, backlog_of(backlog))?;
        Ok((descriptor, path))
    };
    match bound() {
        Ok((descriptor, path)) => {
            Ok(Listener { descriptor, endpoint: Endpoint::Unix { path, port }, ready: false })
        }
        Err(error) => Err(BindError::Unix { path, error }),
    }
}

impl Listener {
    /// Where it listens, for the log.
    pub(crate) fn name(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { local } => local.to_string(),
            Endpoint::Unix { path, .. } => path.as_path().display().to_string(),
        }
    }

    /// The TCP address that it really has.
    #[cfg(test)]
    pub(crate) fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.endpoint {
            Endpoint::Tcp { local } => Some(*local),
            Endpoint::Unix { .. } => None,
        }
    }
}

fn group_id(group: &str) -> Result<u32, BindError> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let found = Group::from_name(group).ok().flatten();
    found.map(|group| group.gid.as_raw()).ok_or_else(|| BindError::NoSuchGroup(group.to_owned()))
}

fn flags() -> SocketFlags {
    SocketFlags::NONBLOCK | SocketFlags::CLOEXEC
}

/// The system caps it anyway.
fn backlog_of(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}

fn cure(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::ADDRINUSE) => {
            "; another process listens there: stop it, or choose another listen_port (or so_reuseport in both)"
        }
        Some(Errno::ADDRNOTAVAIL) => "; this machine has no such address: correct listen_addr",
        Some(Errno::ACCESS | Errno::PERM) => {
            "; not permitted: choose a port above 1023, or a folder and a group that are this user's"
        }
        Some(Errno::NOENT) => "; the folder does not exist: create it, or correct unix_socket_dir",
        Some(Errno::NAMETOOLONG | Errno::INVAL) => {
            "; a Unix socket's name has at most 107 bytes: choose a shorter unix_socket_dir"
        }
        _ => "",
    }
}
