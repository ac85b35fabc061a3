//! The two documents that the root key signs: which keys sign tokens, and which clients are revoked.
//!
//! Each has a number that only grows; whoever verifies keeps the last one on disk and takes no older one.

use crate::error::{DocumentError, TokenError};
use crate::ids::{ClientId, KeyId, NetworkId};
use crate::root::RootKey;
use crate::signed::{self, Kind};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The most keys in a ring: one that signs, one that is coming, and those that are still verified.
pub const MAX_KEYS: usize = 16;
/// The most entries in a revocation list. An entry may leave when every token made before it has expired.
pub const MAX_REVOKED: usize = 16_384;

/// Where a key is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    /// Published, so that every verifier knows it before it signs.
    Coming,
    /// Signs.
    Signing,
    /// Signs no more; its tokens still hold.
    Retired,
}

/// One key of the ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingKey {
    /// Its name. Always the hash of `public_key`.
    #[serde(rename = "kid")]
    pub id: KeyId,
    /// The Ed25519 key.
    #[serde(rename = "x", with = "key_text")]
    pub public_key: [u8; 32],
    /// Where it is in its life.
    pub state: KeyState,
    /// Since when, seconds since 1970; 0: from the beginning.
    #[serde(rename = "since", default, skip_serializing_if = "is_zero")]
    pub since_s: u64,
}

impl RingKey {
    /// An entry for a public key, from the beginning.
    #[must_use]
    pub fn new(public_key: [u8; 32], state: KeyState) -> Self {
        Self { id: KeyId::of(&public_key), public_key, state, since_s: 0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
fn is_zero(seconds: &u64) -> bool {
    *seconds == 0
}

/// Which keys sign the network's tokens and contracts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRing {
    #[serde(rename = "net")]
    network: NetworkId,
    #[serde(rename = "num")]
    number: u64,
    #[serde(rename = "iat")]
    issued_at_s: u64,
    keys: Vec<RingKey>,
}

impl KeyRing {
    /// A ring of these keys, to be signed.
    ///
    /// # Errors
    /// More than [`MAX_KEYS`].
    pub fn new(
        network: NetworkId,
        number: u64,
        issued_at_s: u64,
        keys: Vec<RingKey>,
    ) -> Result<Self, DocumentError> {
        let ring = Self { network, number, issued_at_s, keys };
        ring.check(network)?;
        Ok(ring)
    }

    /// Signs it.
    ///
    /// # Errors
    /// Not the root key of its network.
    pub fn sign(&self, root: &RootKey) -> Result<String, DocumentError> {
        sign(Kind::KeyRing, self, self.network, root)
    }

    /// Reads a ring that the root key of this network signed.
    ///
    /// # Errors
    /// See [`DocumentError`].
    pub fn verify(document: &str, network: NetworkId) -> Result<Self, DocumentError> {
        let ring: Self = open(Kind::KeyRing, document, network)?;
        ring.check(network)?;
        Ok(ring)
    }

    /// Takes a newer ring in place of this one. `false` if it is the same number.
    ///
    /// # Errors
    /// It is older, or for another network.
    pub fn replace(&mut self, offered: Self) -> Result<bool, DocumentError> {
        let newer = newer((self.network, self.number), (offered.network, offered.number))?;
        if newer {
            *self = offered;
        }
        Ok(newer)
    }

    /// The network it is for.
    #[must_use]
    pub const fn network(&self) -> NetworkId {
        self.network
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// When it was made, seconds since 1970.
    #[must_use]
    pub const fn issued_at_s(&self) -> u64 {
        self.issued_at_s
    }

    /// Its keys.
    #[must_use]
    pub fn keys(&self) -> &[RingKey] {
        &self.keys
    }

    /// The key that a token says it is signed by, if what that signed is believed at `now_ms`; 0: whenever it was signed.
    pub(crate) fn public_key(&self, kind: Kind, token: &str, now_ms: u64) -> Result<&[u8; 32], TokenError> {
        let id = signed::key_id(kind, token)?;
        let key = self.keys.iter().find(|key| key.id == id).ok_or(TokenError::UnknownKey(id))?;
        if key.is_over(now_ms) { Err(TokenError::Expired) } else { Ok(&key.public_key) }
    }

    fn check(&self, network: NetworkId) -> Result<(), DocumentError> {
        if self.network != network {
            return Err(DocumentError::OtherNetwork);
        }
        if self.keys.len() > MAX_KEYS {
            return Err(DocumentError::TooMany(MAX_KEYS));
        }
        if self.keys.iter().any(|key| key.id != KeyId::of(&key.public_key)) {
            return Err(DocumentError::Malformed);
        }
        Ok(())
    }
}

/// A client that is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// The client.
    #[serde(rename = "sub")]
    pub client: ClientId,
    /// Tokens made before this moment do not hold, seconds since 1970.
    #[serde(rename = "nbf")]
    pub before_s: u64,
}

/// Which clients are revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevocationList {
    network: NetworkId,
    number: u64,
    issued_at_s: u64,
    revoked: HashMap<ClientId, u64>,
}

/// How the list stands in its document.
#[derive(Serialize, Deserialize)]
struct RevocationText {
    #[serde(rename = "net")]
    network: NetworkId,
    #[serde(rename = "num")]
    number: u64,
    #[serde(rename = "iat")]
    issued_at_s: u64,
    revoked: Vec<Revoked>,
}

impl RevocationList {
    /// A list of these clients, to be signed.
    ///
    /// # Errors
    /// More than [`MAX_REVOKED`].
    pub fn new(
        network: NetworkId,
        number: u64,
        issued_at_s: u64,
        revoked: impl IntoIterator<Item = Revoked>,
    ) -> Result<Self, DocumentError> {
        let revoked: HashMap<_, _> =
            revoked.into_iter().map(|entry| (entry.client, entry.before_s)).collect();
        if revoked.len() > MAX_REVOKED {
            return Err(DocumentError::TooMany(MAX_REVOKED));
        }
        Ok(Self { network, number, issued_at_s, revoked })
    }

    /// Signs it.
    ///
    /// # Errors
    /// Not the root key of its network.
    pub fn sign(&self, root: &RootKey) -> Result<String, DocumentError> {
        let mut revoked: Vec<_> =
            self.revoked.iter().map(|(&client, &before_s)| Revoked { client, before_s }).collect();
        revoked.sort_by_key(|entry| entry.client);
        let text = RevocationText {
            network: self.network,
            number: self.number,
            issued_at_s: self.issued_at_s,
            revoked,
        };
        sign(Kind::Revocations, &text, self.network, root)
    }

    /// Reads a list that the root key of this network signed.
    ///
    /// # Errors
    /// See [`DocumentError`].
    pub fn verify(document: &str, network: NetworkId) -> Result<Self, DocumentError> {
        let text: RevocationText = open(Kind::Revocations, document, network)?;
        if text.network != network {
            return Err(DocumentError::OtherNetwork);
        }
        Self::new(network, text.number, text.issued_at_s, text.revoked)
    }

    /// Takes a newer list in place of this one. `false` if it is the same number.
    ///
    /// # Errors
    /// It is older, or for another network.
    pub fn replace(&mut self, offered: Self) -> Result<bool, DocumentError> {
        let newer = newer((self.network, self.number), (offered.network, offered.number))?;
        if newer {
            *self = offered;
        }
        Ok(newer)
    }

    /// Whether a token of this client, made at that second, is revoked.
    #[must_use]
    pub fn revokes(&self, client: ClientId, issued_at_s: u64) -> bool {
        self.revoked.get(&client).is_some_and(|&before_s| issued_at_s < before_s)
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// When it was made, seconds since 1970: how stale it is, is for the reader to judge.
    #[must_use]
    pub const fn issued_at_s(&self) -> u64 {
        self.issued_at_s
    }

    /// How many clients are on it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.revoked.len()
    }

    /// Whether nobody is on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.revoked.is_empty()
    }
}

fn sign(
    kind: Kind,
    claims: &impl Serialize,
    network: NetworkId,
    root: &RootKey,
) -> Result<String, DocumentError> {
    if root.network() != network {
        return Err(DocumentError::OtherNetwork);
    }
    root.signer().sign(kind, claims).map_err(|_| DocumentError::Malformed)
}

fn open<T: serde::de::DeserializeOwned>(
    kind: Kind,
    document: &str,
    network: NetworkId,
) -> Result<T, DocumentError> {
    let root_key = signed::carried_key(kind, document).map_err(|_| DocumentError::Malformed)?;
    if NetworkId::of_root_key(&root_key) != network {
        return Err(DocumentError::OtherNetwork);
    }
    signed::open(kind, document, &root_key).map_err(|error| match error {
        TokenError::Signature => DocumentError::Signature,
        _ => DocumentError::Malformed,
    })
}

fn newer(held: (NetworkId, u64), offered: (NetworkId, u64)) -> Result<bool, DocumentError> {
    if held.0 != offered.0 {
        return Err(DocumentError::OtherNetwork);
    }
    if offered.1 < held.1 {
        return Err(DocumentError::Older { held: held.1, offered: offered.1 });
    }
    Ok(offered.1 > held.1)
}

/// A public key in JSON: base64url.
mod key_text {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use serde::Deserialize as _;
    use std::borrow::Cow;

    pub(super) fn serialize<S: serde::Serializer>(key: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_URL_SAFE_NO_PAD.encode(key))
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u8; 32], D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let mut key = [0; 32];
        match BASE64_URL_SAFE_NO_PAD.decode_slice(text.as_ref(), &mut key) {
            Ok(32) => Ok(key),
            _ => Err(serde::de::Error::custom("a key is 32 bytes in base64url")),
        }
    }
}

#[cfg(test)]
mod tests;
