//! What is wrong with a user name, and where.

use thiserror::Error;

use super::{MAX_ACCOUNT_BYTES, MAX_SESSION_BYTES, MAX_USERNAME_BYTES, MAX_VALUES};

/// A user name that does not follow the grammar. The customer's to mend; trying again is of no use.
///
/// The text repeats only what stood in the user name, cut short.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("user name, position {}: {problem}", at + 1)]
pub struct UsernameError {
    /// Bytes before the place that is wrong.
    pub at: usize,
    /// What is wrong there.
    pub problem: UsernameProblem,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UsernameProblem {
    /// More bytes than are read.
    #[error("longer than {MAX_USERNAME_BYTES} bytes")]
    TooLong,
    /// No account, one that is too long, or a character that accounts do not have.
    #[error("an account has 1 to {MAX_ACCOUNT_BYTES} of the characters a-z, 0-9 and _")]
    Account,
    /// A key that is not known.
    #[error("unknown option `{0}`; known are country, session, ttl, sticky, provider, dns and ip")]
    UnknownKey(Excerpt),
    /// The name ends behind a key.
    #[error("option `{0}` has no value")]
    NoValue(Excerpt),
    /// Nothing stands where a value should.
    #[error("empty value")]
    EmptyValue,
    /// A key came twice.
    #[error("this option comes twice")]
    Twice,
    /// A list is too long.
    #[error("more than {MAX_VALUES} values")]
    TooManyValues,
    /// Not a country.
    #[error("a country is two letters (ISO 3166-1), several are separated by commas")]
    Country,
    /// Not a session's name.
    #[error("a session has 1 to {MAX_SESSION_BYTES} of the characters A-Z, a-z, 0-9 and _")]
    Session,
    /// Not a life.
    #[error("ttl is a whole number of minutes, 1 to 1440")]
    Ttl,
    /// Neither soft nor hard.
    #[error("sticky is `soft` or `hard`")]
    Sticky,
    /// Not a provider.
    #[error("a provider is its identifier of 32 hexadecimal digits, without hyphens")]
    Provider,
    /// Neither exit nor proxy.
    #[error("dns is `exit` or `proxy`")]
    Dns,
    /// Neither 4 nor 6.
    #[error("ip is `4` or `6`")]
    Ip,
    /// A life or a stickiness of nothing.
    #[error("ttl and sticky need a session")]
    NoSession,
}

impl UsernameProblem {
    pub(crate) const fn at(self, at: usize) -> UsernameError {
        UsernameError { at, problem: self }
    }
}

/// The longest part of a user name that a text repeats, in characters.
pub(super) const MAX_EXCERPT_CHARACTERS: usize = 20;

/// A part of a user name, cut short and without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Excerpt(Box<str>);

impl From<&str> for Excerpt {
    fn from(text: &str) -> Self {
        let mut shown: String =
            text.chars().take(MAX_EXCERPT_CHARACTERS).map(|c| if c.is_control() { '?' } else { c }).collect();
        if text.chars().nth(MAX_EXCERPT_CHARACTERS).is_some() {
            shown.push('…');
        }
        Self(shown.into())
    }
}
