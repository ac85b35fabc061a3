//! What any input must not break, as plain functions of bytes: for properties, and for a fuzzer.

use crate::options::{MAX_ACCOUNT_BYTES, MAX_SESSION_BYTES, MAX_TTL, MAX_VALUES, Options, Username};

/// A user name, split by the first zero byte into defaults and name: never panics, keeps every bound, points into the
/// name if it refuses, and says the same twice.
pub fn username(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (defaults, name) = text.split_once('\0').unwrap_or(("", text));
    let defaults = Options::parse(defaults).unwrap_or_default();
    let parsed = Username::parse(name, &defaults);
    match &parsed {
        Ok(username) => {
            assert!((1..=MAX_ACCOUNT_BYTES).contains(&username.account.len()));
            assert!(name.starts_with(username.account));
            let options = &username.options;
            assert!(options.countries.len() <= MAX_VALUES && options.providers.len() <= MAX_VALUES);
            if let Some(session) = &options.session {
                assert!((1..=MAX_SESSION_BYTES).contains(&session.name.len()));
                assert!(!session.ttl.is_zero() && session.ttl <= MAX_TTL);
            }
            // The options alone, read as a default, say what the name said.
            if defaults == Options::default() {
                let options = name.split_once('-').map_or("", |(_, options)| options);
                assert_eq!(Options::parse(options).as_ref(), Ok(&username.options));
            }
        }
        Err(error) => {
            assert!(error.at <= name.len(), "{error:?} is beyond {name:?}");
            assert!(error.to_string().len() < 256);
        }
    }
    assert_eq!(parsed, Username::parse(name, &defaults));
}
