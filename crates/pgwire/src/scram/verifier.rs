//! What a server stores of a password instead of the password.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Key, MAX_ITERATIONS, MECHANISM, ScramError, ScramKeys, decode_key, hmac_of};
use crate::secret::same;

/// Longest salt accepted, in bytes; PostgreSQL makes 16.
const MAX_SALT_BYTES: usize = 256;
/// Salt of a mock verifier, in bytes, as PostgreSQL's.
const MOCK_SALT_BYTES: usize = 16;

/// A SCRAM-SHA-256 verifier, as in `pg_authid`. With it a client is checked without costly work.
///
/// `Debug` hides it: whoever has it can pretend to be the server, and can guess passwords offline.
#[derive(Clone)]
pub struct Verifier {
    iterations: u32,
    salt: Box<[u8]>,
    stored_key: Key,
    server_key: Key,
    /// False for a user that does not exist: every proof fails.
    genuine: bool,
}

/// A text that is not a SCRAM-SHA-256 verifier. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a SCRAM-SHA-256 verifier, expected SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>: {0}"
)]
pub struct VerifierError(&'static str);

impl Verifier {
    /// From a password. **Costly**: `iterations` rounds of HMAC, 4096 take about a millisecond of one core.
    ///
    /// # Errors
    /// Iterations outside 1 to [`MAX_ITERATIONS`], or a salt that is empty or longer than 256 bytes.
    pub fn derive(password: &[u8], salt: &[u8], iterations: u32) -> Result<Self, ScramError> {
        if salt.is_empty() || salt.len() > MAX_SALT_BYTES {
            return Err(ScramError::Malformed("salt"));
        }
        let keys = ScramKeys::derive(password, salt, iterations)?;
        Ok(Self {
            iterations,
            salt: salt.into(),
            stored_key: keys.stored_key(),
            server_key: keys.server_key,
            genuine: true,
        })
    }

    /// Whether a plain password is the right one; gives its keys if so. **Costly** as [`Verifier::derive`].
    ///
    /// # Errors
    /// The verifier has more than [`MAX_ITERATIONS`].
    pub fn check_password(&self, password: &[u8]) -> Result<Option<ScramKeys>, ScramError> {
        let keys = ScramKeys::derive(password, &self.salt, self.iterations)?;
        let right = same(&keys.stored_key(), &self.stored_key) & same(&keys.server_key, &self.server_key);
        Ok((right && self.genuine).then_some(keys))
    }

    /// Rounds of HMAC.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// The salt, which is shown to any client that asks to log in.
    #[must_use]
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    pub(super) fn stored_key(&self) -> &Key {
        &self.stored_key
    }

    pub(super) fn server_key(&self) -> &Key {
        &self.server_key
    }

    pub(super) fn is_genuine(&self) -> bool {
        self.genuine
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix(MECHANISM).and_then(|rest| rest.strip_prefix('$'));
        let (parameters, keys) = rest.ok_or("prefix")?.split_once('$').ok_or("no keys")?;
        let (iterations, salt) = parameters.split_once(':').ok_or("no salt")?;
        let (stored_key, server_key) = keys.split_once(':').ok_or("no server key")?;
        let digits_only = iterations.bytes().all(|byte| byte.is_ascii_digit());
        let iterations =
            iterations.parse().ok().filter(|count| digits_only && (1..=i32::MAX as u32).contains(count));
        let salt = STANDARD.decode(salt).ok().filter(|salt| (1..=MAX_SALT_BYTES).contains(&salt.len()));
        Ok(Self {
            iterations: iterations.ok_or("iterations")?,
            salt: salt.ok_or("salt")?.into(),
            stored_key: decode_key(stored_key.as_bytes()).ok_or("stored key")?,
            server_key: decode_key(server_key.as_bytes()).ok_or("server key")?,
            genuine: true,
        })
    }
}

impl FromStr for Verifier {
    type Err = VerifierError;

    fn from_str(text: &str) -> Result<Self, VerifierError> {
        Self::parse(text).map_err(VerifierError)
    }
}

/// The form of `pg_authid`; a secret, for files that hold secrets only.
impl fmt::Display for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { iterations, salt, stored_key, server_key, .. } = self;
        let [salt, stored_key, server_key] =
            [&**salt, stored_key, server_key].map(|bytes| STANDARD.encode(bytes));
        write!(formatter, "{MECHANISM}${iterations}:{salt}${stored_key}:{server_key}")
    }
}

/// Compares in constant time.
impl PartialEq for Verifier {
    fn eq(&self, other: &Self) -> bool {
        self.iterations == other.iterations
            && self.salt == other.salt
            && self.genuine == other.genuine
            && (same(&self.stored_key, &other.stored_key) & same(&self.server_key, &other.server_key))
    }
}

impl Eq for Verifier {}

impl fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Verifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// Makes verifiers for users that do not exist, so that asking for one looks like a wrong password.
///
/// A user gets the same salt each time as long as the secret is the same: keep one per process.
#[derive(Clone)]
pub struct MockSecret {
    secret: [u8; 32],
    iterations: u32,
}

impl MockSecret {
    /// `secret` is random; `iterations` are those that real users of this place have.
    #[must_use]
    pub fn new(secret: [u8; 32], iterations: u32) -> Self {
        Self { secret, iterations: iterations.clamp(1, MAX_ITERATIONS) }
    }

    /// A verifier that no password fits. Cheap.
    #[must_use]
    pub fn verifier(&self, user: &str) -> Verifier {
        let from = |purpose: &[u8]| hmac_of(&self.secret, &[purpose, user.as_bytes()]);
        let salt = from(b"salt of ");
        Verifier {
            iterations: self.iterations,
            salt: salt.get(..MOCK_SALT_BYTES).unwrap_or(&salt).into(),
            stored_key: from(b"stored key of "),
            server_key: from(b"server key of "),
            genuine: false,
        }
    }
}

impl fmt::Debug for MockSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MockSecret(hidden)")
    }
}
