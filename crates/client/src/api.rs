//! Calls of a network's api: HTTP/1.1 over TLS that is pinned to the network, each bounded in time and size.
//!
//! Every call may be repeated: what makes something carries a request id, and a replay gets the first answer. So a call that
//! failed on a kept connection is made once more on a fresh one.

mod account;
mod connection;
mod error;

pub use account::Session;
pub use error::ApiError;

use connection::{Connections, Request};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use trust::api::{
    CandidatesAnswer, CloseAnswer, ContractAnswer, ContractRequest, ErrorCode, ExitsRequest, LocationsAnswer,
    PROOF_HEADER, PoolsAnswer, ProxyLogin, RegisterAnswer, RegisterRequest, StatusAnswer, TOKEN_SCHEME,
    TokenAnswer, TokenRequest, TrustAnswer, path,
};
use trust::{BlobHash, CertificateError, ClientId, ContractId, Identity, JoinLink, NetworkId, RequestProof};

/// The api of one network at one address.
#[derive(Debug)]
pub struct Api {
    network: NetworkId,
    connections: Connections,
}

/// A client that calls: its keys, and the token that is bound to them.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Its keys.
    pub identity: &'a Identity,
    /// Its token.
    pub token: &'a str,
}

/// Which providers are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct CandidatesQuery<'a> {
    /// A country: two letters.
    pub country: Option<&'a str>,
    /// One provider.
    pub provider: Option<ClientId>,
    /// How many at most.
    pub limit: Option<usize>,
}

impl Api {
    /// The api that a join link names. Nothing is dialled yet.
    ///
    /// # Errors
    /// The TLS library refuses our configuration.
    pub fn new(link: &JoinLink) -> Result<Self, CertificateError> {
        Ok(Self { network: link.network, connections: Connections::new(link)? })
    }

    /// The network it is pinned to.
    #[must_use]
    pub const fn network(&self) -> NetworkId {
        self.network
    }

    /// Whether the api is alive, and how many providers the network has. Needs neither a token nor the database.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn status(&self) -> Result<StatusAnswer, ApiError> {
        self.call(Request::new(Method::GET, path::STATUS)).await
    }

    /// The documents that verifiers need. They are signed: see `KeyRing::verify`.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn trust(&self) -> Result<TrustAnswer, ApiError> {
        self.call(Request::new(Method::GET, path::TRUST)).await
    }

    /// Registers a client. The same request again gets the first answer.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn register(&self, request: &RegisterRequest) -> Result<RegisterAnswer, ApiError> {
        self.call(Request::new(Method::POST, path::CLIENTS).json(request)?).await
    }

    /// A fresh token.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn refresh(&self, caller: Caller<'_>, epoch: u64) -> Result<TokenAnswer, ApiError> {
        self.signed(caller, Request::new(Method::POST, path::TOKEN).json(&TokenRequest { epoch })?).await
    }

    /// A block of bytes. The same request again gets the first answer.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn open_contract(
        &self,
        caller: Caller<'_>,
        request: &ContractRequest,
    ) -> Result<ContractAnswer, ApiError> {
        self.signed(caller, Request::new(Method::POST, path::CONTRACTS).json(request)?).await
    }

    /// Gives back what is left of a block.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn close_contract(
        &self,
        caller: Caller<'_>,
        contract: ContractId,
    ) -> Result<CloseAnswer, ApiError> {
        let path = path::CONTRACT_CLOSE.replace("{contract}", &contract.to_string());
        self.signed(caller, Request::new(Method::POST, path)).await
    }

    /// Connected providers.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn candidates(
        &self,
        caller: Caller<'_>,
        query: CandidatesQuery<'_>,
    ) -> Result<CandidatesAnswer, ApiError> {
        self.signed(caller, Request::new(Method::GET, query.path()?)).await
    }

    /// The newest generation of pools and the tag of this answer; `None` if it is the one that `tag` was given with. The
    /// manifest is signed: see `PoolManifest::verify`.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn pools(
        &self,
        caller: Caller<'_>,
        tag: Option<&str>,
    ) -> Result<Option<(PoolsAnswer, String)>, ApiError> {
        let request = self.sign(caller, Request::new(Method::GET, path::POOLS));
        let Some((body, tag)) = self.connections.call_if_changed(request, tag).await? else {
            return Ok(None);
        };
        let answer = serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(error.to_string()))?;
        Ok(Some((answer, tag)))
    }

    /// The bytes of a pool. Whether they are those that were named is for the caller to check.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn pool(&self, caller: Caller<'_>, hash: BlobHash) -> Result<Vec<u8>, ApiError> {
        let path = path::POOL.replace("{hash}", &hash.to_string());
        let request = self.sign(caller, Request::new(Method::GET, path));
        self.connections.call(&request).await.map(|body| body.to_vec())
    }

    /// How many providers are connected, and where.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn locations(&self, caller: Caller<'_>) -> Result<LocationsAnswer, ApiError> {
        self.signed(caller, Request::new(Method::GET, path::LOCATIONS)).await
    }

    /// What a proxy needs to let a customer in; `None` if there is no such login.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn proxy_login(&self, caller: Caller<'_>, name: &str) -> Result<Option<ProxyLogin>, ApiError> {
        if name.is_empty() || !name.bytes().all(is_unreserved) {
            return Ok(None);
        }
        let path = path::PROXY_LOGIN.replace("{name}", name);
        match self.signed(caller, Request::new(Method::GET, path)).await {
            Err(ApiError::Refused(answer)) if answer.code == ErrorCode::NotFound => Ok(None),
            result => result.map(Some),
        }
    }

    /// Says which accounts used which exits. The same report again changes nothing.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn report_exits(&self, caller: Caller<'_>, report: &ExitsRequest) -> Result<(), ApiError> {
        let request = Request::new(Method::POST, path::EXITS).json(report)?;
        self.connections.call(&self.sign(caller, request)).await.map(|_| ())
    }

    async fn signed<T: DeserializeOwned>(&self, caller: Caller<'_>, request: Request) -> Result<T, ApiError> {
        self.call(self.sign(caller, request)).await
    }

    fn sign(&self, caller: Caller<'_>, request: Request) -> Request {
        let Request { method, path, body, .. } = &request;
        let proof =
            RequestProof::sign(caller.identity, self.network, clock::unix_ms(), method.as_str(), path, body);
        request
            .header("authorization", format!("{TOKEN_SCHEME} {}", caller.token))
            .header(PROOF_HEADER, proof.to_string())
    }

    async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, ApiError> {
        let body = self.connections.call(&request).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(error.to_string()))
    }
}

impl CandidatesQuery<'_> {
    fn path(&self) -> Result<String, ApiError> {
        let mut query = Vec::new();
        if let Some(country) = self.country {
            if country.len() != 2 || !country.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                return Err(ApiError::Unsendable(format!("a country is two letters, not '{country}'")));
            }
            query.push(format!("country={}", country.to_ascii_uppercase()));
        }
        query.extend(self.provider.map(|provider| format!("provider={provider}")));
        query.extend(self.limit.map(|limit| format!("limit={limit}")));
        let path = path::CANDIDATES;
        Ok(if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) })
    }
}

/// A byte that stands for itself in a path (RFC 3986 §2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The body of a request.
fn json(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|error| ApiError::Unsendable(error.to_string()))
}

#[cfg(test)]
mod tests;
