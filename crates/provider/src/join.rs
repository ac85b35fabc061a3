//! Joining a network: `holdfast provider join LINK`.

mod code;

pub use code::{CODE_VARIABLE, CodeError, CodeSource, read_code};

use crate::state::{StateError, StateFolder};
use client::{Joining, Membership, MembershipError};
use std::path::Path;
use trust::{ClientId, JoinCode, JoinLink, NetworkId, Role};

/// The longest label, bytes.
const LABEL_MAX: usize = 64;

/// What the owner gave.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// `holdfast://HOST:PORT/NETWORK`.
    pub link: JoinLink,
    /// The single-use code.
    pub code: JoinCode,
    /// A name that the owner will recognise; empty: the machine's name.
    pub label: String,
    /// Where this provider is: two capital letters (ISO 3166-1).
    pub country: Option<String>,
}

/// A provider that has joined.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// Its name in the network.
    pub provider: ClientId,
    /// The network.
    pub network: NetworkId,
}

/// Why it did not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The state folder.
    #[error(transparent)]
    State(#[from] StateError),
    /// The api, or what stands in the folder.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// No country.
    #[error("a country is two letters, such as DE")]
    Country,
    /// Too long a label.
    #[error("a label has at most {LABEL_MAX} bytes")]
    Label,
}

/// Registers with the network of the link, whose name is the pin. After an unknown outcome the same command may be run again: it
/// goes on with the same keys and the same request, and nothing is registered twice.
///
/// # Errors
///
/// See [`JoinError`].
pub async fn join(folder: &Path, options: JoinOptions) -> Result<Joined, JoinError> {
    let country = options.country.map(|text| country(&text)).transpose()?;
    let label = if options.label.is_empty() { machine_name() } else { options.label };
    if label.len() > LABEL_MAX {
        return Err(JoinError::Label);
    }
    let state = StateFolder::open(folder)?;
    let joining = Joining { link: options.link, role: Role::Provider, code: options.code, label, country };
    let membership = Membership::join(state.path(), &joining).await?;
    state.release()?;
    Ok(Joined { provider: membership.client(), network: membership.network() })
}

fn country(text: &str) -> Result<String, JoinError> {
    let letters = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if letters { Ok(text.to_ascii_uppercase()) } else { Err(JoinError::Country) }
}

fn machine_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let end = (0..=LABEL_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_is_two_letters() {
        assert_eq!(country("de").unwrap(), "DE");
        for text in ["", "D", "DEU", "D1", "Ä"] {
            assert!(country(text).is_err(), "{text}");
        }
        assert!(machine_name().len() <= LABEL_MAX);
    }
}
