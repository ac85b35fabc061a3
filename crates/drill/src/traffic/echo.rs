//! The target: it sends back what it gets, and counts it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

const BUFFER_BYTES: usize = 16 * 1024;
/// Rest after an accept that failed: no descriptor is free.
const ACCEPT_REST: Duration = Duration::from_millis(10);

/// A running target. Dropping it ends its thread and its connections.
#[derive(Debug)]
pub struct Echo {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
    stop: watch::Sender<bool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Echo {
    pub(super) fn start(ip: IpAddr) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind((ip, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let bytes = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = watch::channel(false);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let counted = Arc::clone(&bytes);
        let work = move || runtime.block_on(serve(listener, counted, stopped));
        let thread = thread::Builder::new().name("target".to_owned()).spawn(work)?;
        Ok(Self { address, bytes, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that have come here so far; each was sent back.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been printed by its own hook.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, bytes: Arc<AtomicU64>, mut stopped: watch::Receiver<bool>) {
    // Fails only where the runtime cannot watch a socket at all; customers then see refused connections.
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(send_back(stream, Arc::clone(&bytes)))),
                Err(_) => tokio::time::sleep(ACCEPT_REST).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.wait_for(|stop| *stop) => return,
        }
    }
}

async fn send_back(mut stream: TcpStream, bytes: Arc<AtomicU64>) {
    // Without the option it is merely slower.
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            // The other direction ends too.
            let _ = stream.shutdown().await;
            return;
        }
        bytes.fetch_add(count as u64, Ordering::Relaxed);
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
