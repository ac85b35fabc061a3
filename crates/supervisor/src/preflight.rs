//! What has to be right on this machine before anything starts: each finding with its cause and its cure.

use crate::data::DataFolder;
use crate::settings::Settings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::time::UNIX_EPOCH;

/// Below this many free bytes nothing is started.
const LEAST_DISK: u64 = 256 * 1_024 * 1_024;
/// Below this many free bytes there is a warning.
const GOOD_DISK: u64 = 2 * 1_024 * 1_024 * 1_024;
/// Below this many descriptors nothing is started.
const LEAST_DESCRIPTORS: u64 = 512;
/// Below this many descriptors there is a warning: a stream needs two at the proxy and two at the provider.
const GOOD_DESCRIPTORS: u64 = 8_192;
/// A clock before this is wrong (2026-01-01), ms since 1970.
const EARLIEST_MS: u64 = 1_767_225_600_000;
/// How far the clock may stand before the last start, in ms.
const CLOCK_LEEWAY_MS: u64 = 60_000;
/// The longest path of a Unix socket (`sockaddr_un`), in bytes.
const MAX_SOCKET_PATH: usize = 107;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It will work, up to a point.
    Warning,
    /// Nothing is started.
    Error,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub cause: String,
    /// What helps.
    pub cure: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(out, "{severity}: {}. What helps: {}", self.cause, self.cure)
    }
}

/// Looks at ports, disk, clock, descriptors and the length of paths. Raises the limit of descriptors as far as it may.
pub(crate) fn check(data: &DataFolder, settings: &Settings, now_ms: u64) -> Vec<Finding> {
    let mut findings = ports(data, settings);
    findings.extend(disk(data));
    findings.extend(clock(data, now_ms));
    findings.extend(descriptors(raise_descriptors()));
    findings.extend(socket_path(data));
    findings
}

fn ports(data: &DataFolder, settings: &Settings) -> Vec<Finding> {
    let taken = |(name, address): (&str, std::net::SocketAddr)| {
        let error = TcpListener::bind(address).err()?;
        let file = data.file("up.toml");
        let cause = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("another program listens on {address}, which is the {name}'s")
            }
            _ => format!("{address}, which is the {name}'s, cannot be bound: {error}"),
        };
        let cure = format!("stop that program, or change `ports.{name}` or `listen` in {}", file.display());
        Some(Finding { severity: Severity::Error, cause, cure })
    };
    settings.ports.addresses(settings.listen).into_iter().filter_map(taken).collect()
}

fn disk(data: &DataFolder) -> Option<Finding> {
    let found = rustix::fs::statvfs(data.path()).ok()?;
    free_disk(data, found.f_bavail.saturating_mul(found.f_frsize))
}

fn free_disk(data: &DataFolder, free: u64) -> Option<Finding> {
    if free >= GOOD_DISK {
        return None;
    }
    let severity = if free < LEAST_DISK { Severity::Error } else { Severity::Warning };
    let cause = format!("only {} MB are free where {} is", free / 1_000_000, data.path().display());
    Some(Finding { severity, cause, cure: "free some, or name another folder with --data".to_owned() })
}

/// Tokens, certificates and sealed messages carry times: with a wrong clock, everything is refused.
fn clock(data: &DataFolder, now_ms: u64) -> Option<Finding> {
    let cure = "set the clock, and let chrony or systemd-timesyncd keep it".to_owned();
    if now_ms < EARLIEST_MS {
        let cause = "this machine's clock stands before 2026".to_owned();
        return Some(Finding { severity: Severity::Error, cause, cure });
    }
    let last = std::fs::metadata(data.file(crate::state::STATE)).and_then(|found| found.modified()).ok()?;
    let last_ms = u64::try_from(last.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
    if last_ms <= now_ms.saturating_add(CLOCK_LEEWAY_MS) {
        return None;
    }
    let cause = format!("this machine's clock stands {} s before the last start", (last_ms - now_ms) / 1_000);
    Some(Finding { severity: Severity::Error, cause, cure })
}

/// The number of descriptors that this process and its children may have.
fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    limit.current.unwrap_or(u64::MAX)
}

fn descriptors(count: u64) -> Option<Finding> {
    if count >= GOOD_DESCRIPTORS {
        return None;
    }
    let severity = if count < LEAST_DESCRIPTORS { Severity::Error } else { Severity::Warning };
    let cause =
        format!("a process may have {count} descriptors only, which is room for {} streams", count / 4);
    let cure = "raise the limit: `ulimit -n 65536`, LimitNOFILE= of a systemd unit, --ulimit of a container"
        .to_owned();
    Some(Finding { severity, cause, cure })
}

fn socket_path(data: &DataFolder) -> Option<Finding> {
    let longest = crate::cluster::socket_path(data);
    let length = longest.as_os_str().len();
    if length <= MAX_SOCKET_PATH {
        return None;
    }
    let cause = format!(
        "{} has {length} bytes, and a Unix socket's path at most {MAX_SOCKET_PATH}",
        longest.display()
    );
    Some(Finding { severity: Severity::Error, cause, cure: "name a shorter folder with --data".to_owned() })
}

#[cfg(test)]
mod tests;
