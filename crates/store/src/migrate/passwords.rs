//! Passwords of the database's roles: only verifiers travel, so that no log of the server can show one.

use std::fmt;

use postgres_protocol::password::scram_sha_256;
use tokio_postgres::types::Type;

use crate::StoreError;
use crate::catalogue::Writer;
use crate::session::Session;

/// One for each role that logs in.
#[derive(Clone)]
pub struct Passwords {
    /// Of `holdfast_api`.
    pub api: String,
    /// Of `holdfast_relay`.
    pub relay: String,
    /// Of `holdfast_worker`.
    pub worker: String,
}

impl Passwords {
    pub(super) async fn apply(&self, session: &Session) -> Result<(), StoreError> {
        for writer in Writer::AT_RUN_TIME {
            let role = writer.database_role();
            let known = session
                .row("SELECT FROM pg_roles WHERE rolname = $1", &[(&role, Type::TEXT)])
                .await?
                .is_some();
            let verb = if known { "ALTER" } else { "CREATE" };
            // Base64 and dollar signs: nothing in it ends a string.
            let verifier = scram_sha_256(self.of(writer).as_bytes());
            session.batch(&format!("{verb} ROLE {role} LOGIN PASSWORD '{verifier}'")).await?;
        }
        Ok(())
    }

    fn of(&self, writer: Writer) -> &str {
        match writer {
            Writer::Api => &self.api,
            Writer::Relay => &self.relay,
            Writer::Worker => &self.worker,
            Writer::Migration => "",
        }
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passwords(…)")
    }
}
