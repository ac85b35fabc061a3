//! Which addresses and ports may be reached through a provider, and when somebody has to stop trying.
//!
//! No socket, no resolver, no clock. A driver parses what was asked for with [`Target`], shows it to a [`Policy`], resolves
//! what has to be resolved, shows **every** answer to the policy again, and connects to nothing but a [`Checked`] address: no
//! second lookup can put another address in its place.

pub mod address;
pub mod brake;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod host;
pub mod policy;
pub mod ports;

pub use address::{Network, Special};
pub use brake::{Brake, Verdict};
pub use host::{Host, HostError, Name, Target, TargetError};
pub use policy::{Checked, ExactTarget, Policy, Refusal, Way};
pub use ports::{PortError, PortRefusal, PortSet, Ports};
