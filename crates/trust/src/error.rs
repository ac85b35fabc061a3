//! What can be wrong with a name, a key, a token, a document, a certificate.

use crate::ids::KeyId;

/// Text or bytes that are not what they claim to be. The sender's fault; sending the same again fails again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not the 52 letters of a network's name.
    #[error("a network's name is 52 letters of a-z and 2-7")]
    NetworkId,
    /// Not a hash in base64url of the length expected.
    #[error("not a hash of the expected length in base64url")]
    Hash,
    /// Not a UUID.
    #[error("not a UUID")]
    Id,
    /// Not a role of a client.
    #[error("a client's role is provider, app or proxy")]
    Role,
    /// Keys of another length, or no points of their curves.
    #[error("not the keys of an identity")]
    Identity,
    /// Not a join link.
    #[error("a join link reads holdfast://HOST:PORT/NETWORK")]
    JoinLink,
    /// Not a join code.
    #[error("a join code is 20 letters and digits, as in ABCDE-FGHJK-MNPQR-STVWX")]
    JoinCode,
    /// Not the proof of a request.
    #[error("the proof of a request is a time and a signature")]
    Proof,
}

/// A secret key that cannot be made or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The system gave no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// The bytes are no such key: another length, or damaged.
    #[error("not a secret key of this kind")]
    NotAKey,
}

/// A token or contract that does not hold. `label` is the bounded kind for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not three parts of base64url and JSON, too long, another algorithm or kind. Final.
    #[error("not a token of this kind")]
    Malformed,
    /// No key of that name in the ring: it may be newer than the ring. Read the ring again, at most once an interval.
    #[error("signed by a key that is not known ({0})")]
    UnknownKey(KeyId),
    /// The signature does not hold. Final.
    #[error("the signature does not hold")]
    Signature,
    /// Made for another network. Final.
    #[error("made for another network")]
    OtherNetwork,
    /// Expired: get a fresh one, then try again.
    #[error("expired")]
    Expired,
}

impl TokenError {
    /// The bounded kind, as a metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownKey(_) => "unknown_key",
            Self::Signature => "signature",
            Self::OtherNetwork => "other_network",
            Self::Expired => "expired",
        }
    }
}

/// A key ring or revocation list that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It does not parse, or breaks a bound.
    #[error("not a document of this kind")]
    Malformed,
    /// Not signed by the network's root key.
    #[error("not signed by the network's root key")]
    Signature,
    /// For another network.
    #[error("made for another network")]
    OtherNetwork,
    /// Its number is below that of the one at hand: an old one was replayed.
    #[error("number {offered} is below {held}, which is known already")]
    Older {
        /// The number of the document at hand.
        held: u64,
        /// The number of the one offered.
        offered: u64,
    },
    /// More entries than a document may have.
    #[error("more than {0} entries")]
    TooMany(usize),
}

/// A certificate that cannot be made or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The key is not usable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Making it failed.
    #[error("the certificate cannot be made: {0}")]
    Making(String),
    /// The PEM text has no such item.
    #[error("no {0} in the PEM text")]
    Pem(&'static str),
    /// The TLS library refuses key or chain.
    #[error("TLS refuses it: {0}")]
    Tls(String),
    /// Whoever shows it is not a relay of this network.
    #[error("not a relay of this network: {0}")]
    Stranger(String),
    /// A name or address that cannot stand in a certificate.
    #[error("'{0}' is neither a DNS name nor an IP address")]
    Name(String),
}
