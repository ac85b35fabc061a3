//! How clients come in, and stay.

use store::{Registered, Registration};
use trust::api::{ErrorCode, RegisterAnswer, RegisterRequest, TokenAnswer, TokenRequest};
use trust::{
    ClientClaims, ClientId, JoinCode, Proof, PublicIdentity, RequestId, Role, TOKEN_LIFE_MS, Thumbprint,
};

use crate::answer::Refusal;
use crate::app::App;
use crate::documents::answer;
use crate::guesses::Neighbourhood;
use crate::handlers::accounts::lock;
use crate::passwords::decode;
use crate::routes::{Answer, Context, ok};

/// Relays that an answer names at most.
const MOST_RELAYS: u32 = 16;
/// A token is to be refreshed once a day, at a time that differs from client to client, ms.
const REFRESH_MS: std::ops::Range<u64> = 18 * 3_600_000..30 * 3_600_000;
/// The longest label and name of software, bytes.
const TEXT_MAX: usize = 64;

pub(crate) async fn trust(context: Context) -> Answer {
    ok(&answer(&*context.app.documents.current()?))
}

pub(crate) async fn register(context: Context) -> Answer {
    let app = &context.app;
    let asked: RegisterRequest = context.json()?;
    let role = Role::from_number(asked.role).ok_or_else(|| Refusal::bad("no such role"))?;
    let identity = decode::<64>(&asked.identity).map(PublicIdentity::from_bytes);
    let identity = identity.ok_or_else(|| Refusal::bad("'identity' is not 64 bytes in base64url"))?;
    let request = RequestId(asked.request);
    check_texts(&asked)?;
    let proof: Proof =
        asked.proof.parse().map_err(|_| Refusal::bad("'proof' is not a signature in base64url"))?;
    if !proof.is_registration(&identity, app.store.network(), request, role) {
        return Err(Refusal::new(
            ErrorCode::ProofInvalid,
            "the registration is not signed by the keys that it names",
        ));
    }
    let known = app.documents.current()?;
    let guesser = Neighbourhood::from(context.peer);
    if let Some(wait_ms) = lock(&app.guesses).wait_ms(&guesser, context.now_ms) {
        return Err(Refusal::later(ErrorCode::TooMany, "too many wrong codes from this address", wait_ms));
    }
    // What is no code at all is as wrong as one that is unknown.
    let registered = match asked.code.parse::<JoinCode>() {
        Ok(code) => {
            let registration = Registration {
                client: ClientId::at(context.now_ms),
                request,
                role,
                identity,
                code: code.hash(),
                label: asked.label,
                software: asked.software,
                country: asked.country,
            };
            app.store.register(registration, context.now_ms).await?
        }
        Err(_) => Registered::CodeInvalid,
    };
    match registered {
        Registered::Yes(client) => {
            lock(&app.guesses).note_right(&guesser);
            let thumbprint = identity.thumbprint();
            let token = token(app, client, role, thumbprint, 0, context.now_ms).await?;
            ok(&RegisterAnswer { client: client.0, token, trust: answer(&known) })
        }
        Registered::CodeInvalid => {
            lock(&app.guesses).note_wrong(guesser, context.now_ms);
            Err(Refusal::new(
                ErrorCode::CodeInvalid,
                "the join code is unknown, used, over, or for another role",
            ))
        }
        Registered::Conflict => Err(Refusal::new(
            ErrorCode::Conflict,
            "these keys, or this request, belong to another registration",
        )),
    }
}

pub(crate) async fn refresh(context: Context) -> Answer {
    let asked: TokenRequest = context.json()?;
    let client = context.client()?;
    let thumbprint = client.identity.thumbprint();
    ok(&token(&context.app, client.client, client.role, thumbprint, asked.epoch, context.now_ms).await?)
}

async fn token(
    app: &App,
    client: ClientId,
    role: Role,
    thumbprint: Thumbprint,
    epoch: u64,
    now_ms: u64,
) -> Result<TokenAnswer, Refusal> {
    let expires_at_ms = now_ms + TOKEN_LIFE_MS;
    let claims = ClientClaims {
        network: app.store.network(),
        client,
        role,
        thumbprint,
        epoch,
        issued_at_s: now_ms / 1_000,
        expires_at_s: expires_at_ms / 1_000,
    };
    let token = claims.sign(&*app.token_key()?).map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("a token could not be signed: {}", error.label()))
    })?;
    let relays = app.store.relay_addresses(MOST_RELAYS).await?;
    let refresh_after_ms = now_ms + fastrand::u64(REFRESH_MS);
    Ok(TokenAnswer { token, expires_at_ms, refresh_after_ms, relays, now_ms })
}

fn check_texts(asked: &RegisterRequest) -> Result<(), Refusal> {
    for (name, text) in [("label", &asked.label), ("software", &asked.software)] {
        if text.len() > TEXT_MAX || text.chars().any(char::is_control) {
            return Err(Refusal::bad(format!(
                "'{name}' is longer than {TEXT_MAX} bytes, or has control characters"
            )));
        }
    }
    if let Some(country) = &asked.country {
        check_country(country)?;
    }
    Ok(())
}

pub(crate) fn check_country(country: &str) -> Result<(), Refusal> {
    if country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Ok(());
    }
    Err(Refusal::bad("'country' is two capital letters (ISO 3166-1)"))
}
