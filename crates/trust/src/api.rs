//! What the api and its clients say to each other: the JSON of requests and answers, the paths, and the text that a client
//! signs. Shared by both sides, so that neither has a copy.
//!
//! Identifiers are UUIDs as text; keys, hashes and signatures are base64url without padding; times are ms since 1970;
//! amounts are bytes. A field that is not known is ignored by a client and refused by the api.

mod contracts;
mod errors;
mod finding;
mod joining;
mod managing;
mod proof;

pub use contracts::{CloseAnswer, ContractAnswer, ContractRequest};
pub use errors::{ErrorAnswer, ErrorCode};
pub use finding::{
    Candidate, CandidatesAnswer, Exit, ExitsRequest, Location, LocationsAnswer, MOST_CANDIDATES, MOST_EXITS,
    PoolsAnswer, ProviderFigures, StatusAnswer,
};
pub use joining::{
    RegisterAnswer, RegisterRequest, TokenAnswer, TokenRequest, TrustAnswer, registration_message,
};
pub use managing::{
    AbuseAnswer, AbuseFinding, AccountAnswer, AccountRequest, ClientSummary, ClientsAnswer, GrantRequest,
    GrantSummary, GrantsAnswer, JoinCodeAnswer, JoinCodeRequest, Limits, ProxyAccountAnswer,
    ProxyAccountRequest, ProxyAccountSummary, ProxyAccountsAnswer, ProxyLogin, RevokeAnswer, SessionAnswer,
    SignInRequest,
};
pub use proof::{PROOF_HEADER, PROOF_SKEW_MS, TOKEN_SCHEME, request_message};

/// Paths of the api; `{…}` stands for one segment.
pub mod path {
    /// GET: alive, whatever the database does.
    pub const STATUS: &str = "/status";
    /// GET: able to serve, which needs the database.
    pub const READY: &str = "/ready";
    /// GET: the signed key ring and revocation list.
    pub const TRUST: &str = "/v1/trust";
    /// POST (join code): register a client. GET (account): the account's clients.
    pub const CLIENTS: &str = "/v1/clients";
    /// POST (account): no new tokens for this client.
    pub const CLIENT_DISABLE: &str = "/v1/clients/{client}/disable";
    /// POST (account): let a disabled client in again; not one that was revoked.
    pub const CLIENT_ENABLE: &str = "/v1/clients/{client}/enable";
    /// POST (account): disable, and put it on the revocation list.
    pub const CLIENT_REVOKE: &str = "/v1/clients/{client}/revoke";
    /// POST (client): a fresh token.
    pub const TOKEN: &str = "/v1/token";
    /// POST (app, proxy): a block of bytes held on a grant.
    pub const CONTRACTS: &str = "/v1/contracts";
    /// POST (its opener): no more streams on it; what is left of the block is given back.
    pub const CONTRACT_CLOSE: &str = "/v1/contracts/{contract}/close";
    /// GET (app, proxy): connected providers.
    pub const CANDIDATES: &str = "/v1/candidates";
    /// GET (app, proxy): the newest generation of pools.
    pub const POOLS: &str = "/v1/pools";
    /// GET (app, proxy): the bytes of a pool by their hash; they never change.
    pub const POOL: &str = "/v1/pools/{hash}";
    /// GET (app, proxy, account): how many providers there are, and where.
    pub const LOCATIONS: &str = "/v1/locations";
    /// GET (proxy): what a proxy needs to let a customer in.
    pub const PROXY_LOGIN: &str = "/v1/proxy-logins/{name}";
    /// POST (proxy): which account used which provider when, for abuse look-ups.
    pub const EXITS: &str = "/v1/exits";
    /// POST: account and password for a bearer token. DELETE (account): sign out.
    pub const SESSION: &str = "/v1/session";
    /// GET (account): itself. POST (operator): a new account.
    pub const ACCOUNTS: &str = "/v1/accounts";
    /// POST (operator): nobody signs in to it, and its clients are put out.
    pub const ACCOUNT_DISABLE: &str = "/v1/accounts/{account}/disable";
    /// POST (operator): as before it was disabled.
    pub const ACCOUNT_ENABLE: &str = "/v1/accounts/{account}/enable";
    /// POST (account): a code with which one client may join.
    pub const JOIN_CODES: &str = "/v1/join-codes";
    /// GET and POST (account): logins of the hosted proxy.
    pub const PROXY_ACCOUNTS: &str = "/v1/proxy-accounts";
    /// POST (account): this login is refused from now on.
    pub const PROXY_ACCOUNT_DISABLE: &str = "/v1/proxy-accounts/{name}/disable";
    /// GET (account): grants and what is left of them. POST (operator): a new one.
    pub const GRANTS: &str = "/v1/grants";
    /// GET (operator): who used an exit at a time.
    pub const ABUSE: &str = "/v1/abuse";
}
