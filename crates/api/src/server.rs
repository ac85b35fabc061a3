//! The listener: bounded connections, TLS, and HTTP/1.1 with a limit for each wait.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use cache::Channel;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tls::{TlsSession, TlsStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tower_service::Service as _;

use crate::app::{App, Keeping, RunError};
use crate::beat::Beating;
use crate::config::Config;
use crate::neighbours::{Counted, Neighbours};
use crate::routes::Peer;

/// Connections at once; the next one waits in the kernel's queue.
const MOST_CONNECTIONS: usize = 2_000;
/// For the handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// For the head of a request, and for the rest between two.
const HEAD_LIMIT: Duration = Duration::from_secs(15);
/// The longest head of a request, bytes.
const HEAD_MAX: usize = 16 * 1024;
/// The most header fields.
const MOST_HEADERS: usize = 64;
/// Rest after an accept that failed: no descriptor is free.
const ACCEPT_REST: Duration = Duration::from_millis(10);
/// How often it is written down which clients are known, if that has changed.
const KNOWN_EVERY: Duration = Duration::from_secs(10);
/// How long requests may take to end when the api stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(25);

pub(crate) fn bind(config: &Config) -> Result<std::net::TcpListener, RunError> {
    let failed = |source| RunError::Listen { address: config.listen, source };
    let listener = std::net::TcpListener::bind(config.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

pub(crate) async fn serve(
    app: App,
    keeping: Keeping,
    listener: std::net::TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let failed = |source| RunError::Listen { address: SocketAddr::from(([0, 0, 0, 0], 0)), source };
    let address = listener.local_addr().map_err(failed)?;
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let Keeping { reader, certificate, cache } = keeping;
    let hint = reader.hint();
    let tls = certificate.tls();
    let beating = Beating::new();
    let app = Arc::new(app);
    let router = app.router();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let neighbours = Neighbours::default();
    let (stop, stopping) = watch::channel(false);
    tracing::info!(%address, network = %app.store.network(), "api up");
    let accept = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let peer = peer.ip();
                    let Some(counted) = neighbours.count(peer) else {
                        tracing::debug!(%peer, "too many connections from this address");
                        continue;
                    };
                    let (router, stopping) = (router.clone(), stopping.clone());
                    let connection = Connection { router, peer, stopping, _place: place, _counted: counted };
                    let tls = Arc::clone(&tls.borrow());
                    tokio::spawn(connection.run(stream, tls));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_REST).await;
                }
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = reader.run() => {}
        () = cache.wake(Channel::CHANGES, &hint) => {}
        () = certificate.run() => {}
        () = app.documents.signer.run() => {}
        () = app.documents.keep(&app.store) => {}
        () = app.pools.keep(&app.store, &app.documents.signer) => {}
        () = keep_known(&app) => {}
        () = app.offline.keep(&app.store, &app.known) => {}
        () = app.forget_refusals() => {}
        () = beating.keep(&app.store, &app.documents) => {}
        () = shutdown => {}
    }
    drop(listener);
    let _ = stop.send(true);
    let everybody = u32::try_from(MOST_CONNECTIONS).unwrap_or(u32::MAX);
    if timeout(DRAIN_LIMIT, places.acquire_many(everybody)).await.is_err() {
        tracing::warn!("requests were cut off at the end");
    }
    app.offline.save().await;
    beating.end(&app.store).await;
    app.store.pool().close();
    app.pools.save_now();
    app.known.save();
    tracing::info!("api down");
    Ok(())
}

/// Writes down which clients are known, for a start without the database. Never ends.
async fn keep_known(app: &Arc<App>) {
    loop {
        sleep(KNOWN_EVERY).await;
        let app = Arc::clone(app);
        // A slow disk is waited for elsewhere.
        let _ = tokio::task::spawn_blocking(move || app.known.save()).await;
    }
}

struct Connection {
    router: Router,
    peer: IpAddr,
    stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
    _counted: Counted,
}

impl Connection {
    async fn run(mut self, stream: TcpStream, tls: Arc<rustls::ServerConfig>) {
        // Nagle's delay would only cost time; without the option it is merely slower.
        let _ = stream.set_nodelay(true);
        let Ok(session) = TlsSession::accept(tls, false) else { return };
        let mut stream = TlsStream::new(stream, session);
        match timeout(HANDSHAKE_LIMIT, stream.handshake()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return tracing::debug!(peer = %self.peer, %error, "a handshake failed"),
            Err(_) => return tracing::debug!(peer = %self.peer, "a handshake took too long"),
        }
        let (router, peer) = (self.router.clone(), Peer(self.peer));
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let mut router = router.clone();
            request.extensions_mut().insert(peer);
            async move {
                Ok::<_, Infallible>(
                    router.call(request.map(Body::new)).await.unwrap_or_else(|never| match never {}),
                )
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_LIMIT)
            .max_buf_size(HEAD_MAX)
            .max_headers(MOST_HEADERS);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = self.stopping.wait_for(|stopping| *stopping) => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}
