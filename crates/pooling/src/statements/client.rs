//! One client's names.

use super::Statement;
use hashbrown::HashMap;
use std::sync::Arc;

/// Names that one client may have in use at once.
pub(crate) const MAX_STATEMENTS_OF_A_CLIENT: usize = 16_384;

/// Bytes of the names and texts that one client may have in use at once.
pub(crate) const MAX_STATEMENT_BYTES_OF_A_CLIENT: usize = 64 << 20;

/// What one client has prepared.
#[derive(Debug, Default)]
pub(crate) struct ClientStatements {
    named: HashMap<Arc<[u8]>, Arc<Statement>>,
    /// Of the names and their texts, shared or not.
    bytes: usize,
    /// What followed the name in the last Parse without one, if it succeeded.
    pub(super) unnamed: Option<Box<[u8]>>,
}

impl ClientStatements {
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    /// True if one more with so many bytes would be too many, or too much.
    pub(crate) fn is_full_for(&self, bytes: usize) -> bool {
        self.named.len() >= MAX_STATEMENTS_OF_A_CLIENT || self.bytes + bytes > MAX_STATEMENT_BYTES_OF_A_CLIENT
    }

    /// The name as it is kept, and its statement.
    pub(crate) fn find(&self, name: &[u8]) -> Option<(&Arc<[u8]>, &Arc<Statement>)> {
        self.named.get_key_value(name)
    }

    pub(crate) fn insert(&mut self, name: Arc<[u8]>, statement: Arc<Statement>) {
        self.bytes += name.len() + statement.body().len();
        let name_bytes = name.len();
        if let Some(old) = self.named.insert(name, statement) {
            self.bytes -= name_bytes + old.body().len();
        }
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<(Arc<[u8]>, Arc<Statement>)> {
        let removed = self.named.remove_entry(name)?;
        self.bytes -= removed.0.len() + removed.1.body().len();
        Some(removed)
    }

    pub(crate) fn unnamed(&self) -> Option<&[u8]> {
        self.unnamed.as_deref()
    }

    /// Lends the unnamed statement's text to an [`super::Effect`].
    pub(crate) fn take_unnamed(&mut self) -> Option<Box<[u8]>> {
        self.unnamed.take()
    }

    /// A simple query drops the unnamed statement.
    pub(crate) fn forget_unnamed(&mut self) {
        self.unnamed = None;
    }

    /// Everything that has a name is gone, and so is its memory.
    pub(crate) fn clear(&mut self) {
        self.named = HashMap::new();
        self.bytes = 0;
    }
}
