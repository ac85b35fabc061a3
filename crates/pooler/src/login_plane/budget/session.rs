//! One control connection.

use super::super::dial::Resolver;
use super::super::failure::Failure;
use super::super::login::{Connected, connect};
use super::super::own_query::QueryError;
use super::super::request::Way;
use super::rows::{Row, look_of, numbers};
use super::sql;
use budget::{Look, Order};
use pooling::seam::Target;
use std::fmt;
use std::time::Duration;

/// Rows of one answer: more backends and locks than any server has.
const MAX_ROWS: usize = 1 << 19;

/// A logged-in session. It ends when it is dropped, and the server takes its locks back.
pub(super) struct Session {
    connected: Connected,
    name: SessionName,
    tells_starving: bool,
}

/// What tells a session from all others of its server: a process id alone comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionName {
    pub process_id: i32,
    /// Microseconds since 1970.
    pub started_us: i64,
}

impl Session {
    /// Logs in, and ends the last session of ours that the server may believe to be alive.
    pub(super) async fn begin(
        target: &Target,
        way: &Way,
        resolver: &Resolver,
        limit: Duration,
        last: Option<&SessionName>,
    ) -> Result<Self, Failure> {
        let connected = connect(target, way, resolver, 0, limit).await?;
        let name = SessionName { process_id: 0, started_us: 0 };
        let mut session = Self { connected, name, tells_starving: false };
        let rows = session.query(&sql::begin(last)).await?;
        let itself = rows.iter().find(|row| row.kind == "s");
        let [process_id, started_us, _] =
            itself.ok_or_else(|| Failure::Control("it does not see itself".to_owned()))?.values;
        session.name = SessionName { process_id: i32::try_from(process_id).unwrap_or_default(), started_us };
        Ok(session)
    }

    pub(super) const fn name(&self) -> &SessionName {
        &self.name
    }

    /// Does what the order says and looks around.
    pub(super) async fn carry_out(&mut self, order: &Order) -> Result<Look, Failure> {
        let sql = sql::carry_out(order, self.tells_starving);
        let rows = self.query(&sql).await?;
        self.tells_starving = order.is_starving;
        look_of(&rows).ok_or_else(|| Failure::Control("its answer is not understood".to_owned()))
    }

    async fn query(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        let rows = self.connected.query(sql, MAX_ROWS).await.map_err(|error| match error {
            QueryError::Connection(failure) => failure,
            QueryError::Refused(fields) => Failure::Control(fields.to_string()),
        })?;
        if rows.len() >= MAX_ROWS {
            // What is missing would count as free.
            return Err(Failure::Control("its answer is too long".to_owned()));
        }
        Ok(rows.iter().filter_map(|row| numbers(row)).collect())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}
