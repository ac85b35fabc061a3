//! HTTP/1.1 with one request a connection, bounded in number, size and time.

use super::HealthContext;
use super::page::{self, Page};
use crate::console::source::Source;
use crate::metrics::Format;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Most connections at once; others wait in the listener's backlog.
pub const MAX_CONNECTIONS: usize = 32;

/// Most bytes of a request's head.
pub const MAX_HEAD_BYTES: usize = 8 * 1024;

/// Longest time for a request's head.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// Longest time for a connection, its answer included.
const CONNECTION_LIMIT: Duration = Duration::from_secs(15);

/// Rest after a failed accept, such as for want of descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);

const PATHS: &[&str] = &["/metrics", "/healthz/live", "/healthz/ready", "/healthz/database"];

/// Serves until it is dropped.
pub async fn serve<S: Source>(listener: TcpListener, context: Arc<HealthContext<S>>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let context = Arc::clone(&context);
                tokio::spawn(async move {
                    connection(stream, context).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics and health");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// One request and its answer.
pub(super) async fn connection<S: Source>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    context: Arc<HealthContext<S>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let context = Arc::clone(&context);
        async move { Ok::<_, Infallible>(respond(&request, &context).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let ended = match tokio::time::timeout(CONNECTION_LIMIT, served).await {
        Ok(ended) => ended.map_err(io::Error::other),
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection for metrics and health ended");
    }
}

async fn respond<B, S: Source>(request: &Request<B>, context: &HealthContext<S>) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    if !PATHS.contains(&path) {
        let value = json!({ "error": "no such page", "pages": PATHS });
        return response(Page::json(StatusCode::NOT_FOUND, &value));
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let value = json!({ "error": "only GET and HEAD are answered" });
        let mut refused = response(Page::json(StatusCode::METHOD_NOT_ALLOWED, &value));
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    response(match path {
        "/metrics" => {
            let accept =
                request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
            page::metrics(context, Format::from_accept(accept)).await
        }
        "/healthz/live" => page::live(context).await,
        "/healthz/ready" => page::ready(context).await,
        _ => page::database(context).await,
    })
}

fn response(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(page.text)));
    *response.status_mut() = page.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
