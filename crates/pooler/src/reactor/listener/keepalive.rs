//! Options of a TCP socket.

use rustix::net::sockopt::{
    set_socket_keepalive, set_socket_recv_buffer_size, set_socket_send_buffer_size, set_tcp_keepcnt,
    set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};
use settings::pooler::Keepalive;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Sets it as configured; on a listening socket for all that it accepts. A zero keeps the system's value.
///
/// # Errors
/// The system refuses a value.
pub(crate) fn set_keepalive(descriptor: BorrowedFd<'_>, keepalive: Keepalive) -> io::Result<()> {
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    set_socket_keepalive(descriptor, keepalive.enabled)?;
    if keepalive.enabled {
        if keepalive.count > 0 {
            set_tcp_keepcnt(descriptor, keepalive.count)?;
        }
        if keepalive.idle_s > 0 {
            set_tcp_keepidle(descriptor, seconds(keepalive.idle_s))?;
        }
        if keepalive.interval_s > 0 {
            set_tcp_keepintvl(descriptor, seconds(keepalive.interval_s))?;
        }
    }
    if keepalive.buffer_bytes > 0 {
        // The system doubles it, for its own book-keeping, and has a limit of its own.
        set_socket_recv_buffer_size(descriptor, keepalive.buffer_bytes as usize)?;
        set_socket_send_buffer_size(descriptor, keepalive.buffer_bytes as usize)?;
    }
    if keepalive.user_timeout_ms > 0 {
        set_tcp_user_timeout(descriptor, keepalive.user_timeout_ms)?;
    }
    Ok(())
}
