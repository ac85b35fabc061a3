//! Messages that a pooler makes or looks into: builders that append whole messages, parsers that borrow a body.
//!
//! Bodies are what follows the tag and the length. See "Message Formats" in the PostgreSQL manual.

pub mod backend;
mod errors;
pub mod frontend;
pub mod parse;
#[cfg(test)]
mod tests;

pub use errors::{ErrorFields, MAX_ERROR_FIELD_BYTES, Severity, error_fields, error_response};

/// Tags of messages, by who sends them. Some letters mean one thing from a client and another from a server.
pub mod tag {
    /// From the server: Authentication, of any kind.
    pub const AUTHENTICATION: u8 = b'R';
    /// From the server: the key for cancel requests.
    pub const BACKEND_KEY_DATA: u8 = b'K';
    /// From the client: binds parameters to a statement, which makes a portal.
    pub const BIND: u8 = b'B';
    /// From the client: closes a statement or portal.
    pub const CLOSE: u8 = b'C';
    /// From the server: a statement is done.
    pub const COMMAND_COMPLETE: u8 = b'C';
    /// From the client: breaks off COPY IN.
    pub const COPY_FAIL: u8 = b'f';
    /// From the server: one row.
    pub const DATA_ROW: u8 = b'D';
    /// From the server: the statement was empty.
    pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
    /// From the server: an error.
    pub const ERROR_RESPONSE: u8 = b'E';
    /// From the client: asks what a statement or portal looks like.
    pub const DESCRIBE: u8 = b'D';
    /// From the client: runs a portal.
    pub const EXECUTE: u8 = b'E';
    /// From the server: another minor version, or unknown protocol options.
    pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
    /// From the server: a notice.
    pub const NOTICE_RESPONSE: u8 = b'N';
    /// From the server: the value of a reported parameter.
    pub const PARAMETER_STATUS: u8 = b'S';
    /// From the client: prepares a statement.
    pub const PARSE: u8 = b'P';
    /// From the client: a password or a SASL message.
    pub const PASSWORD: u8 = b'p';
    /// From the client: statements in the simple protocol.
    pub const QUERY: u8 = b'Q';
    /// From the server: all is answered, the next request may come.
    pub const READY_FOR_QUERY: u8 = b'Z';
    /// From the server: what the columns of the rows are.
    pub const ROW_DESCRIPTION: u8 = b'T';
    /// From the client: ends a batch of the extended protocol.
    pub const SYNC: u8 = b'S';
    /// From the client: the session is over.
    pub const TERMINATE: u8 = b'X';
}

/// What ReadyForQuery says of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// No transaction.
    Idle,
    /// In a transaction.
    InTransaction,
    /// In a transaction that failed and waits for its end.
    Failed,
}

impl TransactionStatus {
    /// The byte on the wire.
    #[must_use]
    pub fn as_byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::InTransaction => b'T',
            Self::Failed => b'E',
        }
    }

    /// `None` for a byte the protocol does not know.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'I' => Some(Self::Idle),
            b'T' => Some(Self::InTransaction),
            b'E' => Some(Self::Failed),
            _ => None,
        }
    }
}

/// Appends one message: tag, length, and the body that `fill` appends.
fn framed(out: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    // Bodies are made of bounded texts of our own, far below what a length can say.
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends a text and its closing zero byte; zero bytes inside are left out, since they would end it early.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}
