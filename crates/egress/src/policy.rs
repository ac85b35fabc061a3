//! The policy of one provider: ports, special addresses, its own addresses, and exact exceptions.

use crate::address::{Network, Special, special};
use crate::host::{Host, Name, Target, TargetError};
use crate::ports::{PortRefusal, Ports, never};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Names that mean something on one machine or in one house only, or that must not be looked up: RFC 6761 §6.3 and §6.4,
/// RFC 6762 §3, RFC 7686, RFC 8375, RFC 9476, and `internal`, which is reserved for private use.
pub const SPECIAL_NAMES: [&str; 7] =
    ["localhost", "invalid", "local", "onion", "home.arpa", "alt", "internal"];

/// What may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    ports: Ports,
    own: Vec<Network>,
    servers: Vec<Network>,
    exact: Vec<ExactTarget>,
}

/// One address and port that may be reached although the rules say no. Never a range, never a name: what a name means can
/// change. It holds only for targets that are given as this very address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExactTarget(SocketAddr);

/// How a target that may be tried is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way<'a> {
    /// It is an address, and may be reached.
    Connect(Checked),
    /// It has to be resolved, and every address shown to [`Policy::check`].
    Resolve(&'a Name),
}

/// An address that a policy has let pass. Only a policy makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checked(SocketAddr);

impl Checked {
    /// Where to connect.
    #[must_use]
    pub const fn address(self) -> SocketAddr {
        self.0
    }
}

/// Why a provider does not go there. The opener learns this; the provider's owner decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The port.
    #[error("this provider does not reach that port")]
    Port(PortRefusal),
    /// The address is not of the open internet.
    #[error("the address is not one of the open internet")]
    Special(Special),
    /// The name is not one of the open internet.
    #[error("the name is not one of the open internet")]
    SpecialName,
    /// The provider's own machine or network.
    #[error("the address belongs to the provider itself")]
    Own,
    /// One of the network's own servers.
    #[error("the address belongs to a server of the network")]
    Server,
}

impl Refusal {
    /// The label of metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Port(PortRefusal::Never) => "port_never",
            Self::Port(PortRefusal::Off) => "port_off",
            Self::Port(PortRefusal::NotAllowed) => "port_not_allowed",
            Self::Special(special) => special.label(),
            Self::SpecialName => "special_name",
            Self::Own => "own",
            Self::Server => "server",
        }
    }
}

impl Policy {
    /// These ports of the open internet.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        Self { ports, ..Self::default() }
    }

    /// With exceptions; each is worth a warning at start.
    #[must_use]
    pub fn with_exact(mut self, exact: Vec<ExactTarget>) -> Self {
        self.exact = exact;
        self
    }

    /// The provider's own addresses, of its interfaces and as the world sees it, from now on. A network stands for what is on
    /// the same wire: with IPv6, a neighbour in the house has an address of the open internet.
    pub fn set_own(&mut self, own: Vec<Network>) {
        self.own = own;
    }

    /// The addresses of the network's own servers, from now on.
    pub fn set_servers(&mut self, servers: Vec<Network>) {
        self.servers = servers;
    }

    /// The ports and exceptions of `other` from now on; the addresses of the provider and of the network stay.
    pub fn take_rules_of(&mut self, other: Self) {
        self.ports = other.ports;
        self.exact = other.exact;
    }

    /// The ports.
    #[must_use]
    pub const fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The exceptions.
    #[must_use]
    pub fn exact(&self) -> &[ExactTarget] {
        &self.exact
    }

    /// What to do about `target` before anything is looked up.
    ///
    /// # Errors
    ///
    /// Why it is not reached.
    pub fn admit<'a>(&self, target: &'a Target) -> Result<Way<'a>, Refusal> {
        match &target.host {
            Host::Address(address) => self.check_literal(*address, target.port).map(Way::Connect),
            Host::Name(name) => {
                self.ports.check(target.port).map_err(Refusal::Port)?;
                if SPECIAL_NAMES.iter().any(|special| name.is_within(special)) {
                    return Err(Refusal::SpecialName);
                }
                Ok(Way::Resolve(name))
            }
        }
    }

    /// Whether an address that a name has resolved to may be reached. Exceptions do not count here.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self, address: IpAddr, port: u16) -> Result<Checked, Refusal> {
        self.ports.check(port).map_err(Refusal::Port)?;
        let address = address.to_canonical();
        if let Some(special) = special(address) {
            return Err(Refusal::Special(special));
        }
        if self.own.iter().any(|network| network.contains(address)) {
            return Err(Refusal::Own);
        }
        if self.servers.iter().any(|network| network.contains(address)) {
            return Err(Refusal::Server);
        }
        Ok(Checked(SocketAddr::new(address, port)))
    }

    fn check_literal(&self, address: IpAddr, port: u16) -> Result<Checked, Refusal> {
        let asked = SocketAddr::new(address.to_canonical(), port);
        if self.exact.contains(&ExactTarget(asked)) {
            return Ok(Checked(asked));
        }
        self.check(address, port)
    }
}

/// Why a text is no [`ExactTarget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExactError {
    /// It is no `host:port`.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// It is a name.
    #[error("an exact exception is an address and a port, not a name: what a name means can change")]
    Name,
    /// The port is never reached.
    #[error("that port is never allowed")]
    Never,
}

impl FromStr for ExactTarget {
    type Err = ExactError;

    fn from_str(text: &str) -> Result<Self, ExactError> {
        let target: Target = text.parse()?;
        match target.host {
            Host::Name(_) => Err(ExactError::Name),
            Host::Address(_) if never(target.port) => Err(ExactError::Never),
            Host::Address(address) => Ok(Self(SocketAddr::new(address, target.port))),
        }
    }
}

impl fmt::Display for ExactTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests;
