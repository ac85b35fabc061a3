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
    unnamed: Option<Box<[u8]>>,
    /// It has an unnamed statement, though its text may be too long to be kept.
    has_unnamed: bool,
    /// Counts the changes of the unnamed statement: a server may hold one of long ago.
    unnamed_version: u32,
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

    /// True if it has an unnamed statement, wherever that is.
    pub(crate) const fn has_unnamed(&self) -> bool {
        self.has_unnamed
    }

    pub(crate) const fn unnamed_version(&self) -> u32 {
        self.unnamed_version
    }

    /// The unnamed statement is another from now on; none if its text is too long to be kept.
    pub(super) fn set_unnamed(&mut self, text: Option<Box<[u8]>>) {
        self.unnamed = text;
        self.has_unnamed = true;
        self.unnamed_version = self.unnamed_version.wrapping_add(1);
    }

    /// The text comes back from an [`super::Effect`] that had none.
    pub(super) fn return_unnamed(&mut self, text: Option<Box<[u8]>>) {
        self.unnamed = text;
    }

    /// Lends the unnamed statement's text to an [`super::Effect`].
    pub(crate) fn take_unnamed(&mut self) -> Option<Box<[u8]>> {
        self.unnamed.take()
    }

    /// There is no unnamed statement any more: a simple query drops it, and so does a Parse that fails.
    pub(crate) fn forget_unnamed(&mut self) {
        self.set_unnamed(None);
        self.has_unnamed = false;
    }

    /// Everything that has a name is gone, and so is its memory.
    pub(crate) fn clear(&mut self) {
        self.named = HashMap::new();
        self.bytes = 0;
    }
}
