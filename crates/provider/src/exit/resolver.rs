//! Names to addresses, with the name servers of this machine.

use super::{Failure, Family};
use egress::Name;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{self, RecordType};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// How long a name may take.
pub(super) const LOOKUP_TIME_MAX: Duration = Duration::from_secs(5);
/// How long one question to one name server may take; two fit into a lookup.
const QUESTION_TIME: Duration = Duration::from_millis(2_400);
/// Answers are kept for as long as they say, but not longer.
const POSITIVE_MAX: Duration = Duration::from_secs(60);
/// "No such name" is kept for as long as it says, but not longer.
const NEGATIVE_MAX: Duration = Duration::from_secs(5);
/// Answers kept.
const CACHE_ENTRIES: u64 = 4_096;
/// Questions that wait for one name server at once.
const QUESTIONS_MAX: usize = 1_024;
/// Addresses of one answer that are looked at.
const ANSWERS_MAX: usize = 16;
/// Where the system says which name servers it has.
const SYSTEM_FILE: &str = "/etc/resolv.conf";

/// Which name servers to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dns {
    /// Those of the system, and `/etc/hosts`.
    #[default]
    System,
    /// These, over UDP and TCP, and `/etc/hosts`.
    Servers(Vec<SocketAddr>),
}

/// Why names cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// There is nobody to ask.
    #[error(
        "this machine's name servers are not known ({0}): see /etc/resolv.conf, or dns.servers in provider.toml"
    )]
    None(String),
    /// Nobody answers.
    #[error("this machine's name servers do not answer: {0}")]
    Silent(String),
}

/// An answer about one family.
pub(super) type Answer = Result<Vec<IpAddr>, Failure>;
/// A question under way.
pub(super) type Question = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Questions about a name, one for each family that will do.
pub(super) struct Lookups {
    pub(super) v6: Option<Question>,
    pub(super) v4: Option<Question>,
}

#[derive(Debug)]
pub(super) struct Resolver {
    dns: Dns,
    current: Mutex<Current>,
}

struct Current {
    resolver: Option<TokioResolver>,
    /// When the system's file was last changed, as seen when it was read.
    read_of: Option<SystemTime>,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Current").field("read_of", &self.read_of).finish_non_exhaustive()
    }
}

impl Resolver {
    pub(super) fn new(dns: Dns) -> Self {
        let read_of = changed_at();
        let resolver = match build(&dns) {
            Ok(resolver) => Some(resolver),
            Err(error) => {
                tracing::error!("{error}");
                None
            }
        };
        Self { dns, current: Mutex::new(Current { resolver, read_of }) }
    }

    /// Reads the system's file again if it has changed: a laptop that moved, a machine whose network came up late.
    pub(super) fn follow_system(&self) {
        let read_of = changed_at();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if self.dns != Dns::System || (current.resolver.is_some() && current.read_of == read_of) {
            return;
        }
        match build(&self.dns) {
            Ok(resolver) => {
                *current = Current { resolver: Some(resolver), read_of };
                tracing::info!("the system's name servers were read again");
            }
            // The last ones that were known are better than none.
            Err(error) => {
                current.read_of = read_of;
                tracing::warn!("{error}");
            }
        }
    }

    pub(super) async fn try_servers(&self) -> Result<(), ResolverError> {
        let resolver = self.current.lock().unwrap_or_else(PoisonError::into_inner).resolver.clone();
        let resolver = resolver.ok_or_else(|| ResolverError::None("they cannot be read".to_owned()))?;
        match timeout(LOOKUP_TIME_MAX, resolver.lookup(rr::Name::root(), RecordType::A)).await {
            Ok(Ok(_)) => Ok(()),
            // It has none: whoever says so has answered.
            Ok(Err(error)) if error.is_no_records_found() => Ok(()),
            Ok(Err(error)) => Err(ResolverError::Silent(error.to_string())),
            Err(_) => Err(ResolverError::Silent("no answer in time".to_owned())),
        }
    }

    pub(super) fn lookups(&self, name: &Name, family: Family) -> Lookups {
        let resolver = self.current.lock().unwrap_or_else(PoisonError::into_inner).resolver.clone();
        let ask = |kind: RecordType| -> Question {
            let (resolver, name) = (resolver.clone(), fully_qualified(name));
            Box::pin(async move {
                let (Some(resolver), Some(name)) = (resolver, name) else { return Err(Failure::Resolver) };
                match timeout(LOOKUP_TIME_MAX, resolver.lookup(name, kind)).await {
                    Ok(answer) => read(answer),
                    Err(_) => Err(Failure::Resolver),
                }
            })
        };
        Lookups {
            v6: (family != Family::V4).then(|| ask(RecordType::AAAA)),
            v4: (family != Family::V6).then(|| ask(RecordType::A)),
        }
    }
}

fn read(answer: Result<hickory_resolver::lookup::Lookup, NetError>) -> Answer {
    match answer {
        Ok(lookup) => {
            let addresses = lookup.answers().iter().filter_map(|record| record.data.ip_addr());
            Ok(addresses.take(ANSWERS_MAX).collect())
        }
        Err(error) if error.is_no_records_found() => no_records(&error),
        Err(_) => Err(Failure::Resolver),
    }
}

/// "No such name", "no such address", or a server that failed: only the first two are statements about the name.
fn no_records(error: &NetError) -> Answer {
    use hickory_resolver::net::{DnsError, NoRecords};
    use hickory_resolver::proto::op::ResponseCode;
    match error {
        NetError::Dns(DnsError::NoRecordsFound(NoRecords {
            response_code: ResponseCode::NoError | ResponseCode::NXDomain,
            ..
        })) => Ok(Vec::new()),
        _ => Err(Failure::Resolver),
    }
}

/// A name of the whole internet: no search list of this machine is tried.
fn fully_qualified(name: &Name) -> Option<rr::Name> {
    let mut name = rr::Name::from_ascii(name.as_str()).ok()?;
    name.set_fqdn(true);
    Some(name)
}

fn changed_at() -> Option<SystemTime> {
    std::fs::metadata(SYSTEM_FILE).and_then(|file| file.modified()).ok()
}

fn build(dns: &Dns) -> Result<TokioResolver, ResolverError> {
    let wrong = |error: NetError| ResolverError::None(error.to_string());
    let mut builder = match dns {
        Dns::System => TokioResolver::builder_tokio().map_err(wrong)?,
        Dns::Servers(servers) => {
            let servers = servers.iter().map(|address| server(*address)).collect();
            TokioResolver::builder_with_config(
                ResolverConfig::from_name_servers(servers),
                TokioRuntimeProvider::default(),
            )
        }
    };
    let options = builder.options_mut();
    options.timeout = QUESTION_TIME;
    options.attempts = 1;
    options.positive_max_ttl = Some(POSITIVE_MAX);
    options.negative_max_ttl = Some(NEGATIVE_MAX);
    options.cache_size = CACHE_ENTRIES;
    options.max_active_requests = QUESTIONS_MAX;
    options.try_tcp_on_error = true;
    builder.build().map_err(wrong)
}

fn server(address: SocketAddr) -> NameServerConfig {
    let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
    (udp.port, tcp.port) = (address.port(), address.port());
    NameServerConfig::new(address.ip(), true, vec![udp, tcp])
}
