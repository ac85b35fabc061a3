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

/// Where there is no descriptor left, accepting waits for one; so it does after whatever else the system says.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(10);
/// That it waits is logged so often.
const WARN_INTERVAL: Duration = Duration::from_secs(60);
/// A client that was told to come back, and does not close, is let go after this.
const PUT_OFF_LINGER: Duration = Duration::from_secs(1);
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
        let (mut accepts_at, mut warns_at) = (None, hub.clock.now());
        loop {
            let next = self.let_in(&mut line, &open);
            hub.waiting.set(line.len());
            let socket = tokio::select! {
                accepted = self.socket.accept(), if accepts_at.is_none() => match accepted {
                    Ok((socket, _)) => socket,
                    Err(error) => {
                        let now = hub.clock.now();
                        if !has_gone(&error) {
                            // The line and the clients go on meanwhile.
                            accepts_at = Some(now + EXHAUSTED_PAUSE);
                            if now >= warns_at {
                                warns_at = now + WARN_INTERVAL;
                                tracing::warn!(%error, "cannot accept; it is tried again");
                            }
                        }
                        continue;
                    }
                },
                () = sleep_until(accepts_at.map(|at| hub.clock.instant(at))) => {
                    accepts_at = None;
                    continue;
                }
                () = sleep_until(next.map(|at| hub.clock.instant(at))) => continue,
            };
            add(&hub.counters.accepted, 1);
            // Each of them holds a copy of `open`, and so do those in the line.
            if Rc::strong_count(&open) + line.len() > self.most {
                self.put_off(socket, Duration::from_secs(1));
                continue;
            }
            match self.admission.arrive(hub.clock.now()) {
                Verdict::Admit => self.begin(socket, &open),
                Verdict::Wait => line.push_back(socket),
                Verdict::PutOff(wait) => self.put_off(socket, wait),
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

    /// Says when to come back, before TLS, and closes.
    fn put_off(&self, socket: TcpStream, wait: Duration) {
        let hub = &self.door.hub;
        add(&hub.counters.put_off, 1);
        let mut said = Vec::new();
        write_wait(&mut said, u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
        // Past the runtime, which knows nothing yet of a socket that is new. Its buffer is empty, and takes this whole.
        let _ = rustix::net::send(&socket, &said, rustix::net::SendFlags::NOSIGNAL);
        let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Write);
        // Its hello is on its way: a socket that is closed over it is reset, and on some systems the text is lost with it.
        if let Some(held) = self.door.hold() {
            tokio::task::spawn_local(async move {
                crate::hub::linger(&socket, PUT_OFF_LINGER).await;
                drop(held);
            });
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

/// The connection that was to be accepted was given up by its client: the next may be fine.
fn has_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
