//! Takes connections in, at the rate that handshakes may begin.

use crate::admission::{Admission, Verdict};
use crate::counters::add;
use crate::door::Door;
use link::write_wait;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};

/// Where there is no descriptor left, accepting waits for one.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(10);
/// Connections beyond what the process may have open: the rest is for files and the database.
const RESERVED_DESCRIPTORS: u64 = 64;

pub(crate) struct Listener {
    pub door: Rc<Door>,
    pub socket: TcpListener,
    pub admission: Admission,
    /// Connections that may be open at once.
    pub most: usize,
}

/// Connections that this process may have open.
pub(crate) fn most_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from(limit.saturating_sub(RESERVED_DESCRIPTORS).max(1)).unwrap_or(usize::MAX)
}

impl Listener {
    /// Accepts until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut line: VecDeque<TcpStream> = VecDeque::new();
        let open = Rc::new(());
        let hub = Rc::clone(&self.door.hub);
        loop {
            let next = self.let_in(&mut line, &open);
            hub.waiting.set(line.len());
            let socket = tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok((socket, _)) => socket,
                    Err(error) => {
                        if is_exhausted(&error) {
                            tracing::warn!(%error, "cannot accept");
                            tokio::time::sleep(EXHAUSTED_PAUSE).await;
                        }
                        continue;
                    }
                },
                () = sleep_until(next.map(|at| hub.clock.instant(at))) => continue,
            };
            add(&hub.counters.accepted, 1);
            // Each of them holds a copy of `open`, and so do those in the line.
            if Rc::strong_count(&open) + line.len() > self.most {
                put_off(&hub, &socket, Duration::from_secs(1));
                continue;
            }
            match self.admission.arrive(hub.clock.now()) {
                Verdict::Admit => self.begin(socket, &open),
                Verdict::Wait => line.push_back(socket),
                Verdict::PutOff(wait) => put_off(&hub, &socket, wait),
            }
        }
    }

    /// Lets in as many of the line as may begin now; when the next may.
    fn let_in(&mut self, line: &mut VecDeque<TcpStream>, open: &Rc<()>) -> Option<overload::Moment> {
        loop {
            match self.admission.next(self.door.hub.clock.now())? {
                Err(later) => return Some(later),
                Ok(()) => {
                    // Whoever has left meanwhile costs no handshake.
                    while let Some(socket) = line.pop_front() {
                        if has_left(&socket) {
                            if !self.admission.skip() {
                                break;
                            }
                            continue;
                        }
                        self.begin(socket, open);
                        break;
                    }
                }
            }
        }
    }

    fn begin(&self, socket: TcpStream, open: &Rc<()>) {
        let (door, open) = (Rc::clone(&self.door), Rc::clone(open));
        // A socket without it works too, only slower.
        let _ = socket.set_nodelay(true);
        tokio::task::spawn_local(async move {
            door.serve(socket).await;
            drop(open);
        });
    }
}

/// The peer has ended its side.
fn has_left(socket: &TcpStream) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let ready = std::pin::pin!(socket.ready(Interest::READABLE));
    match ready.poll(&mut context) {
        std::task::Poll::Ready(Ok(ready)) => ready.is_read_closed(),
        std::task::Poll::Ready(Err(_)) => true,
        std::task::Poll::Pending => false,
    }
}

/// Says when to come back, before TLS, and closes.
fn put_off(hub: &crate::hub::Hub, socket: &TcpStream, wait: Duration) {
    add(&hub.counters.put_off, 1);
    let mut said = Vec::new();
    write_wait(&mut said, u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
    // What the client has sent is taken first: a socket that is closed over unread bytes is reset, and the text lost.
    let mut hello = [0; 4_096];
    let _ = socket.try_read(&mut hello);
    let _ = socket.try_write(&said);
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
}

fn is_exhausted(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE, rustix::io::Errno::NOBUFS, rustix::io::Errno::NOMEM]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
