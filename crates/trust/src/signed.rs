//! Signed JSON in the compact form of RFC 7515, with one algorithm, EdDSA, and a kind in `typ` (RFC 8725 §3.1, §3.11).

use crate::error::{KeyError, TokenError};
use crate::ids::KeyId;
use aws_lc_rs::rand;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::fmt;

/// The longest token or contract that is looked at, in bytes (`docs/protocol.md` §3, §4).
pub const MAX_TOKEN_LEN: usize = 2_048;
/// The longest key ring or revocation list that is looked at, in bytes.
pub const MAX_DOCUMENT_LEN: usize = 4 * 1_024 * 1_024;
/// The longest manifest of pools that is looked at, in bytes: [`crate::MOST_MANIFEST_POOLS`] of them, and room.
pub const MAX_MANIFEST_LEN: usize = 256 * 1_024;

/// What a signed text is. A text of one kind is never taken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Client,
    Contract,
    KeyRing,
    Revocations,
    Pools,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Client => "holdfast-client+jwt",
            Self::Contract => "holdfast-contract+jwt",
            Self::KeyRing => "holdfast-keys+jwt",
            Self::Revocations => "holdfast-revocations+jwt",
            Self::Pools => "holdfast-pools+jwt",
        }
    }

    const fn longest(self) -> usize {
        match self {
            Self::Client | Self::Contract => MAX_TOKEN_LEN,
            Self::KeyRing | Self::Revocations => MAX_DOCUMENT_LEN,
            Self::Pools => MAX_MANIFEST_LEN,
        }
    }
}

/// An Ed25519 key that signs tokens and contracts. It hangs on nothing: no certificate's renewal touches it.
pub struct TokenKey {
    seed: [u8; 32],
    public: [u8; 32],
    signer: EncodingKey,
}

impl TokenKey {
    /// A new key.
    ///
    /// # Errors
    /// The system gave no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        rand::fill(&mut seed).map_err(|_| KeyError::NoRandomness)?;
        Self::from_seed(&seed)
    }

    /// The key that [`TokenKey::seed`] gave.
    ///
    /// # Errors
    /// Another length.
    pub fn from_seed(seed: &[u8]) -> Result<Self, KeyError> {
        let seed: [u8; 32] = seed.try_into().map_err(|_| KeyError::NotAKey)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::NotAKey)?;
        let document = pair.to_pkcs8().map_err(|_| KeyError::NotAKey)?;
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        Ok(Self { seed, public, signer: EncodingKey::from_ed_der(document.as_ref()) })
    }

    /// The secret, to be kept where only the api can read it.
    #[must_use]
    pub const fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The public half.
    #[must_use]
    pub const fn public_key(&self) -> &[u8; 32] {
        &self.public
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId::of(&self.public)
    }

    /// Signs one text. A token names its key; a document carries it, since its hash is the network's name.
    pub(crate) fn sign(&self, kind: Kind, claims: &impl Serialize) -> Result<String, TokenError> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(kind.name().to_owned());
        header.kid = Some(match kind {
            Kind::Client | Kind::Contract | Kind::Pools => self.id().to_string(),
            Kind::KeyRing | Kind::Revocations => BASE64_URL_SAFE_NO_PAD.encode(self.public),
        });
        let text = jsonwebtoken::encode(&header, claims, &self.signer).map_err(|_| TokenError::Malformed)?;
        if text.len() <= kind.longest() { Ok(text) } else { Err(TokenError::Malformed) }
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TokenKey({})", self.id())
    }
}

/// Which key a token says it is signed by. Nothing of it is believed yet.
pub(crate) fn key_id(kind: Kind, text: &str) -> Result<KeyId, TokenError> {
    named_key(kind, text)?.parse().map_err(|_| TokenError::Malformed)
}

/// The key that a document says it is signed by. Nothing of it is believed yet.
pub(crate) fn carried_key(kind: Kind, text: &str) -> Result<[u8; 32], TokenError> {
    let mut key = [0; 32];
    match BASE64_URL_SAFE_NO_PAD.decode_slice(named_key(kind, text)?, &mut key) {
        Ok(32) => Ok(key),
        _ => Err(TokenError::Malformed),
    }
}

fn named_key(kind: Kind, text: &str) -> Result<String, TokenError> {
    if text.len() > kind.longest() {
        return Err(TokenError::Malformed);
    }
    let header = jsonwebtoken::decode_header(text).map_err(|_| TokenError::Malformed)?;
    // A header that asks for more than we know (RFC 7515 §4.1.11) is not ours.
    let ours =
        header.alg == Algorithm::EdDSA && header.typ.as_deref() == Some(kind.name()) && header.crit.is_none();
    header.kid.filter(|_| ours).ok_or(TokenError::Malformed)
}

/// Checks the signature and reads the claims. Times are for the caller to check: it has the clock.
pub(crate) fn open<T: DeserializeOwned>(
    kind: Kind,
    text: &str,
    public_key: &[u8; 32],
) -> Result<T, TokenError> {
    named_key(kind, text)?;
    let mut rules = Validation::new(Algorithm::EdDSA);
    rules.validate_exp = false;
    rules.validate_aud = false;
    rules.required_spec_claims = HashSet::new();
    let opened = jsonwebtoken::decode(text, &DecodingKey::from_ed_der(public_key), &rules);
    opened.map(|token| token.claims).map_err(|error| match error.kind() {
        ErrorKind::InvalidSignature => TokenError::Signature,
        _ => TokenError::Malformed,
    })
}
