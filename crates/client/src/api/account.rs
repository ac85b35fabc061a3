//! What the owner of an account, and the operator, ask of the api.

use super::connection::Request;
use super::{Api, ApiError};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use trust::api::{
    AccountAnswer, AccountRequest, ClientsAnswer, GrantRequest, GrantsAnswer, JoinCodeAnswer,
    JoinCodeRequest, ProxyAccountAnswer, ProxyAccountRequest, RevokeAnswer, SessionAnswer, SignInRequest,
    path,
};
use trust::{ClientId, Role};
use uuid::Uuid;

/// Somebody who signed in. Debug hides the bearer token.
pub struct Session<'a> {
    api: &'a Api,
    bearer: String,
}

impl Api {
    /// Signs in.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn sign_in(&self, account: &str, password: &str) -> Result<Session<'_>, ApiError> {
        let request = SignInRequest { account: account.to_owned(), password: password.to_owned() };
        let answer: SessionAnswer =
            self.call(Request::new(Method::POST, path::SESSION).json(&request)?).await?;
        Ok(Session { api: self, bearer: answer.bearer })
    }
}

impl Session<'_> {
    /// The account itself.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn account(&self) -> Result<AccountAnswer, ApiError> {
        self.ask(path::ACCOUNTS).await
    }

    /// A new account (operator).
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn add_account(&self, request: &AccountRequest) -> Result<AccountAnswer, ApiError> {
        self.post(path::ACCOUNTS, request).await
    }

    /// The account's clients; all of them for an operator.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn clients(&self) -> Result<ClientsAnswer, ApiError> {
        self.ask(path::CLIENTS).await
    }

    /// Puts a client on the list of those that no relay lets in.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn revoke_client(&self, client: Uuid) -> Result<RevokeAnswer, ApiError> {
        let path = path::CLIENT_REVOKE.replace("{client}", &client.to_string());
        self.api.call(self.bear(Request::new(Method::POST, &path))).await
    }

    /// Puts a client out, until it is enabled again.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn disable_client(&self, client: ClientId) -> Result<(), ApiError> {
        self.act(path::CLIENT_DISABLE, client).await
    }

    /// Lets a disabled client in again.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn enable_client(&self, client: ClientId) -> Result<(), ApiError> {
        self.act(path::CLIENT_ENABLE, client).await
    }

    /// A code with which one client may join.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn join_code(&self, role: Role) -> Result<JoinCodeAnswer, ApiError> {
        self.post(path::JOIN_CODES, &JoinCodeRequest { role: role.number() }).await
    }

    /// A new login of the hosted proxy.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn add_proxy_account(
        &self,
        request: &ProxyAccountRequest,
    ) -> Result<ProxyAccountAnswer, ApiError> {
        self.post(path::PROXY_ACCOUNTS, request).await
    }

    /// The account's grants.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn grants(&self) -> Result<GrantsAnswer, ApiError> {
        self.ask(path::GRANTS).await
    }

    /// Gives an account bytes (operator). The same request again grants nothing twice.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn add_grant(&self, request: &GrantRequest) -> Result<(), ApiError> {
        let request = self.bear(Request::new(Method::POST, path::GRANTS).json(request)?);
        self.api.connections.call(&request).await.map(|_| ())
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.api.call(self.bear(Request::new(Method::GET, path))).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ApiError> {
        self.api.call(self.bear(Request::new(Method::POST, path).json(body)?)).await
    }

    async fn act(&self, path: &str, client: ClientId) -> Result<(), ApiError> {
        let path = path.replace("{client}", &client.to_string());
        let request = self.bear(Request::new(Method::POST, &path));
        self.api.connections.call(&request).await.map(|_| ())
    }

    fn bear(&self, request: Request) -> Request {
        request.header("authorization", format!("Bearer {}", self.bearer))
    }
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session").field("api", &self.api).finish_non_exhaustive()
    }
}
