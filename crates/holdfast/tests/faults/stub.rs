//! Something that listens like a PostgreSQL server and is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drill::wire::frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Closes once it has seen the start-up packet.
    EndsDuringLogin,
    /// Logs everybody in, says that it is ready, and closes shortly after.
    EndsAfterLogin,
}

/// Ends when it is dropped.
pub(crate) struct Stub {
    port: u16,
    logins: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Stub {
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let logins = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&logins);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, behaviour));
            }
        });
        Self { port, logins, task }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Connections so far.
    pub(crate) fn logins(&self) -> usize {
        self.logins.load(Ordering::Relaxed)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, behaviour: Behaviour) {
    // A request for TLS comes first, and is declined.
    let mut request = [0; 8];
    if stream.read_exact(&mut request).await.is_err() || stream.write_all(b"N").await.is_err() {
        return;
    }
    let mut startup = [0; 1024];
    if stream.read(&mut startup).await.unwrap_or(0) == 0 || behaviour == Behaviour::EndsDuringLogin {
        return;
    }
    let greeting = [
        frame::message(b'R', &[0; 4]),
        frame::message(b'S', b"server_version\x0015.0\0"),
        frame::message(b'S', b"client_encoding\0UTF8\0"),
        frame::message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]),
        frame::message(b'Z', b"I"),
    ]
    .concat();
    // It goes away either way.
    let _ = stream.write_all(&greeting).await;
    sleep(Duration::from_millis(1)).await;
}
