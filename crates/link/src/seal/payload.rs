//! What the two messages of a handshake carry.

use crate::code::Code;
use crate::fields::{Field, Fields, Malformed, put, shorten};
use crate::message::MAX_CAUSE_BYTES;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name of a host (RFC 1035 §2.3.4).
const MAX_NAME_BYTES: usize = 255;

/// Where a stream is to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// A name, which the provider resolves, or an address.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
}

/// The host of a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// As the customer wrote it; nobody on the way has looked at it.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(formatter, "{name}:{}", self.port),
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]:{}", self.port),
            Host::Address(address) => write!(formatter, "{address}:{}", self.port),
        }
    }
}

/// Which addresses of a name may be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Both.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// What an opener asks of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The opener's clock, milliseconds since 1970.
    pub time_ms: u64,
    /// The start of the provider that is meant; 0 for any.
    pub provider_epoch: u64,
    /// Where to.
    pub target: Target,
    /// By which addresses.
    pub family: Family,
}

impl Request {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (mut time_ms, mut provider_epoch, mut host, mut port) = (None, None, None, None);
        let mut family = Family::Any;
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => time_ms = Some(field.u64()?),
                2 => provider_epoch = Some(field.u64()?),
                3 if host.is_none() => host = Some(Host::Name(field.text(MAX_NAME_BYTES)?.to_owned())),
                4 if host.is_none() => host = Some(Host::Address(decode_address(&field)?)),
                3 | 4 => return Err(field.bad()),
                5 => port = Some(field.u16()?),
                6 => {
                    family = match field.u8()? {
                        0 => Family::Any,
                        4 => Family::V4,
                        6 => Family::V6,
                        _ => return Err(field.bad()),
                    }
                }
                _ => {}
            }
        }
        Ok(Self {
            time_ms: time_ms.ok_or(Malformed::Missing(1))?,
            provider_epoch: provider_epoch.ok_or(Malformed::Missing(2))?,
            target: Target {
                host: host.ok_or(Malformed::Missing(3))?,
                port: port.ok_or(Malformed::Missing(5))?,
            },
            family,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        put(&mut out, 1, &self.time_ms.to_be_bytes());
        put(&mut out, 2, &self.provider_epoch.to_be_bytes());
        match &self.target.host {
            Host::Name(name) => put(&mut out, 3, shorten(name, MAX_NAME_BYTES).as_bytes()),
            Host::Address(address) => put_address(&mut out, 4, *address),
        }
        put(&mut out, 5, &self.target.port.to_be_bytes());
        match self.family {
            Family::Any => {}
            Family::V4 => put(&mut out, 6, &[4]),
            Family::V6 => put(&mut out, 6, &[6]),
        }
        out
    }
}

/// How a provider's dial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is connected, to this address.
    Connected(IpAddr),
    /// It is not.
    Failed {
        /// Why.
        code: Code,
        /// Why, for people.
        cause: String,
    },
}

impl Answer {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (mut code, mut cause, mut address) = (None, "", None);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => code = Some(field.u16()?),
                2 => cause = field.text(MAX_CAUSE_BYTES)?,
                3 => address = Some(decode_address(&field)?),
                _ => {}
            }
        }
        match code.ok_or(Malformed::Missing(1))? {
            0 => Ok(Self::Connected(address.ok_or(Malformed::Missing(3))?)),
            number => Ok(Self::Failed { code: Code::from_number(number), cause: cause.to_owned() }),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        match self {
            Self::Connected(address) => {
                put(&mut out, 1, &[0, 0]);
                put_address(&mut out, 3, *address);
            }
            Self::Failed { code, cause } => {
                put(&mut out, 1, &code.number().to_be_bytes());
                put(&mut out, 2, shorten(cause, MAX_CAUSE_BYTES).as_bytes());
            }
        }
        out
    }
}

fn decode_address(field: &Field<'_>) -> Result<IpAddr, Malformed> {
    match field.value.len() {
        4 => Ok(IpAddr::V4(Ipv4Addr::from(field.array::<4>()?))),
        _ => Ok(IpAddr::V6(Ipv6Addr::from(field.array::<16>()?))),
    }
}

fn put_address(out: &mut Vec<u8>, tag: u8, address: IpAddr) {
    match address {
        IpAddr::V4(address) => put(out, tag, &address.octets()),
        IpAddr::V6(address) => put(out, tag, &address.octets()),
    }
}
