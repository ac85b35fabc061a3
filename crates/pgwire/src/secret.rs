//! Byte strings that must not be shown: passwords and cancel keys.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;

/// Shortest secret of a cancel key, in bytes.
pub const MIN_SECRET_KEY_BYTES: usize = 4;
/// Longest secret of a cancel key since protocol 3.2, in bytes.
pub const MAX_SECRET_KEY_BYTES: usize = 256;

/// A password as it was written, never shown by `Debug`, cheap to clone.
#[derive(Clone)]
pub struct Password(Arc<[u8]>);

impl Password {
    /// Takes the bytes as they are; they need not be UTF-8.
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self(Arc::from(bytes.as_ref()))
    }

    /// The password itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// An empty password never logs anyone in, as in PostgreSQL.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Compares in constant time for equal lengths.
impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Eq for Password {}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(hidden)")
    }
}

/// The secret half of a cancel key: 4 bytes in protocol 3.0, 4 to 256 in 3.2.
#[derive(Clone)]
pub struct SecretKey(Box<[u8]>);

impl SecretKey {
    /// `None` when the length is not one the protocol allows.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (MIN_SECRET_KEY_BYTES..=MAX_SECRET_KEY_BYTES).contains(&bytes.len()).then(|| Self(Box::from(bytes)))
    }

    /// The secret itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<[u8; 4]> for SecretKey {
    fn from(bytes: [u8; 4]) -> Self {
        Self(Box::from(bytes))
    }
}

/// Compares in constant time for equal lengths.
impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Eq for SecretKey {}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretKey({} bytes, hidden)", self.0.len())
    }
}

/// What names a session to be cancelled: BackendKeyData and CancelRequest carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelKey {
    /// The number the server gave the session; for a pooler any 32 bits.
    pub process_id: i32,
    /// Proves that the asker was given the key.
    pub secret: SecretKey,
}

/// Equality of secrets, in constant time for equal lengths.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    verify_slices_are_equal(left, right).is_ok()
}
