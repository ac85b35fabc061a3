//! The two keys of a client: Ed25519 to sign, X25519 to seal.

use crate::error::{KeyError, ParseError};
use crate::ids::{Thumbprint, sha256};
use aws_lc_rs::agreement::{PrivateKey, X25519};
use aws_lc_rs::rand;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes of the secret half of an identity, as kept in a file of mode 0600: the Ed25519 seed, then the X25519 secret.
pub const SECRET_LEN: usize = 64;

/// A client's keys, with their secrets. Debug shows the thumbprint only.
pub struct Identity {
    signing: Ed25519KeyPair,
    secret: [u8; SECRET_LEN],
    public: PublicIdentity,
}

impl Identity {
    /// New keys.
    ///
    /// # Errors
    /// The system gave no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let mut secret = [0; SECRET_LEN];
        rand::fill(&mut secret).map_err(|_| KeyError::NoRandomness)?;
        Self::from_secret(&secret)
    }

    /// The keys that [`Identity::secret`] gave.
    ///
    /// # Errors
    /// Another length.
    pub fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        let secret: [u8; SECRET_LEN] = secret.try_into().map_err(|_| KeyError::NotAKey)?;
        let (seed, seal) = secret.split_at(32);
        let signing = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::NotAKey)?;
        let seal = PrivateKey::from_private_key(&X25519, seal)
            .map_err(|_| KeyError::NotAKey)?
            .compute_public_key()
            .map_err(|_| KeyError::NotAKey)?;
        let mut keys = [0; 64];
        keys[..32].copy_from_slice(signing.public_key().as_ref());
        keys[32..].copy_from_slice(seal.as_ref());
        Ok(Self { signing, secret, public: PublicIdentity(keys) })
    }

    /// The secret half, to be kept in a file that only its owner may read.
    #[must_use]
    pub const fn secret(&self) -> &[u8; SECRET_LEN] {
        &self.secret
    }

    /// The X25519 secret, for the seal of streams.
    #[must_use]
    pub fn seal_secret(&self) -> &[u8] {
        &self.secret[32..]
    }

    /// The half that everybody may know.
    #[must_use]
    pub const fn public(&self) -> &PublicIdentity {
        &self.public
    }

    /// Signs bytes. Only for texts that begin with a label of their own: see `proof`.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.signing.sign(message).as_ref());
        signature
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Identity({})", self.public.thumbprint())
    }
}

/// The public half: the Ed25519 key, then the X25519 key. As text: base64url, 86 letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicIdentity([u8; 64]);

impl PublicIdentity {
    /// From the 64 bytes of a hello. Any bytes are taken: keys that are no points verify nothing and seal nothing.
    #[must_use]
    pub const fn from_bytes(keys: [u8; 64]) -> Self {
        Self(keys)
    }

    /// The 64 bytes, as they stand in a hello.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 64] {
        &self.0
    }

    /// The Ed25519 key.
    #[must_use]
    pub fn signing_key(&self) -> &[u8] {
        &self.0[..32]
    }

    /// The X25519 key, for the seal of streams.
    #[must_use]
    pub fn seal_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        key.copy_from_slice(&self.0[32..]);
        key
    }

    /// SHA-256 over both keys: what a token is bound to.
    #[must_use]
    pub fn thumbprint(&self) -> Thumbprint {
        Thumbprint(sha256(&[&self.0]))
    }

    /// Whether this identity signed the bytes.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.signing_key()).verify(message, signature).is_ok()
    }
}

impl fmt::Display for PublicIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for PublicIdentity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut keys = [0; 64];
        match BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut keys) {
            Ok(64) => Ok(Self(keys)),
            _ => Err(ParseError::Identity),
        }
    }
}

impl Serialize for PublicIdentity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicIdentity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_back_from_its_secret() {
        let identity = Identity::generate().unwrap();
        let again = Identity::from_secret(identity.secret()).unwrap();
        assert_eq!(again.public(), identity.public());
        assert_ne!(identity.public(), Identity::generate().unwrap().public());
        assert_eq!(Identity::from_secret(&[1; 63]).unwrap_err(), KeyError::NotAKey);
    }

    #[test]
    fn the_public_keys_are_those_of_the_rfcs() {
        // RFC 8032 §7.1 test 1; RFC 7748 §5.2, the first iteration.
        let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let mut nine = [0; 32];
        nine[0] = 9;
        let identity = Identity::from_secret(&[seed, nine.to_vec()].concat()).unwrap();
        let public = identity.public();
        assert_eq!(
            public.signing_key(),
            hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
        );
        assert_eq!(
            public.seal_key(),
            *hex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079")
        );
        assert_eq!(identity.seal_secret().len(), 32);
    }

    #[test]
    fn no_secret_is_shown() {
        let identity = Identity::from_secret(&[0x41; 64]).unwrap();
        let shown = format!("{identity:?}");
        assert!(!shown.contains("AAAA") && !shown.contains("65, 65"), "{shown}");
    }

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }
}
