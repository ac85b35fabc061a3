//! What a message that has been sent will change.

use super::Statement;
use std::sync::Arc;

/// What a message changes once the server has confirmed it. Names are the client's.
#[derive(Debug)]
pub(crate) enum Effect {
    /// The client prepares a statement under a new name; `sent` unless the server has it already.
    Prepare { name: Arc<[u8]>, statement: Arc<Statement>, sent: bool },
    /// The client prepares under a name that it has in use: sent for the error alone.
    Duplicate { name: Arc<[u8]> },
    /// The pooler prepares a statement that this server lacks.
    Inject(Arc<Statement>),
    /// The pooler closes a statement to make room.
    Evict(Arc<Statement>),
    /// Nothing that lasts.
    Other,
    /// The client uses a statement.
    Use { name: Arc<[u8]>, statement: Arc<Statement> },
    /// The client closes a name; the server keeps the statement for others.
    Close { name: Arc<[u8]>, statement: Arc<Statement> },
    /// The client uses a name that it does not have and that looks like the pooler's: sent for the error alone.
    Unknown { name: Box<[u8]> },
    /// The client prepares the unnamed statement; without its text if that is too long to be kept. `is_current`: the text
    /// is that of the last one, and lent by the client.
    Unnamed { text: Option<Box<[u8]>>, is_current: bool },
    /// The pooler prepares the client's unnamed statement again.
    UnnamedInjected,
    /// A simple query drops the unnamed statement.
    UnnamedDropped,
    /// The unnamed statement is closed, at the client's wish or because it is another client's.
    UnnamedClosed { of_client: bool },
}

impl Effect {
    /// True if what is sent after it depends on whether it succeeds.
    pub(super) const fn changes_names(&self) -> bool {
        matches!(self, Self::Prepare { .. } | Self::Inject(_) | Self::Evict(_) | Self::Close { .. })
    }

    /// True if it is about the unnamed statement.
    pub(super) const fn is_unnamed(&self) -> bool {
        matches!(
            self,
            Self::Unnamed { .. } | Self::UnnamedClosed { .. } | Self::UnnamedDropped | Self::UnnamedInjected
        )
    }

    /// Bytes of a text that it keeps.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Self::Unnamed { text: Some(text), .. } => text.len(),
            _ => 0,
        }
    }

    /// The statement that the server is to have after it, under the pooler's name.
    pub(crate) const fn statement(&self) -> Option<&Arc<Statement>> {
        match self {
            Self::Inject(statement)
            | Self::Use { statement, .. }
            | Self::Prepare { statement, sent: true, .. } => Some(statement),
            _ => None,
        }
    }

    /// What the client calls the statement that a server knows by another name.
    pub(crate) fn client_name(&self) -> Option<&[u8]> {
        match self {
            Self::Prepare { name, .. } | Self::Duplicate { name, .. } | Self::Use { name, .. } => Some(name),
            Self::Unknown { name } => Some(name),
            _ => None,
        }
    }
}
