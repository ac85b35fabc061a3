//! Who asks, and whether they may.

use axum::http::{HeaderMap, Method, header};
use membership::lease::Cause;
use store::{Account, Client};
use trust::api::{ErrorCode, PROOF_HEADER, TOKEN_SCHEME};
use trust::{ClientClaims, RequestProof, Role, TokenError};

use crate::answer::Refusal;
use crate::app::{App, Denial};
use crate::handlers::accounts::lock;
use crate::passwords::sha256;

/// Who may use a route. There is no default: a route without it does not compile.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// Everybody.
    Public,
    /// Clients of these roles.
    Client(&'static [Role]),
    /// Every client, also with a token whose time is over: its keys and its row say who it is.
    Renewing,
    /// An account that is signed in.
    Account,
    /// An account that manages others.
    Operator,
    /// Clients of these roles, and accounts.
    ClientOrAccount(&'static [Role]),
}

/// Who it is.
pub(crate) enum Caller {
    /// Somebody.
    Nobody,
    /// A client, by its token and its keys.
    Client(Box<Client>),
    /// An account, by the hash of its bearer token.
    Account(Account, [u8; 32]),
}

/// The request, as far as it says who asks.
pub(crate) struct Asking<'r> {
    pub(crate) method: &'r Method,
    pub(crate) path_and_query: &'r str,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) body: &'r [u8],
    pub(crate) now_ms: u64,
}

/// What a request shows of itself.
pub(crate) enum Credentials<'r> {
    None,
    Token(&'r str),
    Bearer(&'r str),
}

pub(crate) fn credentials(headers: &HeaderMap) -> Credentials<'_> {
    let text = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(TOKEN_SCHEME) => {
            Credentials::Token(token.trim())
        }
        Some((scheme, bearer)) if scheme.eq_ignore_ascii_case("bearer") => Credentials::Bearer(bearer.trim()),
        _ => Credentials::None,
    }
}

/// Lets in who may, and says who it is.
pub(crate) async fn check(app: &App, access: Access, asking: &Asking<'_>) -> Result<Caller, Refusal> {
    match (access, credentials(asking.headers)) {
        (Access::Public, _) => Ok(Caller::Nobody),
        (Access::Client(roles) | Access::ClientOrAccount(roles), Credentials::Token(token)) => {
            client(app, asking, token, roles, false).await
        }
        (Access::Renewing, Credentials::Token(token)) => client(app, asking, token, &ALL_ROLES, true).await,
        // Not 401: a client that hears that would sign itself out.
        (Access::Account | Access::Operator, Credentials::Token(_)) => {
            Err(Refusal::new(ErrorCode::Forbidden, "a client's token does not open this path"))
        }
        (Access::Account | Access::ClientOrAccount(_), Credentials::Bearer(bearer)) => {
            account(app, asking, bearer, false).await
        }
        (Access::Operator, Credentials::Bearer(bearer)) => account(app, asking, bearer, true).await,
        (Access::Client(_) | Access::Renewing, Credentials::Bearer(_)) => {
            Err(Refusal::new(ErrorCode::Forbidden, "this path is for clients, by their tokens"))
        }
        (_, Credentials::None) => {
            Err(Refusal::new(ErrorCode::Unauthenticated, "this path needs credentials"))
        }
    }
}

/// When to come back with a token whose key is not known here yet, ms.
const UNKNOWN_KEY_RETRY_MS: u64 = 5_000;
const ALL_ROLES: [Role; 3] = [Role::Provider, Role::App, Role::Proxy];

async fn client(
    app: &App,
    asking: &Asking<'_>,
    token: &str,
    roles: &[Role],
    may_be_over: bool,
) -> Result<Caller, Refusal> {
    // What needs no database comes first: whoever is refused is refused cheaply.
    let keys = app.documents.current()?;
    let valid_at_ms = if may_be_over { 0 } else { asking.now_ms };
    let claims =
        ClientClaims::verify(token, &keys.ring, valid_at_ms).map_err(|error| token_refused(app, error))?;
    if let Some(cause) = keys.refusal(claims.client, claims.issued_at_s) {
        let (code, text) = denial(cause);
        return Err(Refusal::new(code, text));
    }
    if !roles.contains(&claims.role) {
        let cause = format!("this path is not for a client that is a {}", claims.role);
        return Err(Refusal::new(ErrorCode::Forbidden, cause));
    }
    let proof = asking.headers.get(PROOF_HEADER).and_then(|value| value.to_str().ok());
    let Some(proof) = proof.and_then(|text| text.parse::<RequestProof>().ok()) else {
        return Err(Refusal::new(
            ErrorCode::ProofInvalid,
            "the header holdfast-proof is missing or malformed",
        ));
    };
    if !proof.is_timely(asking.now_ms) {
        let cause =
            format!("the request's time is {}, the api's clock says {}", proof.time_ms, asking.now_ms);
        return Err(Refusal::new(ErrorCode::ClockSkew, cause));
    }
    let deny = |(code, text): Denial| {
        app.known.forget(claims.client);
        lock(&app.refused_clients).keep(claims.client, (code, text), asking.now_ms);
        Refusal::new(code, text)
    };
    let remembered = lock(&app.refused_clients).get(&claims.client, asking.now_ms);
    if let Some((code, text)) = remembered {
        return Err(Refusal::new(code, text));
    }
    // Nobody can be asked: whom the database has vouched for before is who it was.
    let known = || app.known.find(claims.client, asking.now_ms);
    let asked = match known().filter(|_| app.pools.is_database_silent()) {
        Some(client) => Ok(Some(client)),
        None => app.store.client(claims.client).await,
    };
    let client = match asked {
        Ok(Some(client)) => client,
        Ok(None) => return Err(deny((ErrorCode::Unauthenticated, "no such client"))),
        Err(error) => known().filter(|_| error.is_silence()).ok_or(error)?,
    };
    let method = asking.method.as_str();
    if client.identity.thumbprint() != claims.thumbprint
        || !proof.is_of(&client.identity, app.store.network(), method, asking.path_and_query, asking.body)
    {
        return Err(Refusal::new(ErrorCode::ProofInvalid, "the request is not signed by the token's key"));
    }
    let cause = match (client.revoked, client.disabled, client.account_disabled) {
        (true, ..) => Some(Cause::Revoked),
        (_, true, _) => Some(Cause::Disabled),
        (.., true) => Some(Cause::AccountDisabled),
        _ => None,
    };
    if let Some(cause) = cause {
        return Err(deny(denial(cause)));
    }
    if !app.pools.is_database_silent() {
        app.known.note(&client, asking.now_ms);
    }
    Ok(Caller::Client(Box::new(client)))
}

async fn account(app: &App, asking: &Asking<'_>, bearer: &str, operator: bool) -> Result<Caller, Refusal> {
    let hash = sha256(bearer.as_bytes());
    let deny = |(code, text): Denial| {
        lock(&app.refused_bearers).keep(hash, (code, text), asking.now_ms);
        Refusal::new(code, text)
    };
    let remembered = lock(&app.refused_bearers).get(&hash, asking.now_ms);
    if let Some((code, text)) = remembered {
        return Err(Refusal::new(code, text));
    }
    let Some(account) = app.store.account_of_session(hash, asking.now_ms).await? else {
        return Err(deny((ErrorCode::Unauthenticated, "the session is over: sign in again")));
    };
    if account.disabled_at_ms.is_some() {
        return Err(deny(denial(Cause::AccountDisabled)));
    }
    if operator && !account.operator {
        return Err(Refusal::new(ErrorCode::Forbidden, "only an operator may do this"));
    }
    Ok(Caller::Account(account, hash))
}

fn token_refused(app: &App, error: TokenError) -> Refusal {
    match error {
        TokenError::UnknownKey(_) => {
            // It may be newer than the ring here: that is read again, at most once an interval, and nobody waits for it.
            app.documents.hint();
            let cause = "the token's key is not known here yet";
            Refusal::later(ErrorCode::Unavailable, cause, UNKNOWN_KEY_RETRY_MS)
        }
        TokenError::Expired => Refusal::new(ErrorCode::TokenExpired, "the token's time is over: refresh it"),
        _ => Refusal::new(ErrorCode::Unauthenticated, format!("the token is refused: {}", error.label())),
    }
}

fn denial(cause: Cause) -> Denial {
    let code = match cause {
        Cause::Revoked => ErrorCode::Revoked,
        Cause::Disabled => ErrorCode::ClientDisabled,
        Cause::AccountDisabled => ErrorCode::AccountDisabled,
    };
    (code, cause.text())
}
