//! Whether an implementation of `docs/protocol.md` does what the page says.
//!
//! The kit speaks in raw frames that it writes and reads byte by byte, so that a mistake of this project's own library is not
//! made twice; keys, tokens, certificates and the seal are the only things that it shares. Around a relay it plays both ends; to a provider
//! it is the relay, the opener and the target. It holds the keys
//! of the network that is checked ([`Authority`]): so it makes clients, tokens and contracts as each check needs them,
//! the wrong ones too.

mod authority;
pub mod provider;
mod relay;
mod report;
mod wire;

pub use authority::Authority;
pub use relay::{Subject, checks, run};
pub use report::{Check, Outcome, Report, Result};
