//! The library for whoever joins a network: dial a relay, say hello, open streams or carry them.

mod clock;
mod connect;
mod error;
mod link;
mod stream;

pub use ::link::seal::{Answer, Family, Host, Target};
pub use ::link::{Code, Pace};
pub use connect::Identification;
pub use error::{LinkError, OpenError};
pub use link::{Contract, IncomingOpen, Link, MAX_INCOMING, OpenRequest, Phase};
pub use stream::{SpliceEnd, SpliceLimits, SpliceReport, Stream};
