//! Connections to the api: dialled when needed, a few of them kept, each call bounded in time and size.

use super::{ApiError, json};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Method;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::Serialize;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tls::{TlsSession, TlsStream};
use tokio::net::TcpStream;
use tokio::time::timeout;
use trust::api::{ErrorAnswer, ErrorCode};
use trust::{CertificateError, CertificateRole, JoinLink};

/// For the dial with its handshake.
const DIAL_LIMIT: Duration = Duration::from_secs(5);
/// For a whole call.
const CALL_LIMIT: Duration = Duration::from_secs(15);
/// The longest answer that is read: the two signed documents at their largest.
const MAX_ANSWER_LEN: usize = 2 * trust::MAX_DOCUMENT_LEN + 64 * 1_024;
/// The most bytes of an answer's head.
const MAX_HEAD_LEN: usize = 64 * 1_024;
/// Idle connections that are kept.
const MAX_IDLE: usize = 4;

/// One request, as it is signed and sent.
pub(super) struct Request {
    pub(super) method: Method,
    /// With its query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    headers: Vec<(&'static str, String)>,
}

impl Request {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: Vec::new(), headers: Vec::new() }
    }

    pub(super) fn json(mut self, value: &impl Serialize) -> Result<Self, ApiError> {
        self.body = json(value)?;
        self.headers.push(("content-type", "application/json".to_owned()));
        Ok(self)
    }

    pub(super) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// An answer, good or not.
struct Reply {
    status: u16,
    /// What stands for this answer in the next question; empty if nothing does.
    tag: String,
    body: Bytes,
}

pub(super) struct Connections {
    address: String,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Connections {
    pub(super) fn new(link: &JoinLink) -> Result<Self, CertificateError> {
        let name =
            ServerName::try_from(link.host.clone()).map_err(|_| CertificateError::Name(link.host.clone()))?;
        let tls = trust::client_config(link.network, CertificateRole::Api, &[b"http/1.1"])?;
        Ok(Self { address: link.address(), name, tls, idle: Mutex::new(Vec::new()) })
    }

    /// Asks, and gives the body of the answer.
    pub(super) async fn call(&self, request: &Request) -> Result<Bytes, ApiError> {
        let Reply { status, body, .. } = self.reply(request).await?;
        if (200..300).contains(&status) { Ok(body) } else { Err(refusal(status, &body)) }
    }

    /// Asks for what has changed since the answer with this tag: its body and its own tag, or nothing.
    pub(super) async fn call_if_changed(
        &self,
        request: Request,
        tag: Option<&str>,
    ) -> Result<Option<(Bytes, String)>, ApiError> {
        let request = match tag {
            Some(tag) => request.header("if-none-match", tag.to_owned()),
            None => request,
        };
        let Reply { status, tag, body } = self.reply(&request).await?;
        match status {
            304 => Ok(None),
            200..300 => Ok(Some((body, tag))),
            status => Err(refusal(status, &body)),
        }
    }

    async fn reply(&self, request: &Request) -> Result<Reply, ApiError> {
        timeout(CALL_LIMIT, self.call_unbounded(request))
            .await
            .unwrap_or_else(|_| Err(ApiError::Timeout(self.address.clone())))
    }

    async fn call_unbounded(&self, request: &Request) -> Result<Reply, ApiError> {
        // A kept connection may have ended unseen: then once more, on a fresh one.
        if let Some(kept) = self.take_idle() {
            match self.ask(kept, request).await {
                Err(ApiError::Broken(cause)) => tracing::debug!(cause, "a kept connection to the api broke"),
                result => return result,
            }
        }
        let fresh = timeout(DIAL_LIMIT, self.dial())
            .await
            .unwrap_or_else(|_| Err(ApiError::Timeout(self.address.clone())))?;
        self.ask(fresh, request).await
    }

    async fn ask(
        &self,
        mut connection: SendRequest<Full<Bytes>>,
        request: &Request,
    ) -> Result<Reply, ApiError> {
        let mut message = hyper::Request::builder()
            .method(&request.method)
            .uri(&request.path)
            .header("host", &self.address)
            .header("user-agent", concat!("holdfast/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &request.headers {
            message = message.header(*name, value);
        }
        let message = message
            .body(Full::new(Bytes::from(request.body.clone())))
            .map_err(|error| ApiError::Unsendable(error.to_string()))?;
        connection.ready().await.map_err(broken)?;
        let answer = connection.send_request(message).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let tag =
            answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_owned();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_LEN).collect().await;
        let body = body.map_err(|error| match error.downcast::<http_body_util::LengthLimitError>() {
            Ok(_) => ApiError::Malformed(format!("more than {MAX_ANSWER_LEN} bytes")),
            Err(error) => ApiError::Broken(error.to_string()),
        })?;
        self.keep(connection);
        Ok(Reply { status, tag, body: body.to_bytes() })
    }

    async fn dial(&self) -> Result<SendRequest<Full<Bytes>>, ApiError> {
        let unreachable = |source| ApiError::Unreachable { address: self.address.clone(), source };
        let stream = TcpStream::connect(&self.address).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let not_pinned = |cause: String| ApiError::NotPinned { address: self.address.clone(), cause };
        let session = TlsSession::connect(Arc::clone(&self.tls), self.name.clone())
            .map_err(|error| not_pinned(error.to_string()))?;
        let mut stream = TlsStream::new(stream, session);
        stream.handshake().await.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => not_pinned(error.to_string()),
            _ => unreachable(error),
        })?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_LEN)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // It ends with its sender, or when the peer ends it; what went wrong is told to whoever asks.
        tokio::spawn(connection);
        Ok(sender)
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(kept) = idle.pop() {
            if !kept.is_closed() {
                return Some(kept);
            }
        }
        None
    }

    fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE && !connection.is_closed() {
            idle.push(connection);
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connections").field("address", &self.address).finish_non_exhaustive()
    }
}

fn refusal(status: u16, body: &[u8]) -> ApiError {
    match serde_json::from_slice(body) {
        Ok(answer) => ApiError::Refused(answer),
        // Something between us and the api answers for it.
        Err(_) if status >= 500 => ApiError::Refused(ErrorAnswer {
            code: ErrorCode::Unknown,
            cause: format!("HTTP status {status}"),
            retry_after_ms: None,
        }),
        Err(_) => ApiError::Malformed(format!("HTTP status {status} without a cause")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn broken(error: hyper::Error) -> ApiError {
    ApiError::Broken(error.to_string())
}
