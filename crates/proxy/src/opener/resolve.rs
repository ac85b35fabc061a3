//! Names that are resolved at the proxy, for customers who ask for it.

use std::net::IpAddr;
use std::time::Duration;

use egress::{Host, Policy, Target};
use selection::{Family, NameResolution, Options};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::not_there;
use crate::refusal::{Reason, Refusal};

/// The longest that a name takes.
const RESOLUTION_WAIT: Duration = Duration::from_secs(5);

/// The target by its address, if that is wanted. Every address of the name is checked.
pub(super) async fn at_proxy(
    target: &Target,
    options: &Options,
    policy: &Policy,
) -> Result<Option<Target>, Refusal> {
    let Host::Name(name) = &target.host else { return Ok(None) };
    if options.resolution == NameResolution::Exit {
        return Ok(None);
    }
    let late = |_| Refusal::new(Reason::NameNotFound, "the name was not resolved in time");
    let addresses =
        timeout(RESOLUTION_WAIT, lookup_host((name.as_str(), target.port))).await.map_err(late)?;
    let none = || Refusal::new(Reason::NameNotFound, "the name has no address");
    let mut first = None;
    for address in addresses.map_err(|_| none())? {
        let address = address.ip();
        policy.check(address, target.port).map_err(|refusal| not_there(&refusal))?;
        if first.is_none() && is_of(address, options.family) {
            first = Some(address);
        }
    }
    let host = Host::from(first.ok_or_else(none)?);
    Ok(Some(Target { host, port: target.port }))
}

const fn is_of(address: IpAddr, family: Family) -> bool {
    match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    }
}
