//! Whether a hello holds: a rule, without sockets.

use link::Code;
use link::message::Hello;
use std::time::Duration;
use trust::{ClientClaims, KeyRing, NetworkId, Proof, PublicIdentity, RevocationList, TokenError};

/// What a relay knows of the network's keys; it goes on with the last that it has.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Which network.
    pub network: NetworkId,
    /// Which keys sign tokens and contracts.
    pub ring: KeyRing,
    /// Who is not to be let in.
    pub revocations: RevocationList,
}

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

impl Keys {
    /// The claims of a hello that holds at `now_ms`. Nothing but memory is asked: a flood of bad hellos costs signatures, and no
    /// database.
    pub(crate) fn check(
        &self,
        hello: &Hello<'_>,
        exported: &[u8; 32],
        now_ms: u64,
    ) -> Result<ClientClaims, Refused> {
        if !hello.is_spoken() {
            return Err(Refused::because(Code::Version, "this relay speaks version 1"));
        }
        let claims =
            ClientClaims::verify(hello.token, &self.ring, now_ms).map_err(|error| refused_token(&error))?;
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
        if !Proof(*hello.proof).is_hello(&identity, self.network, hello.epoch, exported) {
            return Err(Refused::because(Code::ProofInvalid, "the hello is not signed for this connection"));
        }
        // Last: who cannot prove to be somebody is not told whether that one is revoked.
        if self.revocations.revokes(claims.client, claims.issued_at_s) {
            return Err(Refused::because(Code::Revoked, "the operator has revoked this client"));
        }
        Ok(claims)
    }

    /// The claims of a contract that holds at `now_ms`.
    pub(crate) fn contract(&self, text: &str, now_ms: u64) -> Result<trust::ContractClaims, Code> {
        trust::ContractClaims::verify(text, &self.ring, now_ms).map_err(|_| Code::ContractInvalid)
    }
}

fn refused_token(error: &TokenError) -> Refused {
    match error {
        TokenError::Expired => Refused::because(Code::TokenExpired, "the token has expired: refresh it"),
        TokenError::UnknownKey(_) => Refused {
            // Not final: the key may be so new that this relay has not heard of it.
            code: Code::Busy,
            cause: "the token's key is not known here yet",
            retry_after: Some(Duration::from_secs(30)),
            is_unknown_key: true,
        },
        _ => Refused::because(Code::TokenInvalid, "the token does not hold here"),
    }
}
