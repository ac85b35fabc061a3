//! The lock of whoever migrates: taken for the session, and looked for where the server lists what it has given.

use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::types::Type;

use super::MigrateError;
use crate::StoreError;
use crate::session::Session;

/// The lock's key: "holdfast" as eight bytes.
const KEY: i64 = i64::from_be_bytes(*b"holdfast");
/// Rest between two tries.
const REST: Duration = Duration::from_millis(100);

pub(super) async fn take(session: &Session, until: Instant) -> Result<(), MigrateError> {
    // Behind a quiet pooler the same server connection may serve each statement by chance: so the first question is
    // whether the process that answers is the one that greeted us.
    let named = session.named_process_id().await;
    let row = session.row("SELECT pg_backend_pid()", &[]).await?;
    if named.is_none() || row.map(|row| row.get(0)) != named {
        return Err(MigrateError::NotDirect);
    }
    while !flag(session, "SELECT pg_try_advisory_lock($1)").await? {
        if Instant::now() >= until {
            return Err(MigrateError::Others);
        }
        tokio::time::sleep(REST).await;
    }
    verify(session).await
}

/// Each statement is a transaction of its own: behind a transaction pooler, the next one may meet another session.
pub(super) async fn verify(session: &Session) -> Result<(), MigrateError> {
    let held = flag(
        session,
        "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND classid::bigint << 32 | objid::bigint = $1 AND objsubid = 1",
    )
    .await?;
    if held { Ok(()) } else { Err(MigrateError::NotDirect) }
}

async fn flag(session: &Session, sql: &str) -> Result<bool, StoreError> {
    let row = session.row(sql, &[(&KEY, Type::INT8)]).await?;
    Ok(row.is_some_and(|row| row.get(0)))
}
