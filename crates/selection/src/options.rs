//! The options that a customer writes into a user name: `account[-key-value]*`.
//!
//! ```text
//! acme-country-de,at-session-cart7-ttl-30-sticky-hard
//! ```
//!
//! An unknown key or a bad value is refused with its place, never ignored: a stream that leaves through another
//! country than the one asked for is worse than none.

mod error;
#[cfg(test)]
mod tests;
mod value;

use std::time::Duration;

use uuid::Uuid;

use crate::candidate::Country;

pub use error::{UsernameError, UsernameProblem};

/// The longest user name that is read at all: what one byte of length can say (RFC 1929).
pub const MAX_USERNAME_BYTES: usize = 255;

/// The longest account name.
pub const MAX_ACCOUNT_BYTES: usize = 32;

/// The longest name of a session.
pub const MAX_SESSION_BYTES: usize = 64;

/// The most values that one key may list.
pub const MAX_VALUES: usize = 16;

/// The greatest life of a session.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The life of a session that says nothing else.
pub const DEFAULT_TTL: Duration = Duration::from_secs(10 * 60);

/// What becomes of a session whose provider is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stickiness {
    /// It goes on with another provider.
    #[default]
    Soft,
    /// Its streams are refused until the session ends.
    Hard,
}

/// Where the target's name is resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameResolution {
    /// At the provider.
    #[default]
    Exit,
    /// At the proxy.
    Proxy,
}

/// The address family in which the target is to be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Whatever the provider reaches first.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// A named session: its streams leave through the same provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its name, unique within the account.
    pub name: Box<str>,
    /// How long it lives from its first stream.
    pub ttl: Duration,
    /// What becomes of it without its provider.
    pub stickiness: Stickiness,
}

/// What is asked of the provider and of the way there. The default asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Any of these countries; empty for all.
    pub countries: Vec<Country>,
    /// Any of these providers; empty for all.
    pub providers: Vec<Uuid>,
    /// The session, if one is named.
    pub session: Option<Session>,
    /// Where names are resolved.
    pub resolution: NameResolution,
    /// The address family of the target.
    pub family: Family,
}

/// A user name, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username<'name> {
    /// The account, `[a-z0-9_]{1,32}`.
    pub account: &'name str,
    /// The options behind it, over the defaults.
    pub options: Options,
}

impl<'name> Username<'name> {
    /// Takes a user name apart. What it does not say is as in `defaults` (of the account, or of the port).
    ///
    /// # Errors
    ///
    /// If it does not follow the grammar: with the reason, and where.
    pub fn parse(name: &'name str, defaults: &Options) -> Result<Self, UsernameError> {
        if name.len() > MAX_USERNAME_BYTES {
            return Err(UsernameProblem::TooLong.at(MAX_USERNAME_BYTES));
        }
        let (account, options) = match name.split_once('-') {
            Some((account, options)) => (account, Some(options)),
            None => (name, None),
        };
        value::check_account(account)?;
        let mut parsed = Parsed::default();
        let mut at = account.len() + 1;
        let mut parts = options.into_iter().flat_map(|options| options.split('-'));
        while let Some(key) = parts.next() {
            let value_at = at + key.len() + 1;
            let value = parts.next().ok_or_else(|| UsernameProblem::NoValue(key.into()).at(at))?;
            parsed.take(Key::named(key, at)?, at, value, value_at)?;
            at = value_at + value.len() + 1;
        }
        Ok(Self { account, options: parsed.over(defaults)? })
    }
}

impl Options {
    /// Reads a default selection: the part of a user name behind the account, `key-value[-key-value]*`, or nothing.
    ///
    /// # Errors
    ///
    /// If it does not follow the grammar. The place counts from the start of `text`.
    pub fn parse(text: &str) -> Result<Self, UsernameError> {
        Self::default().overridden_by(text)
    }

    /// These, but for what a selection in the same form says otherwise.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`].
    pub fn overridden_by(&self, text: &str) -> Result<Self, UsernameError> {
        if text.is_empty() {
            return Ok(self.clone());
        }
        match Username::parse(&format!("x-{text}"), self) {
            Ok(username) => Ok(username.options),
            Err(error) => Err(error.problem.at(error.at.saturating_sub(2))),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Country,
    Session,
    Ttl,
    Sticky,
    Provider,
    Dns,
    Ip,
}

impl Key {
    fn named(name: &str, at: usize) -> Result<Self, UsernameError> {
        Ok(match name {
            "country" | "cc" => Self::Country,
            "session" => Self::Session,
            "ttl" | "sesstime" | "lifetime" => Self::Ttl,
            "sticky" => Self::Sticky,
            "provider" => Self::Provider,
            "dns" => Self::Dns,
            "ip" => Self::Ip,
            _ => return Err(UsernameProblem::UnknownKey(name.into()).at(at)),
        })
    }
}

/// What a user name has said so far, with the place where it was said.
#[derive(Default)]
struct Parsed<'name> {
    countries: Option<Vec<Country>>,
    providers: Option<Vec<Uuid>>,
    session: Option<&'name str>,
    ttl: Option<(Duration, usize)>,
    stickiness: Option<(Stickiness, usize)>,
    resolution: Option<NameResolution>,
    family: Option<Family>,
}

impl<'name> Parsed<'name> {
    fn take(&mut self, key: Key, key_at: usize, text: &'name str, at: usize) -> Result<(), UsernameError> {
        if text.is_empty() {
            return Err(UsernameProblem::EmptyValue.at(at));
        }
        let twice = match key {
            Key::Country => self.countries.replace(value::countries(text, at)?).is_some(),
            Key::Session => self.session.replace(value::session(text, at)?).is_some(),
            Key::Ttl => self.ttl.replace((value::ttl(text, at)?, key_at)).is_some(),
            Key::Sticky => self.stickiness.replace((value::stickiness(text, at)?, key_at)).is_some(),
            Key::Provider => self.providers.replace(value::providers(text, at)?).is_some(),
            Key::Dns => self.resolution.replace(value::resolution(text, at)?).is_some(),
            Key::Ip => self.family.replace(value::family(text, at)?).is_some(),
        };
        if twice { Err(UsernameProblem::Twice.at(key_at)) } else { Ok(()) }
    }

    fn over(self, defaults: &Options) -> Result<Options, UsernameError> {
        let named = self.session.map(Into::into);
        let session = match named.or_else(|| defaults.session.as_ref().map(|session| session.name.clone())) {
            Some(name) => {
                let default = defaults.session.as_ref();
                let ttl = self.ttl.map(|(ttl, _)| ttl).or_else(|| default.map(|session| session.ttl));
                let stickiness = self.stickiness.map(|(stickiness, _)| stickiness);
                let stickiness = stickiness.or_else(|| default.map(|session| session.stickiness));
                let ttl = ttl.unwrap_or(DEFAULT_TTL);
                Some(Session { name, ttl, stickiness: stickiness.unwrap_or_default() })
            }
            None => {
                let at = self.ttl.map(|(_, at)| at).or_else(|| self.stickiness.map(|(_, at)| at));
                if let Some(at) = at {
                    return Err(UsernameProblem::NoSession.at(at));
                }
                None
            }
        };
        Ok(Options {
            countries: self.countries.unwrap_or_else(|| defaults.countries.clone()),
            providers: self.providers.unwrap_or_else(|| defaults.providers.clone()),
            session,
            resolution: self.resolution.unwrap_or(defaults.resolution),
            family: self.family.unwrap_or(defaults.family),
        })
    }
}
