//! Names: of the network, of what lives in it, and of keys.

use crate::base32;
use crate::error::ParseError;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The name of a network: the SHA-256 of its root Ed25519 key. As text: base32 in lower case, 52 letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkId(pub [u8; 32]);

impl NetworkId {
    /// The name of the network whose root key is this one.
    #[must_use]
    pub fn of_root_key(public_key: &[u8; 32]) -> Self {
        Self(sha256(&[public_key]))
    }
}

impl fmt::Display for NetworkId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&base32::encode(&self.0, base32::RFC4648))
    }
}

impl FromStr for NetworkId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        base32::decode(text.as_bytes(), base32::rfc4648).map(Self).ok_or(ParseError::NetworkId)
    }
}

/// The SHA-256 of the two public keys of an identity. As text: base64url, 43 letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thumbprint(pub [u8; 32]);

/// The name of a key that signs tokens: the first 16 bytes of the SHA-256 of its public half. As text: base64url, 22 letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 16]);

impl KeyId {
    /// The name of a public key.
    #[must_use]
    pub fn of(public_key: &[u8; 32]) -> Self {
        let hash = sha256(&[public_key]);
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }
}

/// The SHA-256 of a pool's bytes, which is its name. As text: base64url, 43 letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHash(pub [u8; 32]);

impl BlobHash {
    /// The name of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha256(&[bytes]))
    }
}

/// Display, reading, and JSON as text, for hashes in base64url.
macro_rules! base64_hash {
    ($name:ident, $len:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.0))
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let mut bytes = [0; $len];
                match BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
                    Ok($len) => Ok(Self(bytes)),
                    _ => Err(ParseError::Hash),
                }
            }
        }
    };
}

base64_hash!(Thumbprint, 32);
base64_hash!(KeyId, 16);
base64_hash!(BlobHash, 32);

/// Debug as Display, and JSON as the text of Display.
macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

as_text!(NetworkId, Thumbprint, KeyId, BlobHash);

/// Newtypes over a UUID: as text in the usual form, as JSON a string.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new one, random.
            #[must_use]
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }

            /// A new one that sorts by time (RFC 9562, version 7), made at `now_ms` since 1970.
            #[must_use]
            pub fn at(now_ms: u64) -> Self {
                let mut random = [0; 10];
                // The last bytes of a random UUID: six bits of its first ones are fixed.
                random[2..].copy_from_slice(&Uuid::new_v4().as_bytes()[8..]);
                random[..2].copy_from_slice(&Uuid::new_v4().as_bytes()[..2]);
                Self(uuid::Builder::from_unix_timestamp_millis(now_ms, &random).into_uuid())
            }

            /// Its 16 bytes, as they stand in frames.
            #[must_use]
            pub fn bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }

            /// From 16 bytes of a frame.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, out)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                Uuid::try_parse(text).map(Self).map_err(|_| ParseError::Id)
            }
        }
    )*};
}

ids! {
    /// A customer or operator who holds grants and pays.
    AccountId;
    /// A provider, an app, or a window of a proxy: whoever has one identity.
    ClientId;
    /// A block of bytes, held on grants, that pays for streams.
    ContractId;
    /// Bytes that an account may use.
    GrantId;
    /// A relay.
    RelayId;
    /// What the asker calls one request, so that a replay gets the first answer.
    RequestId;
}

/// What a client is in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Carries streams to the world.
    Provider,
    /// Opens streams for one person.
    App,
    /// Opens streams for the accounts of a hosted proxy.
    Proxy,
}

impl Role {
    /// The name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::App => "app",
            Self::Proxy => "proxy",
        }
    }

    /// The number in frames (`docs/protocol.md` §3).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Provider => 1,
            Self::App => 2,
            Self::Proxy => 3,
        }
    }

    /// From the number in a frame.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Provider),
            2 => Some(Self::App),
            3 => Some(Self::Proxy),
            _ => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "provider" => Ok(Self::Provider),
            "app" => Ok(Self::App),
            "proxy" => Ok(Self::Proxy),
            _ => Err(ParseError::Role),
        }
    }
}

/// SHA-256 over the parts, one after the other.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

#[cfg(test)]
mod tests;
