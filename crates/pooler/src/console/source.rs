//! Where the console, the metrics page and the health page look.

use crate::control::{EngineHandle, ReactorSilent};
use pooling::snapshot::{
    BudgetRow, ClientRow, EventRow, HolderRow, LaneRow, LockRow, Overview, PatienceRow, PoolRow, ServerRow,
    StallRow, StormRow,
};
use settings::pooler::PoolerConfig;
use std::future::Future;
use std::sync::Arc;

/// Rows of the engine, each set taken at one moment. [`EngineHandle`] is the only real one; tests bring their own.
///
/// # Errors
/// Every call gives [`ReactorSilent`] when no answer came in time.
pub trait Source: Send + Sync + 'static {
    /// One row per pool.
    fn pools(&self) -> impl Future<Output = Result<Vec<PoolRow>, ReactorSilent>> + Send;
    /// One row per client.
    fn clients(&self) -> impl Future<Output = Result<Vec<ClientRow>, ReactorSilent>> + Send;
    /// One row per server connection.
    fn servers(&self) -> impl Future<Output = Result<Vec<ServerRow>, ReactorSilent>> + Send;
    /// The live clients that hold a server without using it.
    fn holders(&self) -> impl Future<Output = Result<Vec<HolderRow>, ReactorSilent>> + Send;
    /// One row per server with a budget.
    fn budgets(&self) -> impl Future<Output = Result<Vec<BudgetRow>, ReactorSilent>> + Send;
    /// What has happened lately.
    fn events(&self) -> impl Future<Output = Result<Vec<EventRow>, ReactorSilent>> + Send;
    /// One row per lane of each pool.
    fn lanes(&self) -> impl Future<Output = Result<Vec<LaneRow>, ReactorSilent>> + Send;
    /// The pools whose servers pile up behind a lock.
    fn locks(&self) -> impl Future<Output = Result<Vec<LockRow>, ReactorSilent>> + Send;
    /// What has been learnt of callers who have not declared their patience.
    fn patience(&self) -> impl Future<Output = Result<Vec<PatienceRow>, ReactorSilent>> + Send;
    /// Sources that do far more than they used to.
    fn storms(&self) -> impl Future<Output = Result<Vec<StormRow>, ReactorSilent>> + Send;
    /// The pools that stand still, or have.
    fn stalls(&self) -> impl Future<Output = Result<Vec<StallRow>, ReactorSilent>> + Send;
    /// Everything for metrics and health.
    fn overview(&self) -> impl Future<Output = Result<Overview, ReactorSilent>> + Send;
    /// The configuration that runs.
    fn config(&self) -> impl Future<Output = Result<Arc<PoolerConfig>, ReactorSilent>> + Send;
}

impl Source for EngineHandle {
    async fn pools(&self) -> Result<Vec<PoolRow>, ReactorSilent> {
        Self::pools(self).await
    }

    async fn clients(&self) -> Result<Vec<ClientRow>, ReactorSilent> {
        Self::clients(self).await
    }

    async fn servers(&self) -> Result<Vec<ServerRow>, ReactorSilent> {
        Self::servers(self).await
    }

    async fn holders(&self) -> Result<Vec<HolderRow>, ReactorSilent> {
        Self::holders(self).await
    }

    async fn budgets(&self) -> Result<Vec<BudgetRow>, ReactorSilent> {
        Self::budgets(self).await
    }

    async fn events(&self) -> Result<Vec<EventRow>, ReactorSilent> {
        Self::events(self).await
    }

    async fn lanes(&self) -> Result<Vec<LaneRow>, ReactorSilent> {
        Self::lanes(self).await
    }

    async fn locks(&self) -> Result<Vec<LockRow>, ReactorSilent> {
        Self::locks(self).await
    }

    async fn patience(&self) -> Result<Vec<PatienceRow>, ReactorSilent> {
        Self::patience(self).await
    }

    async fn storms(&self) -> Result<Vec<StormRow>, ReactorSilent> {
        Self::storms(self).await
    }

    async fn stalls(&self) -> Result<Vec<StallRow>, ReactorSilent> {
        Self::stalls(self).await
    }

    async fn overview(&self) -> Result<Overview, ReactorSilent> {
        Self::overview(self).await
    }

    async fn config(&self) -> Result<Arc<PoolerConfig>, ReactorSilent> {
        Self::config(self).await
    }
}
