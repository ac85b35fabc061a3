//! What a proxy asks of its network's api. None of it stands in the way of a stream that can be paid for and has a candidate.

use std::future::Future;
use std::sync::Arc;

use client::api::{Caller, CandidatesQuery};
use client::{ApiError, Membership, MembershipError};
use thiserror::Error;
use trust::api::{
    CandidatesAnswer, ContractAnswer, ContractRequest, ErrorAnswer, ExitsRequest, PoolsAnswer, ProxyLogin,
};
use trust::{BlobHash, ContractId, KeyRing};

/// Why there is no answer.
#[derive(Clone, Debug, Error)]
pub enum ControlError {
    /// A definite no.
    #[error("the api refused: {}", .0.cause)]
    Refused(ErrorAnswer),
    /// It answers that it cannot say now, why, and when to come back.
    #[error("the api cannot say: {}", .0.cause)]
    Unable(ErrorAnswer),
    /// Nobody answers, or nothing that makes sense. Worth another try, later.
    #[error("{0}")]
    Silent(String),
}

impl From<ApiError> for ControlError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Refused(answer) if answer.code.http_status() < 500 => Self::Refused(answer),
            ApiError::Refused(answer) => Self::Unable(answer),
            error => Self::Silent(error.to_string()),
        }
    }
}

/// The api, as a proxy sees it. Each call is bounded in time by whoever implements it.
pub trait Control: Send + Sync + 'static {
    /// One login; `None` if there is none of that name.
    fn login(&self, name: &str) -> impl Future<Output = Result<Option<ProxyLogin>, ControlError>> + Send;

    /// A block of bytes. The same request again gets the first answer.
    fn contract(
        &self,
        request: &ContractRequest,
    ) -> impl Future<Output = Result<ContractAnswer, ControlError>> + Send;

    /// What is left of a block is given back.
    fn close_contract(&self, contract: ContractId) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Connected providers.
    fn candidates(
        &self,
        query: CandidatesQuery<'_>,
    ) -> impl Future<Output = Result<CandidatesAnswer, ControlError>> + Send;

    /// The newest generation of pools and the tag of this answer; `None` if it is the one that `tag` was given with.
    fn pools(
        &self,
        tag: Option<&str>,
    ) -> impl Future<Output = Result<Option<(PoolsAnswer, String)>, ControlError>> + Send;

    /// The bytes of a pool.
    fn pool(&self, hash: BlobHash) -> impl Future<Output = Result<Vec<u8>, ControlError>> + Send;

    /// The keys by which manifests are believed.
    fn key_ring(&self) -> Arc<KeyRing>;

    /// Reads them anew.
    fn renew_key_ring(&self) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Who used which exit. The same report again changes nothing.
    fn report_exits(&self, report: &ExitsRequest) -> impl Future<Output = Result<(), ControlError>> + Send;
}

impl Control for Membership {
    async fn login(&self, name: &str) -> Result<Option<ProxyLogin>, ControlError> {
        let token = self.token();
        Ok(self.api().proxy_login(caller(self, &token), name).await?)
    }

    async fn contract(&self, request: &ContractRequest) -> Result<ContractAnswer, ControlError> {
        let token = self.token();
        Ok(self.api().open_contract(caller(self, &token), request).await?)
    }

    async fn close_contract(&self, contract: ContractId) -> Result<(), ControlError> {
        let token = self.token();
        self.api().close_contract(caller(self, &token), contract).await?;
        Ok(())
    }

    async fn candidates(&self, query: CandidatesQuery<'_>) -> Result<CandidatesAnswer, ControlError> {
        let token = self.token();
        Ok(self.api().candidates(caller(self, &token), query).await?)
    }

    async fn pools(&self, tag: Option<&str>) -> Result<Option<(PoolsAnswer, String)>, ControlError> {
        let token = self.token();
        Ok(self.api().pools(caller(self, &token), tag).await?)
    }

    async fn pool(&self, hash: BlobHash) -> Result<Vec<u8>, ControlError> {
        let token = self.token();
        Ok(self.api().pool(caller(self, &token), hash).await?)
    }

    fn key_ring(&self) -> Arc<KeyRing> {
        Self::key_ring(self)
    }

    async fn renew_key_ring(&self) -> Result<(), ControlError> {
        match self.refresh().await {
            Err(MembershipError::Api(error)) => Err(error.into()),
            Err(error) => Err(ControlError::Silent(error.to_string())),
            Ok(()) => Ok(()),
        }
    }

    async fn report_exits(&self, report: &ExitsRequest) -> Result<(), ControlError> {
        let token = self.token();
        Ok(self.api().report_exits(caller(self, &token), report).await?)
    }
}

fn caller<'a>(membership: &'a Membership, token: &'a str) -> Caller<'a> {
    Caller { identity: membership.identity(), token }
}
