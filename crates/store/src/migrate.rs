//! Brings a database to the schema of this program: on the direct path, one at a time, without making others wait.
//!
//! refinery takes no lock of its own. A session lock that is taken through a transaction pooler belongs to whichever server
//! connection happened to run the statement, and protects nothing: so the lock is looked for in `pg_locks` on the session
//! that will migrate, and without it nothing is done.

mod lock;
mod passwords;

use std::time::Duration;

use tokio::time::Instant;

use crate::session::Session;
use crate::{DirectPath, StoreError, catalogue, error};

pub use passwords::Passwords;

mod embedded {
    #![allow(missing_docs, unreachable_pub, clippy::unwrap_used, reason = "made by the macro")]
    refinery::embed_migrations!("migrations");
}

/// How long a statement of a migration waits for a lock of a table. Whoever comes after it waits as well, so this is short;
/// the migration is tried again instead.
const TABLE_LOCK_MS: u64 = 2_000;
/// How often a migration that met a lock is tried.
const ATTEMPTS: u32 = 5;
/// Rest between two attempts.
const REST: Duration = Duration::from_millis(500);
/// How long another migration is waited for.
const OTHERS_LIMIT: Duration = Duration::from_secs(60);

/// Why a database was not brought to this schema.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database refused, or was not reached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The path leads through a transaction pooler.
    #[error(
        "the lock for migrations is not held by this session: the address leads through a pooler that shares \
         sessions, and migrations need the database's own address"
    )]
    NotDirect,
    /// Another process is migrating.
    #[error("another process has been migrating this database for {} s", OTHERS_LIMIT.as_secs())]
    Others,
    /// A migration failed; those before it stand.
    #[error("a migration failed: {reason}")]
    Failed {
        /// refinery's text, with the server's.
        reason: String,
    },
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// The migrations that were applied now, such as `V1__identities`.
    pub applied: Vec<String>,
}

/// Applies what is missing, and sets roles and grants. Running it again changes nothing; two at once take turns.
///
/// With `passwords`, the database's roles of [`catalogue::Writer::AT_RUN_TIME`] are made if they are missing and get these
/// passwords. Without, they have to be there.
///
/// # Errors
/// See [`MigrateError`].
pub async fn migrate(path: &DirectPath, passwords: Option<&Passwords>) -> Result<Migrated, MigrateError> {
    let mut session = Session::open(path.config())
        .await
        .map_err(|error| StoreError::Unreachable { reason: error::reason(&error), retry_after_ms: 1_000 })?;
    session.begin_work("a migration");
    lock::take(&session, Instant::now() + OTHERS_LIMIT).await?;
    session.batch(&format!("SET lock_timeout = {TABLE_LOCK_MS}")).await?;
    let applied = apply(&mut session).await?;
    if let Some(passwords) = passwords {
        passwords.apply(&session).await?;
    }
    lock::verify(&session).await?;
    session.batch(&catalogue::statements()).await?;
    Ok(Migrated { applied })
}

async fn apply(session: &mut Session) -> Result<Vec<String>, MigrateError> {
    let mut applied = Vec::new();
    for attempt in 1.. {
        lock::verify(session).await?;
        let result = embedded::migrations::runner().run_async(session.client_mut()).await;
        let report = match &result {
            Ok(report) => Some(report),
            Err(error) => error.report(),
        };
        for migration in report.map(refinery::Report::applied_migrations).into_iter().flatten() {
            applied.push(format!("V{}__{}", migration.version(), migration.name()));
        }
        let Err(error) = result else { break };
        if attempt >= ATTEMPTS || !met_a_lock(&error) {
            return Err(MigrateError::Failed { reason: chain(&error) });
        }
        tracing::warn!(attempt, reason = chain(&error), "a migration met a lock and is tried again");
        tokio::time::sleep(REST).await;
    }
    Ok(applied)
}

fn met_a_lock(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<tokio_postgres::Error>())
        .any(|error| error.code() == Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
pub(crate) mod tests;
