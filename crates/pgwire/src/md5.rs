//! The MD5 password method, both directions.
//!
//! Stored is `md5` and the hex of MD5(password, user); the answer to a salt is `md5` and the hex of
//! MD5(stored hex, salt). Broken by today's standards, and still what many servers and clients speak.

use std::fmt;

use md5::{Digest, Md5};

use crate::secret::same;

const PREFIX: &str = "md5";
const HEX_BYTES: usize = 32;

/// The answer to a salt: `md5` and 32 hex digits.
pub type Md5Answer = [u8; PREFIX.len() + HEX_BYTES];

/// A stored MD5 secret, without its prefix, never shown by `Debug`.
#[derive(Clone)]
pub struct Md5Secret([u8; HEX_BYTES]);

impl Md5Secret {
    /// Reads the form of `pg_authid`: `md5` and 32 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex: [u8; HEX_BYTES] = text.strip_prefix(PREFIX)?.as_bytes().try_into().ok()?;
        hex.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(hex))
    }

    /// From a plain password; the user's name is the salt.
    #[must_use]
    pub fn derive(password: &[u8], user: &str) -> Self {
        Self(hex_of(&[password, user.as_bytes()]))
    }

    /// The answer to a server's salt.
    #[must_use]
    pub fn answer(&self, salt: [u8; 4]) -> Md5Answer {
        let mut answer = [0; PREFIX.len() + HEX_BYTES];
        let (prefix, hex) = answer.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX.as_bytes());
        hex.copy_from_slice(&hex_of(&[&self.0, &salt]));
        answer
    }

    /// Whether a client's answer to the salt is right, compared in constant time.
    #[must_use]
    pub fn accepts(&self, answer: &[u8], salt: [u8; 4]) -> bool {
        same(&self.answer(salt), answer)
    }
}

/// Compares in constant time.
impl PartialEq for Md5Secret {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Eq for Md5Secret {}

impl fmt::Debug for Md5Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Md5Secret(hidden)")
    }
}

fn hex_of(parts: &[&[u8]]) -> [u8; HEX_BYTES] {
    let mut hasher = Md5::new();
    for part in parts {
        hasher.update(part);
    }
    let mut hex = [0; HEX_BYTES];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(hasher.finalize()) {
        pair.copy_from_slice(&[hex_digit(byte >> 4), hex_digit(byte & 15)]);
    }
    hex
}

fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

#[cfg(test)]
mod tests {
    use postgres_protocol::authentication::md5_hash;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stored_secret_is_the_md5_of_password_and_user() {
        let stored = Md5Secret::parse("md57561d9278ce28197a2111de89346a5e5").unwrap();
        assert!(stored == Md5Secret::derive(b"pencil", "ada"));
        assert!(stored != Md5Secret::derive(b"pencil", "eve"));
        assert_eq!(format!("{stored:?}"), "Md5Secret(hidden)");
    }

    #[test]
    fn only_md5_and_32_lower_case_hex_digits_are_a_secret() {
        let good = "md50123456789abcdef0123456789abcdef";
        assert!(Md5Secret::parse(good).is_some());
        for bad in
            ["", "md5", &good[..34], &format!("{good}0"), &good.to_uppercase(), &good.replace('f', "g")]
        {
            assert!(Md5Secret::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn an_answer_to_another_salt_or_cut_short_is_refused() {
        let secret = Md5Secret::derive(b"pencil", "ada");
        let answer = secret.answer(*b"salt");
        assert!(secret.accepts(&answer, *b"salt"));
        assert!(!secret.accepts(&answer, *b"tlas"));
        assert!(!secret.accepts(&answer[..34], *b"salt"));
        assert!(!secret.accepts(b"", *b"salt"));
    }

    proptest! {
        #[test]
        fn answers_are_those_of_another_library(user in "\\PC*", password: Vec<u8>, salt: [u8; 4]) {
            let theirs = md5_hash(user.as_bytes(), &password, salt);
            prop_assert_eq!(&Md5Secret::derive(&password, &user).answer(salt)[..], theirs.as_bytes());
        }
    }
}
