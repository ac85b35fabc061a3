//! The values of the options, one function each.

use std::time::Duration;

use uuid::Uuid;

use super::{
    Family, MAX_ACCOUNT_BYTES, MAX_SESSION_BYTES, MAX_TTL, MAX_VALUES, NameResolution, Stickiness,
    UsernameError, UsernameProblem,
};
use crate::candidate::Country;

/// Digits of a provider's identifier, as it stands in a user name.
const PROVIDER_DIGITS: usize = 32;

pub(super) fn check_account(name: &str) -> Result<(), UsernameError> {
    let bad = |byte: u8| !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    if let Some(at) = name.bytes().position(bad) {
        return Err(UsernameProblem::Account.at(at));
    }
    match name.len() {
        0 => Err(UsernameProblem::Account.at(0)),
        1..=MAX_ACCOUNT_BYTES => Ok(()),
        _ => Err(UsernameProblem::Account.at(MAX_ACCOUNT_BYTES)),
    }
}

pub(super) fn countries(text: &str, at: usize) -> Result<Vec<Country>, UsernameError> {
    list(text, at, |text| Country::parse(text).ok_or(UsernameProblem::Country))
}

pub(super) fn providers(text: &str, at: usize) -> Result<Vec<Uuid>, UsernameError> {
    list(text, at, |text| {
        let digits = text.len() == PROVIDER_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parsed = digits.then(|| Uuid::try_parse(text).ok()).flatten();
        parsed.ok_or(UsernameProblem::Provider)
    })
}

pub(super) fn session(text: &str, at: usize) -> Result<&str, UsernameError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if let Some(bad) = text.bytes().position(|byte| !good(byte)) {
        return Err(UsernameProblem::Session.at(at + bad));
    }
    if text.len() > MAX_SESSION_BYTES {
        Err(UsernameProblem::Session.at(at + MAX_SESSION_BYTES))
    } else {
        Ok(text)
    }
}

pub(super) fn ttl(text: &str, at: usize) -> Result<Duration, UsernameError> {
    let digits = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let minutes: Option<u64> = digits.then(|| text.parse().ok()).flatten();
    let ttl = minutes.map(|minutes| Duration::from_secs(60 * minutes));
    ttl.filter(|ttl| !ttl.is_zero() && *ttl <= MAX_TTL).ok_or_else(|| UsernameProblem::Ttl.at(at))
}

pub(super) fn stickiness(text: &str, at: usize) -> Result<Stickiness, UsernameError> {
    match text {
        "soft" => Ok(Stickiness::Soft),
        "hard" => Ok(Stickiness::Hard),
        _ => Err(UsernameProblem::Sticky.at(at)),
    }
}

pub(super) fn resolution(text: &str, at: usize) -> Result<NameResolution, UsernameError> {
    match text {
        "exit" => Ok(NameResolution::Exit),
        "proxy" => Ok(NameResolution::Proxy),
        _ => Err(UsernameProblem::Dns.at(at)),
    }
}

pub(super) fn family(text: &str, at: usize) -> Result<Family, UsernameError> {
    match text {
        "4" => Ok(Family::V4),
        "6" => Ok(Family::V6),
        _ => Err(UsernameProblem::Ip.at(at)),
    }
}

fn list<T: PartialEq>(
    text: &str,
    at: usize,
    parse: impl Fn(&str) -> Result<T, UsernameProblem>,
) -> Result<Vec<T>, UsernameError> {
    let mut values = Vec::new();
    let mut value_at = at;
    for (index, value) in text.split(',').enumerate() {
        if index == MAX_VALUES {
            return Err(UsernameProblem::TooManyValues.at(value_at));
        }
        let parsed = parse(value).map_err(|problem| problem.at(value_at))?;
        if !values.contains(&parsed) {
            values.push(parsed);
        }
        value_at += value.len() + 1;
    }
    Ok(values)
}
