use super::apply::bad_value;
use crate::diagnostic::{Diagnostic, Report, quoted};
use crate::source::Sources;
use crate::written::{Dialect, Entry};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Most addresses to listen on.
pub(super) const MAX_LISTEN_ADDRESSES: usize = 64;

/// The addresses of `listen_addr`: literals, `*`, `localhost` and, where `sources` looks them up, names.
pub(super) fn addresses(
    entry: &Entry,
    port: u16,
    sources: &dyn Sources,
    report: &mut Report,
) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for host in entry.value.split(',').map(str::trim).filter(|host| !host.is_empty()) {
        match one(host, sources) {
            Ok(addresses) => {
                let new = addresses.into_iter().map(|address| SocketAddr::new(address, port));
                for address in new {
                    if !all.contains(&address) {
                        all.push(address);
                    }
                }
            }
            Err(error) => {
                let message = format!("the address {} of `listen_addr` is not found: {error}", quoted(host));
                report.add(Diagnostic::error("bad-value", message).at(&entry.place));
            }
        }
        if all.len() > MAX_LISTEN_ADDRESSES {
            let reason = format!("there are more than {MAX_LISTEN_ADDRESSES} addresses");
            report.add(bad_value("listen_addr", entry, &reason, Dialect::Toml));
            break;
        }
    }
    all
}

fn one(host: &str, sources: &dyn Sources) -> std::io::Result<Vec<IpAddr>> {
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match host {
        "*" => Ok(vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]),
        "localhost" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
        _ => literal.parse().map(|address| vec![address]).or_else(|_| sources.resolve(host)),
    }
}
