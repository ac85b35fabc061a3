//! What is stored of a user's password.

use std::sync::Arc;

use super::{LoginError, Method};
use crate::md5::Md5Secret;
use crate::scram::{ScramKeys, Verifier};
use crate::secret::{Password, same};

/// A stored secret of a user. `Debug` hides it; cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginSecret {
    /// The password itself. An empty one never logs anyone in.
    Plain(Password),
    /// Its MD5.
    Md5(Md5Secret),
    /// Its SCRAM-SHA-256 verifier.
    Scram(Arc<Verifier>),
}

impl LoginSecret {
    /// Tells the kind of a stored text as PostgreSQL does: what is neither an MD5 secret nor a verifier is a
    /// plain password.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if let Some(secret) = Md5Secret::parse(text) {
            return Self::Md5(secret);
        }
        match text.parse() {
            Ok(verifier) => Self::Scram(Arc::new(verifier)),
            Err(_) => Self::Plain(Password::new(text)),
        }
    }

    pub(super) fn is_empty_password(&self) -> bool {
        matches!(self, Self::Plain(password) if password.is_empty())
    }

    /// Compares with a password that came readable; `None` if it is wrong.
    pub(super) fn check_plain(&self, user: &str, password: &[u8]) -> Result<Option<Right>, LoginError> {
        let right = match self {
            Self::Plain(stored) => same(stored.as_bytes(), password),
            Self::Md5(stored) => *stored == Md5Secret::derive(password, user),
            Self::Scram(verifier) => {
                let keys = verifier.check_password(password)?;
                return Ok(keys.map(|keys| Right { keys: Some(keys) }));
            }
        };
        Ok(right.then_some(Right { keys: None }))
    }
}

/// The password was right; with a verifier its keys are known too.
pub(super) struct Right {
    pub(super) keys: Option<ScramKeys>,
}

/// Whether the caller must put [`LoginSecret::Scram`] with [`Verifier::derive`] in place of this secret before
/// [`super::ClientLogin::start`]. That is costly and belongs off the path of traffic; keep the result.
#[must_use]
pub fn needs_verifier(method: Method, secret: &LoginSecret) -> bool {
    method == Method::Scram && matches!(secret, LoginSecret::Plain(password) if !password.is_empty())
}
