//! What the owner of an account, and the operator, see and do.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// `POST /v1/session`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInRequest {
    /// The account's name.
    pub account: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for SignInRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInRequest").field("account", &self.account).finish_non_exhaustive()
    }
}

/// A session: `authorization: Bearer …`.
#[derive(Clone, Serialize, Deserialize)]
pub struct SessionAnswer {
    /// Shown once, kept as a hash.
    pub bearer: String,
    /// When it ends.
    pub expires_at_ms: u64,
}

impl fmt::Debug for SessionAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionAnswer").field("expires_at_ms", &self.expires_at_ms).finish_non_exhaustive()
    }
}

/// `POST /v1/accounts`, by the operator.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountRequest {
    /// 1 to 64 characters of `a-z`, `0-9`, `.`, `_`, `@`.
    pub name: String,
    /// 12 to 256 bytes.
    pub password: String,
}

impl fmt::Debug for AccountRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountAnswer {
    /// Its identifier.
    pub account: Uuid,
    /// Its name.
    pub name: String,
    /// Whether it may manage others.
    pub operator: bool,
}

/// `GET /v1/clients`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientsAnswer {
    /// The account's clients, newest first, at most 1,000; an operator sees all.
    pub clients: Vec<ClientSummary>,
}

/// A client as its owner sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientSummary {
    /// Its name.
    pub client: Uuid,
    /// As in HELLO.
    pub role: u8,
    /// What it called itself.
    pub label: String,
    /// Name and version of the software it registered with.
    pub software: String,
    /// Two capital letters, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// SHA-256 of its keys.
    pub thumbprint: String,
    /// When it registered.
    pub created_at_ms: u64,
    /// When it was disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_at_ms: Option<u64>,
    /// Whether a relay that beats has it.
    pub connected: bool,
}

/// `POST /v1/clients/{client}/revoke`: it gets no new tokens.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RevokeAnswer {
    /// Whether it is on the signed list, too. If not, the root key is not where the api is, and the operator has to sign.
    pub listed: bool,
}

/// `POST /v1/join-codes`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinCodeRequest {
    /// The role that it lets in, as in HELLO.
    pub role: u8,
}

/// A code: shown once, used once.
#[derive(Clone, Serialize, Deserialize)]
pub struct JoinCodeAnswer {
    /// To be typed or piped, never put on a command line.
    pub code: String,
    /// Ten minutes.
    pub expires_at_ms: u64,
}

impl fmt::Debug for JoinCodeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinCodeAnswer").field("expires_at_ms", &self.expires_at_ms).finish_non_exhaustive()
    }
}

/// Limits of a login; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Streams at once.
    pub streams: u32,
    /// New streams a second.
    pub streams_per_second: u32,
    /// Bytes a second, both directions together.
    pub bytes_per_second: u64,
    /// Contracts at once that are not settled.
    pub contracts: u32,
}

/// `POST /v1/proxy-accounts`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyAccountRequest {
    /// 1 to 32 characters of `a-z`, `0-9`, `_`: options are written behind a hyphen.
    pub name: String,
    /// Its limits.
    #[serde(default)]
    pub limits: Limits,
    /// Options for whoever sends none, in the form of the user name: `country-de-session-x`.
    #[serde(default)]
    pub selection: String,
}

/// A new login of the hosted proxy.
#[derive(Clone, Serialize, Deserialize)]
pub struct ProxyAccountAnswer {
    /// The user name.
    pub name: String,
    /// The password: made here, shown once, kept as a hash.
    pub secret: String,
}

impl fmt::Debug for ProxyAccountAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyAccountAnswer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// `GET /v1/proxy-accounts`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProxyAccountsAnswer {
    /// The account's logins, at most 1,000.
    pub proxy_accounts: Vec<ProxyAccountSummary>,
}

/// A login as its owner sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProxyAccountSummary {
    /// The user name.
    pub name: String,
    /// Its limits.
    pub limits: Limits,
    /// Its default selection.
    pub selection: String,
    /// When it was disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_at_ms: Option<u64>,
}

/// `GET /v1/proxy-logins/{name}`: what a proxy keeps in memory of a customer.
#[derive(Clone, Serialize, Deserialize)]
pub struct ProxyLogin {
    /// The user name.
    pub name: String,
    /// The account that pays.
    pub account: Uuid,
    /// SHA-256 of the secret. The secret is 160 random bits, so a fast hash is enough.
    pub secret_sha256: String,
    /// Its limits.
    pub limits: Limits,
    /// Its default selection.
    pub selection: String,
    /// The login or its account was disabled.
    pub disabled: bool,
}

impl fmt::Debug for ProxyLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyLogin")
            .field("name", &self.name)
            .field("account", &self.account)
            .field("limits", &self.limits)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

/// `POST /v1/grants`, by the operator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    /// Chosen by the caller: sent again, it grants nothing twice.
    pub request: Uuid,
    /// Who gets it.
    pub account: Uuid,
    /// How much.
    pub bytes: u64,
    /// From when.
    pub starts_at_ms: u64,
    /// Until when.
    pub expires_at_ms: u64,
}

/// `GET /v1/grants`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantsAnswer {
    /// The account's grants that have not ended, those that end first in front.
    pub grants: Vec<GrantSummary>,
    /// What was used beyond everything that they gave: no block is given before another grant has covered it.
    #[serde(default)]
    pub overdrawn_bytes: u64,
}

/// A grant and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantSummary {
    /// Its name.
    pub grant: Uuid,
    /// How much it gave.
    pub bytes: u64,
    /// What was used and settled.
    pub spent_bytes: u64,
    /// What open contracts hold.
    pub held_bytes: u64,
    /// From when.
    pub starts_at_ms: u64,
    /// Until when.
    pub expires_at_ms: u64,
}

/// `GET /v1/abuse?provider=…&time_ms=…&port=…`, by the operator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AbuseAnswer {
    /// At most 100, nearest in time first.
    pub findings: Vec<AbuseFinding>,
    /// Nothing is known from before this time.
    pub kept_since_ms: u64,
}

/// An account that had a stream through the provider, to the port, at the time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AbuseFinding {
    /// The account.
    pub account: Uuid,
    /// Its name.
    pub account_name: String,
    /// The login.
    pub proxy_account: String,
    /// When the stream was opened.
    pub opened_at_ms: u64,
    /// When it ended.
    pub closed_at_ms: u64,
}
