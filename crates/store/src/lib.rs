//! The only SQL of the network: schema, migrations, queries, and the services' own pool.
//!
//! Roles call typed functions of [`Store`]; no SQL leaves this room. There are two ways to a database: [`PooledPath`], which
//! may lead through a transaction pooler and serves the roles, and [`DirectPath`], where a session is a session: migrations
//! and their lock go there.

pub mod catalogue;
pub mod config;
pub mod migrate;
pub mod pool;

mod accounts;
mod changes;
mod clients;
mod contracts;
mod error;
mod exits;
mod grants;
mod outages;
mod path;
mod pools;
mod proxy_accounts;
mod relays;
mod session;
mod settlement;
mod sweep;
mod tasks;
#[cfg(test)]
mod testing;
mod time;
mod trust_documents;
mod verdicts;
mod verifiers;

use trust::NetworkId;

pub use accounts::{Account, NewAccount};
pub use changes::{ChangeCursor, Changes, ClientRefusal, ClientStanding, MOST_CHANGES, MOST_REFUSED};
pub use clients::{Client, ClientListed, JoinCodeRow, Registered, Registration};
pub use config::{ConfigError, DatabaseConfig, DatabaseConfigError};
pub use contracts::{Admission, Admitted, MOST_OPEN, REPORTS_MS, Verdict};
pub use error::{ErrorKind, StoreError};
pub use exits::{ExitFound, ExitRow};
pub use grants::{GrantListed, NewGrant};
pub use outages::{OfflineContract, Unfit};
pub use path::{DirectPath, PathError, PooledPath};
pub use pools::{GENERATIONS_KEPT, Generation, LiveNetwork, LiveProvider, PoolRow};
pub use proxy_accounts::{NewProxyAccount, ProxyAccount};
pub use relays::{Beat, Beaten, Candidate, CandidatesFound, Connected, Disconnected, MOST_ROWS, Usage};
pub use settlement::{Settled, SettledLate};
pub use sweep::{SWEPT_AT_ONCE, Swept};
pub use tasks::{
    Claimed, Claims, Ended, HORIZON_HOURS, LaneBacklog, MOST_READY, NewTask, Owner, OwnerKind, Recurring,
};
pub use trust_documents::Document;
pub use verdicts::{
    MOST_JUDGED, RelayListed, RelaySeen, RelayVerdict, RelayWord, RelaysSeen, WorkerBeat, WorkerListed,
};
pub use verifiers::{ApiBeat, Verifier, VerifierKind};

use pool::Pool;
use session::values;

/// One network in the database, and the pool that leads there. Clones share the pool.
#[derive(Clone, Debug)]
pub struct Store {
    pool: Pool,
    network: NetworkId,
}

impl Store {
    /// The network of this name. Nothing is asked yet: a role starts without its database.
    #[must_use]
    pub fn new(pool: Pool, network: NetworkId) -> Self {
        Self { pool, network }
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The network's name.
    #[must_use]
    pub fn network(&self) -> NetworkId {
        self.network
    }

    /// Makes the network's row, if it is not there.
    ///
    /// # Errors
    /// The database's.
    pub async fn ensure_network(&self) -> Result<(), StoreError> {
        let name = self.network.0;
        self.pool
            .run("making the network", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO network (name) VALUES ($1) ON CONFLICT DO NOTHING";
                    session.execute(sql, &values![&name[..] => BYTEA]).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Asks the database for the network: it answers, and it has the schema.
    ///
    /// # Errors
    /// The database's. `Ok(false)`: there is no such network.
    pub async fn is_ready(&self) -> Result<bool, StoreError> {
        let name = self.network.0;
        self.pool
            .run("the question whether it is ready", move |session| {
                Box::pin(async move {
                    let sql = "SELECT FROM network WHERE name = $1";
                    Ok(session.row(sql, &values![&name[..] => BYTEA]).await?.is_some())
                })
            })
            .await
    }
}
