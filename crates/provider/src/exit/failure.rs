//! Why a target was not reached.

use egress::Refusal;
use rustix::io::Errno;
use std::io;

/// Why there is no connection. What the opener sees of it names no address and nothing of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The target refused the connection.
    #[error("the target refused the connection")]
    Refused,
    /// No way there.
    #[error("there is no way to the target from this provider")]
    Unreachable,
    /// No answer in time.
    #[error("the target did not answer in time")]
    Timeout,
    /// The name does not exist, or has no address of the family asked for.
    #[error("the name has no such address")]
    NameNotFound,
    /// The name could not be resolved: no statement about the name.
    #[error("this provider could not resolve the name")]
    Resolver,
    /// An address of the other family was asked for.
    #[error("the target's address is not of the family asked for")]
    Family,
    /// The provider does not go there.
    #[error("{0}")]
    Policy(#[source] Refusal),
    /// This machine lacks descriptors, ports or memory.
    #[error("this provider has no room for another connection")]
    Exhausted,
}

impl Failure {
    /// The label of metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::NameNotFound => "name_not_found",
            Self::Resolver => "resolver",
            Self::Family => "family",
            Self::Policy(_) => "policy",
            Self::Exhausted => "exhausted",
        }
    }

    /// Whether an attempt to connect failed: what the brake for scans counts.
    #[must_use]
    pub const fn is_failed_connect(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable | Self::Timeout)
    }

    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::CONNREFUSED | Errno::CONNRESET) => Self::Refused,
            Some(Errno::TIMEDOUT) => Self::Timeout,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL) => {
                Self::Exhausted
            }
            _ => Self::Unreachable,
        }
    }

    /// The one of two that says more: an answer beats silence, silence beats no way, and what another provider could do better
    /// does not hide what the target itself has said.
    pub(super) fn or(self, other: Self) -> Self {
        let weight = |failure: Self| match failure {
            Self::Refused => 6,
            Self::Exhausted => 5,
            Self::Timeout => 4,
            Self::Unreachable => 3,
            Self::Policy(_) => 2,
            Self::Resolver => 1,
            Self::NameNotFound | Self::Family => 0,
        };
        if weight(other) > weight(self) { other } else { self }
    }
}
