//! How other threads speak to the engine: questions and orders through the reactor's inbox.
//!
//! A reactor that does not answer is an error within [`ANSWER_LIMIT`], never a hang.

pub(crate) mod inbox;

use crate::tls::TlsContext;
use inbox::Inbox;
use pooling::Shutdown;
use pooling::snapshot::{
    BudgetRow, ClientRow, EventRow, HolderRow, LaneRow, LockRow, Overview, PatienceRow, PoolRow, ServerRow,
    StallRow, StormRow,
};
use settings::pooler::PoolerConfig;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest wait for an answer of the reactor.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// A question or an order to the engine.
#[derive(Debug)]
pub enum Ask {
    /// One row per pool.
    Pools(oneshot::Sender<Vec<PoolRow>>),
    /// One row per client.
    Clients(oneshot::Sender<Vec<ClientRow>>),
    /// One row per server connection.
    Servers(oneshot::Sender<Vec<ServerRow>>),
    /// The live clients that hold a server without using it.
    Holders(oneshot::Sender<Vec<HolderRow>>),
    /// One row per server with a budget.
    Budgets(oneshot::Sender<Vec<BudgetRow>>),
    /// What has happened lately.
    Events(oneshot::Sender<Vec<EventRow>>),
    /// One row per lane of each pool.
    Lanes(oneshot::Sender<Vec<LaneRow>>),
    /// The pools whose servers pile up behind a lock.
    Locks(oneshot::Sender<Vec<LockRow>>),
    /// What has been learnt of callers who have not declared their patience.
    Patience(oneshot::Sender<Vec<PatienceRow>>),
    /// Sources that do far more than they used to.
    Storms(oneshot::Sender<Vec<StormRow>>),
    /// The pools that stand still, or have.
    Stalls(oneshot::Sender<Vec<StallRow>>),
    /// Everything for metrics and health.
    Overview(oneshot::Sender<Overview>),
    /// The configuration that runs.
    Config(oneshot::Sender<Arc<PoolerConfig>>),
    /// Run with this configuration and TLS from now on; answered when they are in force.
    Reload(Arc<PoolerConfig>, TlsContext, oneshot::Sender<()>),
    /// Stop.
    ShutDown(Shutdown),
}

/// The reactor gave no answer within [`ANSWER_LIMIT`], has stopped, or has too many questions waiting.
/// Asking again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reactor gave no answer within {} s", ANSWER_LIMIT.as_secs())]
pub struct ReactorSilent;

/// Asks the engine from any thread; cheap to clone.
#[derive(Clone, Debug)]
pub struct EngineHandle {
    inbox: Arc<Inbox>,
}

impl EngineHandle {
    pub(crate) const fn new(inbox: Arc<Inbox>) -> Self {
        Self { inbox }
    }

    /// One row per pool.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn pools(&self) -> Result<Vec<PoolRow>, ReactorSilent> {
        self.ask(Ask::Pools).await
    }

    /// One row per client.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn clients(&self) -> Result<Vec<ClientRow>, ReactorSilent> {
        self.ask(Ask::Clients).await
    }

    /// One row per server connection.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn servers(&self) -> Result<Vec<ServerRow>, ReactorSilent> {
        self.ask(Ask::Servers).await
    }

    /// The live clients that hold a server without using it.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn holders(&self) -> Result<Vec<HolderRow>, ReactorSilent> {
        self.ask(Ask::Holders).await
    }

    /// One row per server with a budget.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn budgets(&self) -> Result<Vec<BudgetRow>, ReactorSilent> {
        self.ask(Ask::Budgets).await
    }

    /// What has happened lately, in the order in which it began.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn events(&self) -> Result<Vec<EventRow>, ReactorSilent> {
        self.ask(Ask::Events).await
    }

    /// One row per lane of each pool.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn lanes(&self) -> Result<Vec<LaneRow>, ReactorSilent> {
        self.ask(Ask::Lanes).await
    }

    /// The pools whose servers pile up behind a lock.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn locks(&self) -> Result<Vec<LockRow>, ReactorSilent> {
        self.ask(Ask::Locks).await
    }

    /// What has been learnt of callers who have not declared their patience.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn patience(&self) -> Result<Vec<PatienceRow>, ReactorSilent> {
        self.ask(Ask::Patience).await
    }

    /// Sources that do far more than they used to.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn storms(&self) -> Result<Vec<StormRow>, ReactorSilent> {
        self.ask(Ask::Storms).await
    }

    /// The pools that stand still, then those that have, the latest first.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn stalls(&self) -> Result<Vec<StallRow>, ReactorSilent> {
        self.ask(Ask::Stalls).await
    }

    /// Everything for metrics and health.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn overview(&self) -> Result<Overview, ReactorSilent> {
        self.ask(Ask::Overview).await
    }

    /// The configuration that runs.
    ///
    /// # Errors
    /// [`ReactorSilent`].
    pub async fn config(&self) -> Result<Arc<PoolerConfig>, ReactorSilent> {
        self.ask(Ask::Config).await
    }

    /// Puts a configuration in force.
    ///
    /// # Errors
    /// [`ReactorSilent`]; it may then still come into force later.
    pub async fn reload(&self, config: Arc<PoolerConfig>, tls: TlsContext) -> Result<(), ReactorSilent> {
        self.ask(|answer| Ask::Reload(config, tls, answer)).await
    }

    /// Orders a stop; never refused, never waits.
    pub fn shut_down(&self, how: Shutdown) {
        self.inbox.order_shutdown(how);
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, ReactorSilent> {
        let (sender, answer) = oneshot::channel();
        self.inbox.ask(question(sender))?;
        match tokio::time::timeout(ANSWER_LIMIT, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(ReactorSilent),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
