//! One client's names.

use super::Statement;
use hashbrown::HashMap;
use std::sync::Arc;

/// Names that one client may have in use at once.
pub(crate) const MAX_STATEMENTS_OF_A_CLIENT: usize = 16_384;

/// What one client has prepared.
#[derive(Debug, Default)]
pub(crate) struct ClientStatements {
    named: HashMap<Arc<[u8]>, Arc<Statement>>,
    /// What followed the name in the last Parse without one, if it succeeded.
    pub(super) unnamed: Option<Box<[u8]>>,
}

impl ClientStatements {
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    /// The name as it is kept, and its statement.
    pub(crate) fn find(&self, name: &[u8]) -> Option<(&Arc<[u8]>, &Arc<Statement>)> {
        self.named.get_key_value(name)
    }

    pub(crate) fn insert(&mut self, name: Arc<[u8]>, statement: Arc<Statement>) {
        self.named.insert(name, statement);
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<(Arc<[u8]>, Arc<Statement>)> {
        self.named.remove_entry(name)
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
    }
}
