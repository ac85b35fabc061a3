//! Tokens of clients and contracts for bytes: what they say, and when they hold.

use crate::error::TokenError;
use crate::ids::{AccountId, ClientId, ContractId, NetworkId, Role, Thumbprint};
use crate::ring::KeyRing;
use crate::signed::{self, Kind, TokenKey};
use serde::{Deserialize, Serialize};

/// How long a client's token lives, in ms: seven days, refreshed daily.
pub const TOKEN_LIFE_MS: u64 = 7 * 86_400_000;

/// For how long a refusal of a client matters, ms: its last token may have been made in the moment before, and clocks differ.
pub const REFUSED_FOR_MS: u64 = TOKEN_LIFE_MS + 86_400_000;

/// What a client's token says. Worth nothing without the keys that its thumbprint names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientClaims {
    /// The network it is for.
    #[serde(rename = "net")]
    pub network: NetworkId,
    /// The client.
    #[serde(rename = "sub")]
    pub client: ClientId,
    /// What it may be.
    pub role: Role,
    /// The keys it is bound to.
    #[serde(rename = "thp")]
    pub thumbprint: Thumbprint,
    /// The lowest epoch that a start of this client may have: a copy of an older state is refused.
    #[serde(rename = "epo")]
    pub epoch: u64,
    /// When it was made, seconds since 1970.
    #[serde(rename = "iat")]
    pub issued_at_s: u64,
    /// From when on it does not hold any more, seconds since 1970.
    #[serde(rename = "exp")]
    pub expires_at_s: u64,
}

impl ClientClaims {
    /// Signs them.
    ///
    /// # Errors
    /// Longer than a token may be, which these claims cannot be.
    pub fn sign(&self, key: &TokenKey) -> Result<String, TokenError> {
        key.sign(Kind::Client, self)
    }

    /// Reads a token that a key of the ring signed, for the ring's network, still valid at `now_ms`.
    ///
    /// # Errors
    /// See [`TokenError`]; for an unknown key the ring may be read again once an interval.
    pub fn verify(token: &str, ring: &KeyRing, now_ms: u64) -> Result<Self, TokenError> {
        let claims: Self = signed::open(Kind::Client, token, ring.public_key(Kind::Client, token, now_ms)?)?;
        check(claims.network, claims.expires_at_s, ring, now_ms)?;
        Ok(claims)
    }
}

/// What a contract says: a block of bytes, held on grants of the payer, for streams of one opener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractClaims {
    /// The network it is for.
    #[serde(rename = "net")]
    pub network: NetworkId,
    /// The contract.
    #[serde(rename = "jti")]
    pub contract: ContractId,
    /// Whose grants pay.
    #[serde(rename = "pay")]
    pub payer: AccountId,
    /// Who may open streams under it.
    #[serde(rename = "sub")]
    pub opener: ClientId,
    /// How many bytes it pays for, both directions together.
    pub bytes: u64,
    /// From when on it pays no more, seconds since 1970.
    #[serde(rename = "exp")]
    pub expires_at_s: u64,
    /// The api gave it without its database, and nothing is held for it: a relay allows nothing on top of it.
    #[serde(rename = "off", default, skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
}

impl ContractClaims {
    /// Signs them.
    ///
    /// # Errors
    /// Longer than a contract may be, which these claims cannot be.
    pub fn sign(&self, key: &TokenKey) -> Result<String, TokenError> {
        key.sign(Kind::Contract, self)
    }

    /// Reads a contract that a key of the ring signed, for the ring's network, still valid at `now_ms`.
    ///
    /// # Errors
    /// See [`TokenError`]; for an unknown key the ring may be read again once an interval.
    pub fn verify(contract: &str, ring: &KeyRing, now_ms: u64) -> Result<Self, TokenError> {
        let claims: Self =
            signed::open(Kind::Contract, contract, ring.public_key(Kind::Contract, contract, now_ms)?)?;
        check(claims.network, claims.expires_at_s, ring, now_ms)?;
        Ok(claims)
    }
}

fn check(network: NetworkId, expires_at_s: u64, ring: &KeyRing, now_ms: u64) -> Result<(), TokenError> {
    if network != ring.network() {
        return Err(TokenError::OtherNetwork);
    }
    if now_ms >= expires_at_s.saturating_mul(1_000) {
        return Err(TokenError::Expired);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
