//! Answers and refusals, as they go out.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use store::{ErrorKind, StoreError};
use trust::api::{ErrorAnswer, ErrorCode};

/// How long to stay away from an api that has too much to do, ms.
const BUSY_RETRY_MS: u64 = 1_000;

/// A request that is refused. Its text goes to whoever asked.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) ErrorAnswer);

impl Refusal {
    pub(crate) fn new(code: ErrorCode, cause: impl Into<String>) -> Self {
        Self(ErrorAnswer { code, cause: cause.into(), retry_after_ms: None })
    }

    pub(crate) fn later(code: ErrorCode, cause: impl Into<String>, retry_after_ms: u64) -> Self {
        Self(ErrorAnswer { code, cause: cause.into(), retry_after_ms: Some(retry_after_ms) })
    }

    pub(crate) fn bad(cause: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, cause)
    }

    pub(crate) fn busy() -> Self {
        Self::later(ErrorCode::Busy, "more is being done than can be: come back", BUSY_RETRY_MS)
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let status =
            StatusCode::from_u16(self.0.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, &self.0);
        if let Some(ms) = self.0.retry_after_ms {
            let seconds = ms.div_ceil(1_000).to_string();
            if let Ok(value) = HeaderValue::from_str(&seconds) {
                response.headers_mut().insert(header::RETRY_AFTER, value);
            }
        }
        response
    }
}

/// The log has what happened; whoever asked hears that it was us, and when to come back.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let retry = error.retry_after_ms().unwrap_or(BUSY_RETRY_MS);
        match error.kind() {
            ErrorKind::QueueFull | ErrorKind::AcquireDeadline => {
                tracing::warn!(kind = error.kind().label(), %error, "the database is busy");
                Self::later(ErrorCode::Busy, "more is being done than can be: come back", retry)
            }
            ErrorKind::Unreachable
            | ErrorKind::StatementDeadline
            | ErrorKind::Broken
            | ErrorKind::PoolClosed => {
                tracing::warn!(kind = error.kind().label(), %error, "the database gives no answer");
                Self::later(ErrorCode::Unavailable, "the database gives no answer: come back", retry)
            }
            ErrorKind::Refused if error.retry_after_ms().is_some() => {
                tracing::warn!(kind = error.kind().label(), %error, "the database cannot do it now");
                Self::later(ErrorCode::Unavailable, "the database cannot do it now: come back", retry)
            }
            ErrorKind::Refused | ErrorKind::Corrupt | ErrorKind::Invalid => {
                tracing::error!(kind = error.kind().label(), %error, "a request failed");
                Self::new(ErrorCode::Internal, "a fault of the api; its log says more")
            }
        }
    }
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    let Ok(bytes) = serde_json::to_vec(body) else {
        return Response::new(Body::from(r#"{"code":"internal","cause":"an answer that is not JSON"}"#));
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
