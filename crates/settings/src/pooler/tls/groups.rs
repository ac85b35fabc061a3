//! Groups of the key exchange, by the names of OpenSSL and of the standards.

use super::super::value::Refusal;
use super::{unknown, words};

/// A group of the key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyExchange {
    /// X25519.
    X25519,
    /// X25519 together with ML-KEM-768, against quantum computers to come.
    X25519MlKem768,
    /// The curve P-256.
    P256,
    /// P-256 together with ML-KEM-768.
    P256MlKem768,
    /// The curve P-384.
    P384,
}

const NAMES: [(&str, KeyExchange); 9] = [
    ("X25519", KeyExchange::X25519),
    ("prime256v1", KeyExchange::P256),
    ("secp256r1", KeyExchange::P256),
    ("P-256", KeyExchange::P256),
    ("secp384r1", KeyExchange::P384),
    ("P-384", KeyExchange::P384),
    ("X25519MLKEM768", KeyExchange::X25519MlKem768),
    ("SecP256r1MLKEM768", KeyExchange::P256MlKem768),
    ("auto", KeyExchange::X25519),
];

/// Which groups may be used, the liked ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyExchangeGroups {
    pub(super) text: String,
    /// None: all, in the usual order.
    pub groups: Option<Vec<KeyExchange>>,
}

impl Default for KeyExchangeGroups {
    fn default() -> Self {
        Self { text: "auto".to_owned(), groups: None }
    }
}

impl KeyExchangeGroups {
    /// `auto`, or names with colons or commas between.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        if text.is_empty() || text.eq_ignore_ascii_case("auto") {
            return Ok(Self { text: text.to_owned(), groups: None });
        }
        let mut groups = Vec::new();
        for word in words(text) {
            let group = NAMES[..NAMES.len() - 1].iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            let Some(&(_, group)) = group else {
                return Err(unknown(word, NAMES.map(|(name, _)| name)));
            };
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        Ok(Self { text: text.to_owned(), groups: Some(groups) })
    }
}
