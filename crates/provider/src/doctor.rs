//! `doctor`: is this machine fit to be a provider, and if not, what is to be done?

use crate::config::Config;
use crate::control::{Command, ControlError, ask};
use crate::exit::{Exit, own_networks};
use crate::state::StateFolder;
use crate::status::Status;
use client::Glance;
use egress::Policy;
use rustix::process::{Resource, geteuid, getrlimit};
use serde::Serialize;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server may take.
const DIAL_TIME: Duration = Duration::from_secs(5);
/// Descriptors beyond those of streams.
const OTHER_DESCRIPTORS: u64 = 64;
/// A clock that is further off has its streams refused (docs/protocol.md §6).
const SKEW_MAX_MS: u64 = 60_000;
/// Servers that are tried.
const SERVERS_MAX: usize = 16;

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As it should be.
    Fine,
    /// It works, but less than it could.
    Warning,
    /// It does not work.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub about: &'static str,
    /// How it stands.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// What helps; empty if nothing is needed.
    pub help: String,
}

impl Finding {
    fn fine(about: &'static str, found: impl Into<String>) -> Self {
        Self { about, health: Health::Fine, found: found.into(), help: String::new() }
    }

    fn warning(about: &'static str, found: impl Into<String>, help: impl Into<String>) -> Self {
        Self { about, health: Health::Warning, found: found.into(), help: help.into() }
    }

    fn broken(about: &'static str, found: impl Into<String>, help: impl Into<String>) -> Self {
        Self { about, health: Health::Broken, found: found.into(), help: help.into() }
    }
}

/// Looks at everything. Changes nothing; a provider that runs is not disturbed.
pub async fn examine(state: &StateFolder) -> Vec<Finding> {
    let mut findings = vec![user()];
    let config = match Config::load(&state.config_path()) {
        Ok(config) => {
            let path = state.config_path();
            let found = if path.exists() { path.display().to_string() } else { "the defaults".to_owned() };
            findings.push(Finding::fine("configuration", found));
            config
        }
        Err(error) => {
            findings.push(Finding::broken("configuration", error.to_string(), "mend the file"));
            Config::default()
        }
    };
    let status = match ask(state, Command::Status).await {
        Ok(status) => Some(status),
        Err(ControlError::NotRunning(_)) => None,
        Err(error) => {
            findings.push(Finding::broken(
                "provider",
                error.to_string(),
                "see `holdfast provider logs`; restart it",
            ));
            None
        }
    };
    let servers = match &status {
        Some(status) => {
            findings.extend(running(status));
            status.servers.clone()
        }
        None => match Glance::at(state.path()) {
            Ok(Some(member)) => {
                findings.push(Finding::warning("provider", "it does not run", "run `holdfast provider up`"));
                let mut servers = member.relays;
                servers.push(member.link.address());
                servers
            }
            Ok(None) => {
                let help = "join with `holdfast provider join LINK`";
                findings.push(Finding::broken("membership", "it has not joined any network", help));
                Vec::new()
            }
            Err(error) => {
                findings.push(Finding::broken(
                    "membership",
                    error.to_string(),
                    "restore the file from a copy",
                ));
                Vec::new()
            }
        },
    };
    for server in servers.iter().take(SERVERS_MAX) {
        findings.push(reachable(server).await);
    }
    findings.push(names(&config).await);
    findings.push(own_addresses());
    findings.extend(routes());
    findings.push(descriptors(&config));
    findings
}

fn user() -> Finding {
    match geteuid().is_root() {
        true => {
            Finding::broken("user", "root", "run it as a user of its own: it carries other people's traffic")
        }
        false => Finding::fine("user", format!("uid {}", geteuid().as_raw())),
    }
}

fn running(status: &Status) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.push(match (&status.held, status.link.state.as_str()) {
        (Some(held), _) => Finding::broken(
            "link",
            format!("refused for good: {} ({})", held.cause, held.code),
            status.next(),
        ),
        (None, "connected") => Finding::fine(
            "link",
            format!("connected to {}", status.link.relay.as_deref().unwrap_or("a relay")),
        ),
        (None, state) => {
            let error = status.link.last_error.as_deref().unwrap_or("no error so far");
            Finding::warning("link", format!("{state}: {error}"), status.next())
        }
    });
    findings.push(match status.link.clock_ahead_ms {
        None => Finding::warning("clock", "not known before the first connection", ""),
        Some(ahead) if ahead.unsigned_abs() > SKEW_MAX_MS => Finding::broken(
            "clock",
            format!(
                "{} s {} the relay's",
                ahead.unsigned_abs() / 1_000,
                if ahead > 0 { "ahead of" } else { "behind" }
            ),
            "let it be set by a time server (timedatectl set-ntp true): openers are refused",
        ),
        Some(ahead) => Finding::fine("clock", format!("{} ms from the relay's", ahead.unsigned_abs())),
    });
    findings
}

async fn reachable(server: &str) -> Finding {
    match timeout(DIAL_TIME, TcpStream::connect(server)).await {
        Ok(Ok(_)) => Finding::fine("server", format!("{server} answers")),
        Ok(Err(error)) => Finding::broken(
            "server",
            format!("{server}: {error}"),
            "is this machine on line, and may it dial out to that port?",
        ),
        Err(_) => Finding::broken(
            "server",
            format!("{server} does not answer within {} s", DIAL_TIME.as_secs()),
            "a firewall on the way may drop the connection",
        ),
    }
}

async fn names(config: &Config) -> Finding {
    let exit = Exit::new(Policy::default(), config.name_servers());
    match exit.try_name_servers().await {
        Ok(()) => Finding::fine("names", "name servers answer"),
        Err(error) => Finding::broken(
            "names",
            error.to_string(),
            "see /etc/resolv.conf, or name servers of your choice in dns.servers of provider.toml",
        ),
    }
}

fn own_addresses() -> Finding {
    match own_networks() {
        Ok(networks) => Finding::fine("own addresses", format!("{} are never reached", networks.len())),
        Err(error) => Finding::broken("own addresses", error.to_string(), ""),
    }
}

/// Whether there is a way out by each family. No packet is sent: a UDP socket asks the routing table.
fn routes() -> [Finding; 2] {
    let route =
        |from: &str, to: SocketAddr| UdpSocket::bind(from).and_then(|socket| socket.connect(to)).is_ok();
    let ipv4 = route("0.0.0.0:0", SocketAddr::from(([1, 1, 1, 1], 443)));
    let ipv6 = route("[::]:0", SocketAddr::from(([0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111], 443)));
    [
        if ipv4 {
            Finding::fine("IPv4", "there is a way out")
        } else {
            Finding::warning("IPv4", "there is no way out", "most targets have IPv4 only")
        },
        if ipv6 {
            Finding::fine("IPv6", "there is a way out")
        } else {
            Finding::warning("IPv6", "there is no way out", "targets are reached by IPv4 only")
        },
    ]
}

fn descriptors(config: &Config) -> Finding {
    // Two for a moment of a stream: a connection that is tried beside another.
    let needed = u64::from(config.limits.streams) * 2 + OTHER_DESCRIPTORS;
    // No limit at all is more than enough.
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if hard >= needed {
        Finding::fine("descriptors", format!("{hard} allowed, {needed} needed"))
    } else {
        Finding::warning(
            "descriptors",
            format!("{hard} allowed, {needed} needed for {} streams", config.limits.streams),
            "raise LimitNOFILE of the unit (or ulimit -n), or lower limits.streams",
        )
    }
}
