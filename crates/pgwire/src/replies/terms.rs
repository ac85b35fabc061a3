//! What can be said of replies.

use super::MAX_OWED;
use crate::message::TransactionStatus;
use thiserror::Error;

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The client: the answer is forwarded.
    Client,
    /// The pooler, on behalf of what the client asks next in the same batch: success is swallowed, an error is the
    /// client's, since the server then ignores the rest of its batch.
    Injected,
    /// The pooler: the answer is swallowed.
    Pooler,
}

/// An answer that the pooler gives itself when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulated {
    /// CloseComplete.
    CloseComplete,
    /// ParseComplete.
    ParseComplete,
}

impl Simulated {
    /// The message.
    #[must_use]
    pub const fn message(self) -> &'static [u8; 5] {
        match self {
            Self::CloseComplete => b"3\0\0\0\x04",
            Self::ParseComplete => b"1\0\0\0\x04",
        }
    }
}

/// What has become of the sent messages that were noted with an effect, oldest first: `confirmed` of them succeeded,
/// then perhaps one `failed`, then `skipped` were never looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Done.
    pub confirmed: u32,
    /// Answered by an error.
    pub failed: bool,
    /// Ignored by the server, after an error or in a COPY.
    pub skipped: u32,
}

/// What a message from the server is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The answer to something that `Origin` asked.
    Answer(Origin),
    /// Notice, notification or parameter status, at any time.
    Asynchronous,
    /// ReadyForQuery for something that `Origin` asked.
    Ready(Origin, TransactionStatus),
}

/// What the server is in the middle of: the ground for what to do with it when its client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owes {
    /// An extended batch that has no Sync yet.
    Batch,
    /// COPY from the client; `extended` if by the extended protocol.
    CopyIn {
        /// A Sync has to follow CopyFail.
        extended: bool,
    },
    /// COPY to the client.
    CopyOut,
    /// Nothing: it is at rest, with this transaction status.
    Nothing(TransactionStatus),
    /// The answer to a query or a synced batch.
    Query,
    /// A replication stream.
    Replication,
}

/// The server sent a message that nothing sent to it explains.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("server sent '{}' where {expected} was due", got.escape_ascii())]
pub struct Desync {
    /// The tag that came.
    pub got: u8,
    /// What was expected.
    pub expected: &'static str,
}

/// Whether a message that is sent brings an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// No: it never does, or the server ignores everything up to the next Sync.
    Nothing,
    /// Yes.
    Owed,
}

/// The client has more in flight than [`MAX_OWED`], or sent a message that has no place in a running session.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SendError {
    /// Too many replies owed.
    #[error("more than {MAX_OWED} replies are owed")]
    Full,
    /// Not a message of the protocol.
    #[error("unknown message type '{}'", tag.escape_ascii())]
    Unknown {
        /// The tag as sent.
        tag: u8,
    },
}
