//! The way out: from what was asked for to a connection with it, or to the reason why not.
//!
//! The order is fixed: the policy sees the target, then every address that its name has, and a connection is only ever made to
//! an address that the policy has let pass in this very open. Nothing is looked up twice, so a name that changes its meaning
//! meanwhile gains nothing (DNS rebinding).

mod failure;
mod own;
mod race;
mod resolver;

pub use failure::Failure;
pub use own::own_networks;
pub use resolver::{Dns, ResolverError};

use egress::{Checked, Policy, Target, Way};
use race::{Addresses, race};
use resolver::Resolver;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// No open takes longer, whatever the opener allows.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// The answer has to be at the relay before its deadline: so much of it is kept back, at most a fifth.
const ANSWER_TIME: Duration = Duration::from_millis(250);

/// Which addresses will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Whichever answers first, IPv6 with a head start (RFC 8305).
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    const fn takes(self, address: SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// A connection to the target.
#[derive(Debug)]
pub struct Reached {
    /// The connection.
    pub stream: TcpStream,
    /// The address it leads to.
    pub address: SocketAddr,
}

/// Resolves, checks and connects. One for the whole process.
#[derive(Debug)]
pub struct Exit {
    resolver: Resolver,
    policy: RwLock<Arc<Policy>>,
}

impl Exit {
    /// An exit with this policy and these name servers.
    #[must_use]
    pub fn new(policy: Policy, dns: Dns) -> Self {
        Self { resolver: Resolver::new(dns), policy: RwLock::new(Arc::new(policy)) }
    }

    /// The policy of now.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another policy for opens from now on.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Follows what may have changed on this machine: its name servers. Cheap; called now and then.
    pub fn follow_system(&self) {
        self.resolver.follow_system();
    }

    /// Asks the name servers for something that tells nobody anything: the addresses of the root, which has none.
    ///
    /// # Errors
    ///
    /// None is known, or none answers.
    pub async fn try_name_servers(&self) -> Result<(), ResolverError> {
        self.resolver.try_servers().await
    }

    /// Connects to `target` within `patience`, what is left of the open's deadline.
    ///
    /// # Errors
    ///
    /// Why there is no connection.
    pub async fn connect(
        &self,
        target: &Target,
        family: Family,
        patience: Duration,
    ) -> Result<Reached, Failure> {
        let patience = patience.min(CONNECT_TIME_MAX);
        let deadline = Instant::now() + (patience - ANSWER_TIME.min(patience / 5));
        let policy = self.policy();
        match policy.admit(target).map_err(Failure::Policy)? {
            Way::Connect(checked) => connect_one(checked, family, deadline).await,
            Way::Resolve(name) => {
                let addresses = Addresses::new(
                    |address| policy.check(address, target.port),
                    self.resolver.lookups(name, family),
                );
                race(addresses, deadline).await
            }
        }
    }
}

async fn connect_one(checked: Checked, family: Family, deadline: Instant) -> Result<Reached, Failure> {
    let address = checked.address();
    if !family.takes(address) {
        return Err(Failure::Family);
    }
    match timeout_at(deadline, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => Ok(Reached { stream, address }),
        Ok(Err(error)) => Err(Failure::of_connect(&error)),
        Err(_) => Err(Failure::Timeout),
    }
}

#[cfg(test)]
mod tests;
