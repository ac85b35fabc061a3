//! One connection to the database.

mod cancel;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};

use crate::StoreError;

/// Work on a session.
pub(crate) type Work<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// A value of a statement and its type: statements are not prepared by name, so that they work behind any pooler, and take
/// one round trip.
pub(crate) type Value<'v> = (&'v (dyn ToSql + Sync), Type);

/// Values of a statement in the order of `$1`, `$2`, …, each with its type.
macro_rules! values {
    ($($value:expr => $kind:ident),* $(,)?) => {
        [$((&$value as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::$kind)),*]
    };
}
pub(crate) use values;

/// A session with the server, or with a pooler in front of it.
pub struct Session {
    client: Client,
    config: Config,
    /// Moves the bytes; ends with the connection.
    driver: JoinHandle<()>,
    in_transaction: bool,
    work: &'static str,
}

impl Session {
    pub(crate) async fn open(config: &Config) -> Result<Self, tokio_postgres::Error> {
        let (client, connection) = config.connect(NoTls).await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(
                    reason = crate::error::reason(&error),
                    "a connection to the database has ended"
                );
            }
        });
        Ok(Self { client, config: config.clone(), driver, in_transaction: false, work: "" })
    }

    /// Names what is done next, for errors.
    pub(crate) fn begin_work(&mut self, work: &'static str) {
        self.work = work;
    }

    pub(crate) async fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        self.client.query_typed(sql, values).await.map_err(|error| self.failed(&error))
    }

    pub(crate) async fn row(&self, sql: &str, values: &[Value<'_>]) -> Result<Option<Row>, StoreError> {
        self.client.query_typed_opt(sql, values).await.map_err(|error| self.failed(&error))
    }

    /// Runs a statement and returns how many rows it touched.
    pub(crate) async fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.client.execute_typed(sql, values).await.map_err(|error| self.failed(&error))
    }

    /// Runs statements without values.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), StoreError> {
        self.client.batch_execute(sql).await.map_err(|error| self.failed(&error))
    }

    pub(crate) async fn begin(&mut self) -> Result<(), StoreError> {
        // Noted before it is sent: a caller that stops at BEGIN leaves an open transaction.
        self.in_transaction = true;
        self.batch("BEGIN").await
    }

    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        self.batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    pub(crate) async fn rollback(&mut self) -> Result<(), StoreError> {
        self.batch("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// The process id that the other side named at the start. A pooler names one of its own.
    pub(crate) async fn named_process_id(&self) -> Option<i32> {
        cancel::process_id(self.client.cancel_token()).await.ok()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(crate) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    pub(crate) fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Ends what is under way, so that the session can be used again: waits `grace` for it to end by itself, then cancels
    /// it, and gives up `limit` later. Work that was dropped goes on at the server until then.
    pub(crate) async fn settle(&mut self, grace: Duration, limit: Duration) -> Result<Settled, Unsettled> {
        let farewell = if self.in_transaction { "ROLLBACK" } else { "" };
        // Stands in line behind what is under way, and is answered once that has ended.
        let round = self.client.batch_execute(farewell);
        tokio::pin!(round);
        let mut settled = Settled::ByItself;
        let answer = match tokio::time::timeout(grace, &mut round).await {
            Ok(answer) => answer,
            Err(_) => {
                settled = Settled::Cancelled;
                let cancel = cancel::request(&self.config, self.client.cancel_token());
                // Both have to end: a cancel request that is still on its way would hit the next statement.
                let both = async { tokio::join!(cancel, &mut round) };
                let (cancelled, answer) =
                    tokio::time::timeout(limit, both).await.map_err(|_| Unsettled::Silent)?;
                if cancelled.is_err() && answer.is_err() {
                    return Err(Unsettled::Broken);
                }
                answer
            }
        };
        if answer.is_err() || settled == Settled::Cancelled {
            // The cancel may have hit the farewell itself, or come behind it.
            self.round_trip(farewell, limit).await?;
        }
        self.in_transaction = false;
        Ok(settled)
    }

    async fn round_trip(&self, sql: &str, limit: Duration) -> Result<(), Unsettled> {
        for _ in 0..2 {
            match tokio::time::timeout(limit, self.client.batch_execute(sql)).await {
                Err(_) => return Err(Unsettled::Silent),
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_)) if self.is_closed() => return Err(Unsettled::Broken),
                Ok(Err(_)) => {}
            }
        }
        Err(Unsettled::Broken)
    }

    fn failed(&self, error: &tokio_postgres::Error) -> StoreError {
        StoreError::from_driver(self.work, error)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// How work that was left alone has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It was over soon.
    ByItself,
    /// It had to be cancelled.
    Cancelled,
}

/// Why a session cannot be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsettled {
    /// No answer in time, not even to the cancel request.
    Silent,
    /// The connection is gone.
    Broken,
}
