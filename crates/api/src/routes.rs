//! The table of routes, and what happens to each request before its handler sees it.

mod table;

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use axum::routing::{MethodFilter, on};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Account, Client};
use tokio::time::timeout;
use trust::api::ErrorCode;

use crate::access::{self, Access, Asking, Caller, Credentials};
use crate::answer::{Refusal, json};
use crate::app::App;
use clock::unix_ms;

pub(crate) use table::routes;

/// The longest body, unless a route says otherwise.
pub(crate) const BODY_MAX: usize = 64 * 1024;
/// For reading a request's body and answering it.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// What a handler gives.
pub(crate) type Answer = Result<Response<Body>, Refusal>;
type Handler = fn(Context) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) body_max: usize,
    pub(crate) summary: &'static str,
    handler: Handler,
}

/// Where a request came from; put there by the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// A request that was let in.
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) peer: IpAddr,
    pub(crate) now_ms: u64,
    params: Vec<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Context {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_slice(&self.body).map_err(|error| Refusal::bad(format!("the body: {error}")))
    }

    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let query = axum::extract::Query::try_from_uri(&self.uri);
        query.map(|query| query.0).map_err(|error| Refusal::bad(format!("the query: {error}")))
    }

    /// Whether whoever asks has the answer with this tag already.
    pub(crate) fn has(&self, tag: &str) -> bool {
        let held = self.headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        held.flat_map(|tags| tags.split(',')).any(|held| held.trim() == tag)
    }

    /// A segment of the path.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// A segment that has to be an identifier.
    pub(crate) fn id<T: std::str::FromStr>(&self, name: &str) -> Result<T, Refusal> {
        self.param(name)
            .parse()
            .map_err(|_| Refusal::bad(format!("'{name}' in the path is not an identifier")))
    }

    /// The client that asks. Its route lets nobody else in.
    pub(crate) fn client(&self) -> Result<&Client, Refusal> {
        match &self.caller {
            Caller::Client(client) => Ok(client),
            _ => Err(Refusal::new(ErrorCode::Forbidden, "this path is for clients")),
        }
    }

    /// The account that asks. Its route lets nobody else in.
    pub(crate) fn account(&self) -> Result<&Account, Refusal> {
        match &self.caller {
            Caller::Account(account, _) => Ok(account),
            _ => Err(Refusal::new(ErrorCode::Forbidden, "this path is for accounts")),
        }
    }
}

/// A good answer.
pub(crate) fn ok(body: &impl Serialize) -> Answer {
    Ok(json(StatusCode::OK, body))
}

/// A good answer with nothing in it.
pub(crate) fn done() -> Answer {
    ok(&serde_json::json!({}))
}

pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in routes() {
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { continue };
        let (app, path) = (Arc::clone(app), route.path);
        let route = Arc::new(route);
        let handle = move |params: RawPathParams, request: Request| {
            let (app, route) = (Arc::clone(&app), Arc::clone(&route));
            async move { serve(app, &route, params, request).await }
        };
        router = router.route(path, on(filter, handle));
    }
    router
        .fallback(|headers: HeaderMap| async move { unknown(&headers, ErrorCode::NotFound, "no such path") })
        .method_not_allowed_fallback(|headers: HeaderMap| async move {
            unknown(&headers, ErrorCode::MethodNotAllowed, "this path knows other methods")
        })
}

/// What is not in the table refuses clients as forbidden: they take 401 and 404 for reasons to sign in anew.
fn unknown(headers: &HeaderMap, code: ErrorCode, cause: &str) -> Response<Body> {
    if matches!(access::credentials(headers), Credentials::Token(_)) {
        return Refusal::new(ErrorCode::Forbidden, "a client's token does not open this path")
            .into_response();
    }
    Refusal::new(code, cause).into_response()
}

async fn serve(app: Arc<App>, route: &Route, params: RawPathParams, request: Request) -> Response<Body> {
    let started_ms = unix_ms();
    let handled = timeout(REQUEST_LIMIT, handle(Arc::clone(&app), route, params, request)).await;
    let answer = handled.unwrap_or_else(|_| Err(Refusal::busy()));
    let took_ms = unix_ms().saturating_sub(started_ms);
    match answer {
        Ok(response) => {
            tracing::debug!(method = %route.method, path = route.path, took_ms, "answered");
            response
        }
        Err(refusal) => {
            let code = refusal.0.code;
            tracing::debug!(method = %route.method, path = route.path, ?code, took_ms, "refused");
            refusal.into_response()
        }
    }
}

async fn handle(app: Arc<App>, route: &Route, params: RawPathParams, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, route.body_max).await.map_err(|_| {
        Refusal::new(ErrorCode::TooLarge, format!("the body is cut, or longer than {} bytes", route.body_max))
    })?;
    // Who sends slowly holds nobody up: the turn begins when the body is there.
    let Ok(_turn) = app.requests.try_acquire() else { return Err(Refusal::busy()) };
    let now_ms = unix_ms();
    let asking = Asking {
        method: &parts.method,
        path_and_query: parts.uri.path_and_query().map_or("/", |path| path.as_str()),
        headers: &parts.headers,
        body: &body,
        now_ms,
    };
    let caller = access::check(&app, route.access, &asking).await?;
    let Some(Peer(peer)) = parts.extensions.get::<Peer>().copied() else {
        return Err(Refusal::new(ErrorCode::Internal, "the server did not say who asks"));
    };
    let params = params.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let shared = Arc::clone(&app);
    let (uri, headers) = (parts.uri, parts.headers);
    (route.handler)(Context { app: shared, caller, peer, now_ms, params, uri, headers, body }).await
}
