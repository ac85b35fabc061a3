//! A provider that runs.

use crate::carry::Carrier;
use crate::config::{Config, ConfigError, LinkTransport};
use crate::control::{Answering, Command, Control, ControlError, Reply};
use crate::exit::{Exit, own_networks};
use crate::gate::{Account, Gate, Limits};
use crate::limits::Usage;
use crate::state::{MonthCap, StateError, StateFolder, Wishes};
use crate::status::{ByteStatus, LimitStatus, LinkStatus, PolicyStatus, Status, StreamStatus};
use crate::uplink::{Place, Uplink};
use crate::wall::Wall;
use client::{Glance, Membership, MembershipError, Transport, Ways};
use clock::{Clock, unix_ms};
use egress::{Host, Network, Policy};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often the clock on the wall is looked at, and what was carried is counted.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often what was carried is kept on the disk: so much of the count a power failure costs.
const KEEP_EVERY_LOOKS: u32 = 10;
/// How often addresses and name servers of this machine are looked at.
const MACHINE_EVERY_LOOKS: u32 = 60;
/// How long a name of one of the network's servers may take.
const SERVER_LOOKUP_TIME: Duration = Duration::from_secs(5);
/// Addresses of the network's servers at most.
const SERVERS_MAX: usize = 256;
/// How long streams may go on when the provider stops.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);

/// Why a provider cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The state folder.
    #[error(transparent)]
    State(#[from] StateError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The membership.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// The control socket.
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// Runs the provider of this folder until `shutdown`; then streams may go on for [`DRAIN_TIME`]. `config` stands in for
/// `provider.toml`; without it the file is read, also when it is told to.
///
/// # Errors
///
/// It has not joined, or something of its own is not in order. What happens in the network is no reason to stop.
pub async fn run(
    state: StateFolder,
    config: Option<Config>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let membership = Arc::new(Membership::open(state.path())?);
    let node = Arc::new(Node::new(state, config, membership)?);
    let control = Control::bind(&node.uplink.state)?;
    tracing::info!(provider = %node.uplink.membership.client(), epoch = node.uplink.epoch, "provider up");
    tokio::select! {
        () = node.uplink.keep() => {},
        () = control.serve(Arc::clone(&node)) => {},
        () = node.housekeeping() => {},
        () = node.gate().keep_month() => {},
        () = node.until(shutdown) => {},
    }
    node.uplink.place.leave().await;
    node.look(true);
    tracing::info!("provider down");
    Ok(())
}

/// How a provider stands that does not run.
///
/// # Errors
///
/// The folder or the configuration cannot be read.
pub fn status_at_rest(state: &StateFolder) -> Result<Status, RunError> {
    let config = Config::load(&state.config_path())?;
    let wishes = state.wishes()?;
    // A look without the lock: whoever starts it just now must not find the folder in use.
    let member = Glance::at(state.path())?;
    let gate = Gate::new(Clock::start(), limits(&config), wishes, state.usage(), Wall::now());
    let openness = *gate.openness().borrow();
    let account = gate.account();
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        running: false,
        provider: member.as_ref().map(|member| member.client.to_string()),
        network: member.as_ref().map(|member| member.link.network.to_string()),
        link: LinkStatus { state: "down".to_owned(), ..LinkStatus::default() },
        closed: openness.closed.map(|closed| closed.to_string()),
        paused: wishes.paused,
        bytes: byte_status(&account),
        limits: limit_status(&account),
        policy: policy_status(&config.policy()),
        held: state.held()?,
        folder: state.path().display().to_string(),
        now_ms: unix_ms(),
        ..Status::default()
    })
}

fn byte_status(account: &Account) -> ByteStatus {
    ByteStatus { today: account.usage.day_bytes, month: account.usage.month_bytes }
}

fn limit_status(account: &Account) -> LimitStatus {
    LimitStatus {
        month_bytes: account.month.map(|limit| limit.0),
        rate_mbit_s: account.limits.rate_mbit_s,
        streams: account.limits.streams,
        hours: account.limits.hours.to_string(),
    }
}

fn policy_status(policy: &Policy) -> PolicyStatus {
    PolicyStatus {
        ports: policy.ports().to_string(),
        allow_exact: policy.exact().iter().map(ToString::to_string).collect(),
    }
}

/// A variable that names no proxy is no reason to stay away: the straight way may be open.
fn ways(transport: LinkTransport) -> Ways {
    let ways = Ways::from_environment().unwrap_or_else(|error| {
        tracing::warn!("HTTPS_PROXY cannot be used: {error}");
        Ways::default()
    });
    match transport {
        LinkTransport::Auto => ways,
        LinkTransport::Direct => ways.always(Transport::Direct),
        LinkTransport::WebSocket => ways.always(Transport::WebSocket),
    }
}

#[derive(Debug)]
struct Node {
    uplink: Uplink,
    /// Given by the caller in place of the file.
    given: Option<Config>,
    config: Mutex<Config>,
    /// The usage that stands on the disk.
    kept: Mutex<Usage>,
}

impl Node {
    fn new(state: StateFolder, given: Option<Config>, membership: Arc<Membership>) -> Result<Self, RunError> {
        let config = match &given {
            Some(config) => config.clone(),
            None => Config::load(&state.config_path())?,
        };
        for exact in &config.egress.allow_exact {
            tracing::warn!("{exact} may be reached although the rules say no (egress.allow_exact)");
        }
        let clock = Clock::start();
        let usage = state.usage();
        let gate = Gate::new(clock, limits(&config), state.wishes()?, usage, Wall::now());
        let policy = policy(&config, Vec::new());
        let exit = Exit::new(policy, config.name_servers());
        let epoch = membership.take_epoch()?;
        let place = Place::new(state.held()?);
        let carrier = Arc::new(Carrier { exit, gate, ledger: crate::ledger::Ledger::default() });
        let uplink = Uplink {
            membership,
            carrier,
            state,
            clock,
            epoch,
            place,
            ways: ways(config.link.transport),
            retry: Notify::new(),
        };
        Ok(Self { uplink, given, config: Mutex::new(config), kept: Mutex::new(usage) })
    }

    fn gate(&self) -> &Gate {
        &self.uplink.carrier.gate
    }

    /// Takes no new streams once `shutdown` comes, and comes back when the last one has ended or the time is over.
    async fn until(&self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        self.gate().stop(Wall::now());
        let mut streams = self.gate().streams();
        let left = *streams.borrow();
        tracing::info!(streams = left, "stopping: no new streams");
        let drained = timeout(DRAIN_TIME, streams.wait_for(|streams| *streams == 0)).await.is_ok();
        if !drained {
            tracing::warn!("streams that did not end in time are cut");
        }
    }

    async fn housekeeping(&self) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = 0_u32;
        loop {
            ticks.tick().await;
            self.look(looks.is_multiple_of(KEEP_EVERY_LOOKS));
            if looks.is_multiple_of(MACHINE_EVERY_LOOKS) {
                self.uplink.carrier.exit.follow_system();
                self.follow_addresses().await;
            }
            looks = looks.wrapping_add(1);
        }
    }

    fn look(&self, keep: bool) {
        let usage = self.gate().look(Wall::now());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever carries nothing writes nothing.
        if keep && *kept != usage {
            match self.uplink.state.keep_usage(&usage) {
                Ok(()) => *kept = usage,
                Err(error) => tracing::error!("{error}"),
            }
        }
    }

    /// The policy follows the addresses of this machine and of the network's servers.
    async fn follow_addresses(&self) {
        let mut servers = Vec::new();
        for server in self.servers() {
            servers.extend(addresses_of(&server).await);
        }
        servers.truncate(SERVERS_MAX);
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let policy = policy(&config, servers.into_iter().map(Network::single).collect());
        if *self.uplink.carrier.exit.policy() != policy {
            self.uplink.carrier.exit.set_policy(policy);
        }
    }

    /// The network's servers, `host:port`.
    fn servers(&self) -> Vec<String> {
        let mut servers = self.uplink.membership.relays();
        servers.push(self.uplink.membership.link().address());
        servers
    }

    fn set_wishes(&self, change: impl FnOnce(&mut Wishes)) -> Result<(), StateError> {
        let mut wishes = self.gate().wishes();
        change(&mut wishes);
        self.uplink.state.keep_wishes(&wishes)?;
        self.gate().set_wishes(wishes, Wall::now());
        Ok(())
    }

    fn reload(&self) -> Result<(), RunError> {
        if self.given.is_some() {
            return Ok(());
        }
        let config = Config::load(&self.uplink.state.config_path())?;
        self.gate().set_limits(limits(&config), Wall::now());
        let mut policy_now = (*self.uplink.carrier.exit.policy()).clone();
        policy_now.take_rules_of(config.policy());
        self.uplink.carrier.exit.set_policy(policy_now);
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
        tracing::info!("configuration read again");
        Ok(())
    }

    fn status(&self) -> Status {
        self.look(false);
        let uplink = &self.uplink;
        let account = self.gate().account();
        let openness = *self.gate().openness().borrow();
        let policy = uplink.carrier.exit.policy();
        let named = |counts: BTreeMap<&'static str, u64>| {
            counts.into_iter().map(|(cause, count)| (cause.to_owned(), count)).collect()
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            running: true,
            provider: Some(uplink.membership.client().to_string()),
            network: Some(uplink.membership.network().to_string()),
            epoch: Some(uplink.epoch),
            link: uplink.place.status(uplink.membership.token_expires_at_ms()),
            closed: openness.closed.map(|closed| closed.to_string()),
            opens_at_ms: openness.opens_at_ms,
            paused: self.gate().wishes().paused,
            streams: StreamStatus {
                now: *self.gate().streams().borrow(),
                taken: account.taken,
                refused: named(uplink.carrier.ledger.refusals()),
                ended: named(uplink.carrier.ledger.ends()),
                braked: account.stops,
            },
            bytes: byte_status(&account),
            limits: limit_status(&account),
            policy: policy_status(&policy),
            held: uplink.place.held(),
            servers: self.servers(),
            folder: uplink.state.path().display().to_string(),
            now_ms: unix_ms(),
        }
    }
}

impl Answering for Node {
    fn answer(&self, command: Command) -> Reply {
        let done = match command {
            Command::Status => Ok(()),
            Command::Pause => self.set_wishes(|wishes| wishes.paused = true).map_err(RunError::from),
            Command::Resume => self.set_wishes(|wishes| wishes.paused = false).map_err(RunError::from),
            Command::Cap { bytes } => {
                let cap = bytes.map_or(MonthCap::Unlimited, MonthCap::Bytes);
                self.set_wishes(|wishes| wishes.month = Some(cap)).map_err(RunError::from)
            }
            Command::CapAsConfigured => self.set_wishes(|wishes| wishes.month = None).map_err(RunError::from),
            Command::Retry => {
                self.uplink.retry.notify_waiters();
                Ok(())
            }
            Command::Reload => self.reload(),
        };
        match done {
            Ok(()) => Reply::Status(Box::new(self.status())),
            Err(error) => Reply::Error(error.to_string()),
        }
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        month: config.limits.month,
        rate_mbit_s: config.limits.rate_mbit_s,
        streams: config.limits.streams,
        hours: config.limits.hours.clone(),
    }
}

fn policy(config: &Config, servers: Vec<Network>) -> Policy {
    let mut own = config.own_networks();
    match own_networks() {
        Ok(networks) => own.extend(networks),
        Err(error) => tracing::error!("this machine's own addresses are not known: {error}"),
    }
    let mut policy = config.policy();
    policy.set_own(own);
    policy.set_servers(servers);
    policy
}

/// The addresses of `host:port`.
async fn addresses_of(address: &str) -> Vec<IpAddr> {
    match address.rsplit_once(':').map(|(host, _)| host.parse()) {
        Some(Ok(Host::Address(address))) => vec![address],
        Some(Ok(Host::Name(_))) => {
            match timeout(SERVER_LOOKUP_TIME, tokio::net::lookup_host(address)).await {
                Ok(Ok(found)) => found.map(|found| found.ip()).collect(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}
