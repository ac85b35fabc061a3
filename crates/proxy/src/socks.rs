//! SOCKS5 (RFC 1928) with user name and password (RFC 1929), without I/O: the messages of a client, and the answers.
//!
//! Each function looks at the bytes that have come so far: `None` if the message goes on, else what it says and how many
//! bytes it took. No message is longer than [`MAX_MESSAGE_BYTES`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use egress::{Host, Target};
use thiserror::Error;

use crate::refusal::{Reason, Refusal};

/// The first byte of each SOCKS5 client.
pub const VERSION: u8 = 5;

/// The longest message: a login with name and password of 255 bytes each.
pub const MAX_MESSAGE_BYTES: usize = 513;

/// The version of the login (RFC 1929 §2).
const LOGIN_VERSION: u8 = 1;

const METHOD_NONE: u8 = 0x00;
const METHOD_LOGIN: u8 = 0x02;
const METHOD_UNACCEPTABLE: u8 = 0xff;

const COMMAND_CONNECT: u8 = 1;
const COMMAND_BIND: u8 = 2;
const COMMAND_UDP_ASSOCIATE: u8 = 3;

const TYPE_IPV4: u8 = 1;
const TYPE_NAME: u8 = 3;
const TYPE_IPV6: u8 = 4;

/// The answer to a client of SOCKS4: request rejected. It has no place for a login.
pub const SOCKS4_REJECTED: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];

/// A client does not speak the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SocksError {
    /// Another version.
    #[error("version {0} where a SOCKS5 message should begin")]
    Version(u8),
    /// Another version of the login.
    #[error("version {0} where a login of version 1 should begin")]
    LoginVersion(u8),
    /// A login without a name.
    #[error("a login without a name")]
    NoName,
}

/// What a client is ready to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Go on without a login.
    pub no_login: bool,
    /// Log in by name and password.
    pub login: bool,
}

/// What is chosen from a greeting, and the bytes that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The request comes next.
    NoLogin,
    /// The login comes next.
    Login,
    /// The client offers nothing that will do, and has to close.
    Unacceptable,
}

impl Method {
    /// The answer to the greeting.
    #[must_use]
    pub const fn answer(self) -> [u8; 2] {
        let method = match self {
            Self::NoLogin => METHOD_NONE,
            Self::Login => METHOD_LOGIN,
            Self::Unacceptable => METHOD_UNACCEPTABLE,
        };
        [VERSION, method]
    }
}

/// Reads a greeting.
///
/// # Errors
///
/// If it is none.
pub fn greeting(bytes: &[u8]) -> Result<Option<(Greeting, usize)>, SocksError> {
    if let Some(&version) = bytes.first().filter(|version| **version != VERSION) {
        return Err(SocksError::Version(version));
    }
    let Some((methods, taken)) = counted(bytes, 1) else { return Ok(None) };
    let offers = |method| methods.contains(&method);
    Ok(Some((Greeting { no_login: offers(METHOD_NONE), login: offers(METHOD_LOGIN) }, taken)))
}

/// A name and a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Login<'bytes> {
    /// The user name.
    pub name: &'bytes [u8],
    /// The password.
    pub password: &'bytes [u8],
}

/// Reads a login.
///
/// # Errors
///
/// If it is none.
pub fn login(bytes: &[u8]) -> Result<Option<(Login<'_>, usize)>, SocksError> {
    if let Some(&version) = bytes.first().filter(|version| **version != LOGIN_VERSION) {
        return Err(SocksError::LoginVersion(version));
    }
    let Some((name, name_end)) = counted(bytes, 1) else { return Ok(None) };
    if name.is_empty() {
        return Err(SocksError::NoName);
    }
    let Some((password, taken)) = counted(bytes, name_end) else { return Ok(None) };
    Ok(Some((Login { name, password }, taken)))
}

/// The answer to a login.
#[must_use]
pub const fn login_answer(accepted: bool) -> [u8; 2] {
    [LOGIN_VERSION, if accepted { 0 } else { 1 }]
}

/// Where a client wants to go; or why it cannot, although its request was understood.
pub type Asked = Result<Target, Refusal>;

/// Reads a request.
///
/// # Errors
///
/// If it is none.
pub fn request(bytes: &[u8]) -> Result<Option<(Asked, usize)>, SocksError> {
    if let Some(&version) = bytes.first().filter(|version| **version != VERSION) {
        return Err(SocksError::Version(version));
    }
    let Some(&[_, command, _, address_type]) = bytes.first_chunk::<4>() else { return Ok(None) };
    let address = match address_type {
        TYPE_IPV4 => {
            fixed::<4>(bytes).map(|(ip, end)| (Ok(Host::from(IpAddr::from(Ipv4Addr::from(ip)))), end))
        }
        TYPE_IPV6 => {
            fixed::<16>(bytes).map(|(ip, end)| (Ok(Host::from(IpAddr::from(Ipv6Addr::from(ip)))), end))
        }
        TYPE_NAME => counted(bytes, 4).map(|(name, end)| (named(name), end)),
        _ => {
            let cause = "addresses are IPv4, IPv6 or a name";
            return Ok(Some((Err(Refusal::new(Reason::AddressType, cause)), bytes.len())));
        }
    };
    let Some((host, end)) = address else { return Ok(None) };
    let Some(&port) = bytes.get(end..).and_then(|rest| rest.first_chunk::<2>()) else { return Ok(None) };
    let host = match command {
        COMMAND_CONNECT => host,
        COMMAND_BIND => Err(Refusal::new(Reason::CommandUnsupported, "BIND is not supported")),
        COMMAND_UDP_ASSOCIATE => {
            Err(Refusal::new(Reason::CommandUnsupported, "UDP is not supported: use TCP"))
        }
        _ => Err(Refusal::new(Reason::CommandUnsupported, "the command is not known")),
    };
    let port = u16::from_be_bytes(port);
    let target = host.and_then(|host| match port {
        0 => Err(Refusal::new(Reason::BadRequest, "port 0 cannot be reached")),
        port => Ok(Target { host, port }),
    });
    Ok(Some((target, end + 2)))
}

/// The reply to a request. The address that it has to carry is left empty: which one the provider uses is its own matter.
#[must_use]
pub const fn reply(reason: Option<Reason>) -> [u8; 10] {
    let code = match reason {
        Some(reason) => reason.socks_reply(),
        None => 0,
    };
    [VERSION, code, 0, TYPE_IPV4, 0, 0, 0, 0, 0, 0]
}

fn named(name: &[u8]) -> Result<Host, Refusal> {
    let text = std::str::from_utf8(name).unwrap_or("\u{fffd}");
    text.parse().map_err(|error| Refusal::new(Reason::BadRequest, format!("{error}")))
}

/// Bytes behind a byte that counts them, which stands at `at`; and where they end.
fn counted(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let end = at + 1 + usize::from(*bytes.get(at)?);
    Some((bytes.get(at + 1..end)?, end))
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<([u8; N], usize)> {
    let address = bytes.get(4..)?.first_chunk::<N>()?;
    Some((*address, 4 + N))
}

#[cfg(test)]
mod tests;
