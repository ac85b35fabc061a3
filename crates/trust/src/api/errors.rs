//! How the api says no.

use serde::{Deserialize, Serialize};

/// The body of every answer with a status of 400 or above.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// What went wrong, for programs.
    pub code: ErrorCode,
    /// The same for people; never a secret, never SQL.
    pub cause: String,
    /// When trying again may help. Absent: trying the same again does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Why a request was refused. Stands in the JSON as `snake_case`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The request breaks the rules of this page; 400.
    BadRequest,
    /// The body is larger than is read; 413.
    TooLarge,
    /// No such path, or nothing with this name that the caller may see; 404.
    NotFound,
    /// The path knows other methods; 405.
    MethodNotAllowed,
    /// No credentials, or none that are known; 401.
    Unauthenticated,
    /// The token's time is over; 401.
    TokenExpired,
    /// The proof is missing, not by the token's key, or not for this request; 401.
    ProofInvalid,
    /// The time in the proof is too far from the api's clock; 401.
    ClockSkew,
    /// These credentials may not do that. A client's token never opens an account's path; 403.
    Forbidden,
    /// The client was disabled by its owner or the operator; 403, final.
    ClientDisabled,
    /// The client is on the revocation list; 403, final.
    Revoked,
    /// The account was disabled; 403.
    AccountDisabled,
    /// The join code is not known, used by another request, or expired; 403.
    CodeInvalid,
    /// This request id, or this key, belongs to another registration; 409.
    Conflict,
    /// Too many requests or guesses from this address or account; 429.
    TooMany,
    /// The account has no grant; 402.
    NoGrant,
    /// Every grant of the account has ended, or none has begun; 402.
    GrantExpired,
    /// Everything that the live grants gave is used or held; 402. Held bytes come back: see `retry_after_ms`.
    GrantSpent,
    /// The account, or this login, has as many open contracts as it may; 429.
    LimitContracts,
    /// More is being done than can be; 503.
    Busy,
    /// The database gives no answer; 503.
    Unavailable,
    /// A fault of the api; 500.
    Internal,
    /// A code of a newer api: go by the status.
    #[serde(other)]
    Unknown,
}

impl ErrorCode {
    /// The status that goes with it.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthenticated | Self::TokenExpired | Self::ProofInvalid | Self::ClockSkew => 401,
            Self::NoGrant | Self::GrantExpired | Self::GrantSpent => 402,
            Self::Forbidden
            | Self::ClientDisabled
            | Self::Revoked
            | Self::AccountDisabled
            | Self::CodeInvalid => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::TooMany | Self::LimitContracts => 429,
            Self::Internal | Self::Unknown => 500,
            Self::Busy | Self::Unavailable => 503,
        }
    }

    /// Whether a client has to stop asking by itself, and tell its owner.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::ClientDisabled | Self::Revoked | Self::CodeInvalid | Self::Conflict)
    }
}
