//! Everything that a server sends up to ReadyForQuery.

use super::error::{Error, ServerError};
use super::message::{Body, Message, TransactionStatus};

/// One reply: what came up to (and with) ReadyForQuery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Columns of the last result set.
    pub columns: Vec<String>,
    /// Rows of the last result set that had a description, as text; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Command tags, in order.
    pub tags: Vec<String>,
    /// Errors, in order (a pipeline may have several).
    pub errors: Vec<ServerError>,
    /// Notices, in order.
    pub notices: Vec<ServerError>,
    /// What CopyData messages held, joined.
    pub copied: Vec<u8>,
    /// The type bytes of all messages, in order, such as `1`, `2`, `T`, `D`, `C`, `Z`.
    pub kinds: String,
    /// The state that ReadyForQuery told; none if the reply stopped before it (CopyInResponse).
    pub status: Option<TransactionStatus>,
}

impl Reply {
    /// The first error.
    #[must_use]
    pub fn error(&self) -> Option<&ServerError> {
        self.errors.first()
    }

    /// The first value of the first row.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }

    /// The reply, or its first error.
    ///
    /// # Errors
    /// [`Error::Server`] if the reply holds an error.
    pub fn into_result(mut self) -> Result<Self, Error> {
        if self.errors.is_empty() {
            Ok(self)
        } else {
            Err(Error::Server(Box::new(self.errors.swap_remove(0))))
        }
    }

    /// Takes one message in; tells whether the reply is whole.
    pub(super) fn take(&mut self, message: &Message) -> Result<bool, Error> {
        self.kinds.push(char::from(message.kind));
        let mut body = Body(&message.body);
        let broken = || Error::Protocol(format!("cannot read {message:?}"));
        match message.kind {
            b'T' => {
                self.columns = columns(&mut body).ok_or_else(broken)?;
                self.rows.clear();
            }
            b'D' => self.rows.push(row(&mut body).ok_or_else(broken)?),
            b'C' => self.tags.push(body.text().ok_or_else(broken)?),
            b'E' => self.errors.push(ServerError::parse(&message.body)),
            b'N' => self.notices.push(ServerError::parse(&message.body)),
            b'd' => self.copied.extend(&message.body),
            // The client's turn.
            b'G' => return Ok(true),
            b'Z' => {
                self.status = Some(TransactionStatus::parse(&message.body).ok_or_else(broken)?);
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }
}

fn columns(body: &mut Body<'_>) -> Option<Vec<String>> {
    let count = body.u16()?;
    (0..count)
        .map(|_| {
            let name = body.text()?;
            // Table, column number, type, size, modifier, format.
            body.bytes(4 + 2 + 4 + 2 + 4 + 2)?;
            Some(name)
        })
        .collect()
}

fn row(body: &mut Body<'_>) -> Option<Vec<Option<String>>> {
    let count = body.u16()?;
    (0..count)
        .map(|_| match body.i32()? {
            -1 => Some(None),
            length => {
                let bytes = body.bytes(usize::try_from(length).ok()?)?;
                Some(Some(String::from_utf8_lossy(bytes).into_owned()))
            }
        })
        .collect()
}
