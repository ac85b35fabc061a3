//! A TCP relay between a pooler and its database (or a client and its pooler) that can freeze, cut, slow and swallow.

mod pump;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::port::PortLease;

/// `listen(2)` backlog: thousands of clients may come at once.
const BACKLOG: i32 = 4096;

/// What the relay does now.
#[derive(Clone, Debug, Default)]
struct Faults {
    frozen: bool,
    swallow_new: bool,
    refuse_new: bool,
    delay_new: Duration,
    delay_up: Duration,
    delay_down: Duration,
    /// Connections opened before the last cut are ended.
    cuts: u64,
    /// Whether the last cut was a reset.
    cut_by_reset: bool,
    stop: bool,
}

/// A direction through the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the one who connected, to the target.
    Up,
    /// From the target back.
    Down,
}

/// How connections are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Both sides see an orderly end (FIN).
    Close,
    /// Both sides see a reset (RST).
    Reset,
}

/// What has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RelayCounts {
    /// Connections accepted, swallowed and refused ones too.
    pub opened: u64,
    /// Connections open now.
    pub live: u64,
    /// Bytes to the target.
    pub bytes_up: u64,
    /// Bytes from the target.
    pub bytes_down: u64,
}

#[derive(Debug, Default)]
struct Counters {
    opened: AtomicU64,
    live: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

/// A running relay, on a thread of its own; dropping it closes everything.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    _port: PortLease,
    faults: watch::Sender<Faults>,
    counters: Arc<Counters>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay to `target`, on a free port.
    ///
    /// # Errors
    /// No port, thread or runtime.
    pub fn start(target: SocketAddr) -> anyhow::Result<Self> {
        Self::start_on(Ipv4Addr::LOCALHOST.into(), target)
    }

    /// The same, where others can reach it: in a network of the drill's own.
    ///
    /// # Errors
    /// No port, thread or runtime.
    pub fn start_on(ip: IpAddr, target: SocketAddr) -> anyhow::Result<Self> {
        let port = PortLease::take()?;
        let address = SocketAddr::new(ip, port.number());
        let (faults, seen) = watch::channel(Faults::default());
        let counters = Arc::new(Counters::default());
        let listener = listen(address).context("the relay cannot listen")?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::clone(&counters);
        let work = move || runtime.block_on(serve(listener, target, seen, &shared));
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(work)?;
        Ok(Self { address, _port: port, faults, counters, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Holds every byte and every end of a connection, both ways, and new connections too. Nothing is lost.
    pub fn freeze(&self) {
        self.faults.send_modify(|faults| faults.frozen = true);
    }

    /// Ends [`Self::freeze`].
    pub fn thaw(&self) {
        self.faults.send_modify(|faults| faults.frozen = false);
    }

    /// Ends every connection that is open now, also while frozen. New ones are welcome.
    pub fn cut(&self, how: Cut) {
        self.faults.send_modify(|faults| {
            faults.cuts += 1;
            faults.cut_by_reset = how == Cut::Reset;
        });
    }

    /// Each new connection waits that long before its target is dialled, as with a busy or distant database.
    pub fn delay_new(&self, delay: Duration) {
        self.faults.send_modify(|faults| faults.delay_new = delay);
    }

    /// Every byte of one direction arrives that much later; order is kept.
    pub fn delay_bytes(&self, direction: Direction, delay: Duration) {
        self.faults.send_modify(|faults| match direction {
            Direction::Up => faults.delay_up = delay,
            Direction::Down => faults.delay_down = delay,
        });
    }

    /// While on: new connections are accepted, read and never answered. They stay so until they are cut.
    pub fn swallow_new(&self, on: bool) {
        self.faults.send_modify(|faults| faults.swallow_new = on);
    }

    /// While on: new connections are reset at once.
    pub fn refuse_new(&self, on: bool) {
        self.faults.send_modify(|faults| faults.refuse_new = on);
    }

    /// What has passed so far.
    #[must_use]
    pub fn counts(&self) -> RelayCounts {
        RelayCounts {
            opened: self.counters.opened.load(Ordering::Relaxed),
            live: self.counters.live.load(Ordering::Relaxed),
            bytes_up: self.counters.bytes_up.load(Ordering::Relaxed),
            bytes_down: self.counters.bytes_down.load(Ordering::Relaxed),
        }
    }

    /// Stops the relay and waits for its thread.
    ///
    /// # Errors
    /// Its thread panicked.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.join()
    }

    fn join(&mut self) -> anyhow::Result<()> {
        self.faults.send_modify(|faults| faults.stop = true);
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| anyhow!("the relay's thread panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A panic of that thread has been printed by its own hook.
        let _ = self.join();
    }
}

fn listen(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    // A second listen(2) only changes the backlog.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(
    listener: std::net::TcpListener,
    target: SocketAddr,
    faults: watch::Receiver<Faults>,
    counters: &Arc<Counters>,
) {
    // Fails only where the runtime cannot watch a socket at all; the caller then sees refused connections.
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut stopper = faults.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    counters.opened.fetch_add(1, Ordering::Relaxed);
                    counters.live.fetch_add(1, Ordering::Relaxed);
                    let (faults, counters) = (faults.clone(), Arc::clone(counters));
                    connections.spawn(async move {
                        pump::connection(client, target, faults, &counters).await;
                        counters.live.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                // Out of descriptors: the client waits in the backlog.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
            stopped = stopper.wait_for(|faults| faults.stop) => {
                drop(stopped);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
