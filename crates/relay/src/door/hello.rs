//! Whether a hello holds: a rule, without sockets.

use keys::Known;
use link::Code;
use link::message::Hello;
use membership::lease::Cause;
use std::time::Duration;
use trust::{ClientClaims, Proof, PublicIdentity, TokenError};

/// When a client of a disabled account looks again.
const ACCOUNT_RETRY: Duration = Duration::from_secs(600);

/// Why a client is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub code: Code,
    pub cause: &'static str,
    pub retry_after: Option<Duration>,
    /// A newer key ring may know the key.
    pub is_unknown_key: bool,
}

impl Refused {
    pub(crate) const fn because(code: Code, cause: &'static str) -> Self {
        Self { code, cause, retry_after: None, is_unknown_key: false }
    }
}

/// The claims of a hello that holds at `now_ms`. Nothing but memory is asked: a flood of bad hellos costs signatures, and no
/// database.
pub(crate) fn check(
    keys: &Known,
    hello: &Hello<'_>,
    exported: &[u8; 32],
    now_ms: u64,
) -> Result<ClientClaims, Refused> {
    if !hello.is_spoken() {
        return Err(Refused::because(Code::Version, "this relay speaks version 1"));
    }
    let claims =
        ClientClaims::verify(hello.token, &keys.ring, now_ms).map_err(|error| refused_token(&error))?;
    let identity = PublicIdentity::from_bytes(*hello.identity);
    if claims.role != hello.role {
        return Err(Refused::because(Code::TokenInvalid, "the token is for another role"));
    }
    if claims.thumbprint != identity.thumbprint() {
        return Err(Refused::because(Code::TokenInvalid, "the token is for other keys"));
    }
    if hello.epoch < claims.epoch {
        return Err(Refused::because(Code::Superseded, "this is an old state of the client"));
    }
    if !Proof(*hello.proof).is_hello(&identity, keys.network, hello.epoch, exported) {
        return Err(Refused::because(Code::ProofInvalid, "the hello is not signed for this connection"));
    }
    // Last: who cannot prove to be somebody is not told how that one stands.
    match keys.refusal(claims.client, claims.issued_at_s) {
        Some(cause) => {
            let (code, retry_after) = ended_lease(cause);
            Err(Refused { retry_after, ..Refused::because(code, cause.text()) })
        }
        None => Ok(claims),
    }
}

/// What a client is told whose lease has ended, and when it may come back. A disabled account takes all its clients out, and is
/// perhaps enabled again: they are not to wait for their owners then.
pub(crate) const fn ended_lease(cause: Cause) -> (Code, Option<Duration>) {
    match cause {
        Cause::Revoked | Cause::Disabled => (Code::Revoked, None),
        Cause::AccountDisabled => (Code::AccountDisabled, Some(ACCOUNT_RETRY)),
    }
}

/// The claims of a contract that holds at `now_ms`.
pub(crate) fn contract(keys: &Known, text: &str, now_ms: u64) -> Result<trust::ContractClaims, Code> {
    trust::ContractClaims::verify(text, &keys.ring, now_ms).map_err(|_| Code::ContractInvalid)
}

fn refused_token(error: &TokenError) -> Refused {
    match error {
        TokenError::Expired => Refused::because(Code::TokenExpired, "the token has expired: refresh it"),
        TokenError::UnknownKey(_) => Refused {
            // Not final: the key may be so new that this relay has not heard of it.
            code: Code::Busy,
            cause: "the token's key is not known here yet",
            retry_after: Some(Duration::from_secs(5)),
            is_unknown_key: true,
        },
        _ => Refused::because(Code::TokenInvalid, "the token does not hold here"),
    }
}
