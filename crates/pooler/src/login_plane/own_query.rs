//! Queries of the pooler's own on a connection of its own.

use super::failure::Failure;
use super::login::Connected;
use pgwire::message::{ErrorFields, frontend, parse, tag};

/// A query of our own that has no rows for us.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    /// The connection is of no use any more.
    #[error(transparent)]
    Connection(#[from] Failure),
    /// The server has answered with an error; the connection may be used on.
    #[error("{0}")]
    Refused(ErrorFields),
}

/// The values of a row, as text.
pub(super) type Row = Vec<Option<String>>;

impl Connected {
    /// Runs statements by the simple protocol; the rows of all of them, no more than `most`. The caller sets a limit.
    ///
    /// # Errors
    /// [`QueryError`]; the first error of the server ends the statements.
    pub(super) async fn query(&mut self, sql: &str, most: usize) -> Result<Vec<Row>, QueryError> {
        let mut bytes = Vec::new();
        frontend::query(&mut bytes, sql);
        self.stream.write_all(&bytes).await.map_err(Failure::Lost)?;
        let mut rows = Vec::new();
        let mut error = None;
        loop {
            let message = self.inbound.next(&mut self.stream).await?;
            match message.tag {
                tag::DATA_ROW if rows.len() < most => rows.push(row(&message.body)),
                tag::ERROR_RESPONSE => error = error.or_else(|| Some(ErrorFields::parse(&message.body))),
                tag::READY_FOR_QUERY => {
                    parse::ready_for_query(&message.body).map_err(Failure::from)?;
                    return match error {
                        Some(error) => Err(QueryError::Refused(error)),
                        None => Ok(rows),
                    };
                }
                _ => {}
            }
        }
    }
}

fn row(body: &[u8]) -> Row {
    parse::data_row(body)
        .map(|value| value.map(|value| String::from_utf8_lossy(value).into_owned()))
        .collect()
}
