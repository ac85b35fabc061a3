//! Why a first packet was refused or could not be built.

use super::{MAX_STARTUP_PACKET, MAX_STARTUP_PARAMETERS, NEWEST_PROTOCOL_MINOR, PROTOCOL_MAJOR};
use crate::message::{Severity, error_response};

/// A first packet that cannot be served. `Display` is the text for the client, worded as PostgreSQL's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartupError {
    /// Below 8 or above the limit, or not the one length such a request has.
    #[error("invalid length of startup packet: {length} bytes, at most {} are accepted", MAX_STARTUP_PACKET + 4)]
    Length {
        /// What the packet said, in bytes.
        length: usize,
    },
    /// A TLS handshake without an SSLRequest before it.
    #[error("direct TLS negotiation is not supported, connect with sslnegotiation=postgres")]
    DirectTls,
    /// The secret of a cancel request is too short or too long.
    #[error("invalid length of cancel request, a key has 4 to {most} bytes")]
    CancelKeyLength {
        /// The longest accepted, in bytes.
        most: usize,
    },
    /// Another major version of the protocol.
    #[error(
        "unsupported frontend protocol {major}.{minor}: server supports {}.0 to {}.{}",
        PROTOCOL_MAJOR,
        PROTOCOL_MAJOR,
        NEWEST_PROTOCOL_MINOR
    )]
    Version {
        /// As asked for.
        major: u16,
        /// As asked for.
        minor: u16,
    },
    /// The list of parameters does not end where the packet does.
    #[error("invalid startup packet layout: expected terminator as last byte")]
    Layout,
    /// More parameters than any client needs.
    #[error("too many startup parameters, at most {} are accepted", MAX_STARTUP_PARAMETERS)]
    TooManyParameters,
    /// No user, or an empty one.
    #[error("no PostgreSQL user name specified in startup packet")]
    NoUser,
    /// A name or value that is not UTF-8.
    #[error("startup parameter {name:?} is not valid UTF-8")]
    NotUtf8 {
        /// The parameter, with what is not UTF-8 replaced.
        name: String,
    },
    /// `replication` is neither a truth value nor `database`.
    #[error("invalid value for parameter \"replication\": {value:?}")]
    Replication {
        /// As sent.
        value: String,
    },
    /// A packet of our own would hold a zero byte inside a name or value; its sender must not ask for it.
    #[error("startup parameter {name:?} contains a zero byte")]
    ZeroByte {
        /// The parameter.
        name: String,
    },
}

impl StartupError {
    /// The SQLSTATE for the client.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Length { .. } | Self::CancelKeyLength { .. } | Self::Layout | Self::ZeroByte { .. } => {
                "08P01"
            }
            Self::DirectTls | Self::Version { .. } => "0A000",
            Self::TooManyParameters => "54000",
            Self::NoUser => "28000",
            Self::NotUtf8 { .. } => "22021",
            Self::Replication { .. } => "22023",
        }
    }

    /// The ErrorResponse that tells the client; the connection is to be closed after it.
    #[must_use]
    pub fn response(&self) -> Vec<u8> {
        error_response(Severity::Fatal, self.sqlstate(), &self.to_string(), None, None)
    }
}
