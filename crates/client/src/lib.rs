//! The library for whoever joins a network: register, dial a relay, say hello, open streams or carry them, ask the api.

pub mod api;
mod connect;
mod error;
#[cfg(test)]
mod fixtures;
mod link;
pub mod membership;
mod meter;
mod stream;
mod ways;

pub use ::link::seal::{Answer, Family, Host, Target};
pub use ::link::{Code, Pace};
pub use api::{Api, ApiError};
pub use connect::Identification;
pub use error::{LinkError, OpenError};
pub use link::{Contract, IncomingOpen, Link, MAX_INCOMING, OpenRequest, Opens, Phase, SealedOpen};
pub use membership::{Glance, Joining, Membership, MembershipError};
pub use meter::{Counter, Meter};
pub use stream::{SpliceEnd, SpliceLimits, SpliceReport, Stream};
pub use ways::{HttpProxy, ProxyError, Transport, Ways};
