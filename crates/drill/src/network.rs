//! A whole network of real processes on loopback: PostgreSQL, a pooler, an api, a worker, relays, proxies, providers. Each role's
//! way to the pooler, and the pooler's way to PostgreSQL, lead through a relay of faults ([`crate::relay`]).
//!
//! Its roles are started with the files and verbs that an operator of many machines uses, and joined by codes as a stranger
//! joins: nothing here knows what is inside them.

mod files;
mod home;
mod people;
mod service;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};

pub use people::Customer;
pub use service::Service;

use crate::clock;
use crate::fleet::Guests;
use crate::namespaces::{Namespaces, Site};
use crate::port::PortLease;
use crate::postgres::{PostgresOptions, PrivatePostgres};
use crate::redis::{PrivateRedis, RedisCluster, RedisKind};
use crate::relay::Relay;
use files::{DATABASE, Files};
use home::Home;
use service::Start;

/// The password of the database's roles in a network that lives for minutes.
const PASSWORD: &str = "of-a-drill";
/// How long a provider may take to be connected after its start.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// How large a network is.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// The `holdfast` program.
    pub program: PathBuf,
    /// How many of each.
    pub relays: usize,
    /// See `relays`.
    pub proxies: usize,
    /// See `relays`.
    pub providers: usize,
    /// The one target that customers reach: of the drill's own; it is set before the network is started.
    pub target: SocketAddr,
    /// Further lines of `[relay]` in each relay's file.
    pub relay_lines: String,
    /// Further lines before all else in the files of api and worker.
    pub api_lines: String,
    /// See `api_lines`.
    pub worker_lines: String,
    /// Settings of PostgreSQL, each `name=value`.
    pub postgres_settings: Vec<String>,
    /// Where the cache of api and relays is.
    pub cache: CachePlace,
    /// Relays, proxies and providers stand in one of their own each, and all else in the first. None: all on loopback.
    pub namespaces: Option<Arc<Namespaces>>,
}

/// Where a network's cache is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachePlace {
    /// In each process.
    #[default]
    Process,
    /// One Redis.
    Single,
    /// A Redis Cluster of so many nodes.
    Cluster(usize),
}

/// A network's cache.
#[derive(Debug)]
pub enum CacheServers {
    /// None: each process has its own.
    None,
    /// One server.
    Single(PrivateRedis),
    /// A Cluster.
    Cluster(RedisCluster),
}

impl CacheServers {
    fn start(place: CachePlace) -> anyhow::Result<Self> {
        Ok(match place {
            CachePlace::Process => Self::None,
            CachePlace::Single => Self::Single(PrivateRedis::start(RedisKind::Redis, &[])?),
            CachePlace::Cluster(nodes) => Self::Cluster(RedisCluster::start(RedisKind::Redis, nodes)?),
        })
    }

    /// The section of a role's file.
    fn lines(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Single(redis) => format!("\n[cache]\nurl = \"{}\"\n", redis.url()),
            Self::Cluster(cluster) => {
                let further: Vec<String> =
                    cluster.nodes().iter().skip(1).map(|node| format!("\"{}\"", node.address())).collect();
                format!(
                    "\n[cache]\nurl = \"{}\"\ncluster = true\nnodes = [{}]\n",
                    cluster.node(0).url(),
                    further.join(", ")
                )
            }
        }
    }
}

impl NetworkOptions {
    /// One relay, one proxy, two providers, and no target yet.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            relays: 1,
            proxies: 1,
            providers: 2,
            target: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
            relay_lines: String::new(),
            api_lines: String::new(),
            worker_lines: String::new(),
            postgres_settings: Vec::new(),
            cache: CachePlace::default(),
            namespaces: None,
        }
    }

    /// Namespaces for a network of this size, one more than it needs at first.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.spare_site()
    }

    /// The number of the site of a relay; the first is the hub's.
    #[must_use]
    pub const fn relay_site(&self, number: usize) -> usize {
        2 + number
    }

    /// See [`Self::relay_site`].
    #[must_use]
    pub const fn proxy_site(&self, number: usize) -> usize {
        self.relay_site(self.relays) + number
    }

    /// See [`Self::relay_site`].
    #[must_use]
    pub const fn provider_site(&self, number: usize) -> usize {
        self.proxy_site(self.proxies) + number
    }

    /// Where nobody stands yet.
    #[must_use]
    pub const fn spare_site(&self) -> usize {
        self.provider_site(self.providers)
    }

    /// The site of that number, if there are any.
    #[must_use]
    pub fn site(&self, number: usize) -> Option<Site> {
        let number = u8::try_from(number).ok()?;
        self.namespaces.as_ref().map(|namespaces| namespaces.site(number))
    }

    /// Where api, pooler and target are reached.
    #[must_use]
    pub fn hub(&self) -> IpAddr {
        self.site(1).map_or(Ipv4Addr::LOCALHOST, |site| site.address()).into()
    }
}

/// The ways to the database, each with faults of its own.
#[derive(Debug)]
pub struct Paths {
    /// From the pooler to PostgreSQL.
    pub server: Relay,
    /// From the api to the pooler.
    pub api: Relay,
    /// From the worker to the pooler.
    pub worker: Relay,
    /// From each relay to the pooler.
    pub relays: Vec<Relay>,
}

/// A running network. Dropping it kills every process and removes every file.
#[derive(Debug)]
pub struct Network {
    // In the order in which they go.
    /// Providers, each with an account of its own on the network.
    pub providers: Vec<Service>,
    /// Proxies.
    pub proxies: Vec<Service>,
    /// Relays.
    pub relays: Vec<Service>,
    /// The worker.
    pub worker: Service,
    /// The api.
    pub api: Service,
    /// The pooler.
    pub pooler: Service,
    /// Ways to the database.
    pub paths: Paths,
    /// The database.
    pub postgres: PrivatePostgres,
    /// The cache.
    pub cache: CacheServers,
    customer: Customer,
    options: NetworkOptions,
    home: Home,
}

impl Network {
    /// Starts one, and waits until each provider is connected.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or something does not come up; the error quotes its log.
    pub fn start(options: NetworkOptions) -> anyhow::Result<Self> {
        // None, where all is on loopback.
        let sites = (1..=options.sites()).filter_map(|number| options.site(number));
        let home = Home::make(sites.map(|site| site.address()))?;
        let hub = options.hub();
        let cache = CacheServers::start(options.cache)?;
        let mut server = PostgresOptions::default();
        server.settings.extend(options.postgres_settings.iter().cloned());
        let postgres = PrivatePostgres::start(server)?;
        postgres.admin(&format!("create database {DATABASE}"))?;
        let files = Files { network: home.network, home: home.path(), password: PASSWORD };
        home.write("userlist.txt", &files.user_list())?;

        let to_server = Relay::start(postgres.tcp_address())?;
        let maker = Maker { options: &options, home: &home };
        let mut pooler = maker.service("pooler", "pooler", true, None)?;
        let at = pooler.listens_at()?;
        home.write("pooler.toml", &files.pooler(at, to_server.address()))?;
        let relays_paths: anyhow::Result<Vec<Relay>> =
            (0..options.relays).map(|_| Relay::start_on(hub, at)).collect();
        let paths = Paths {
            server: to_server,
            api: Relay::start_on(hub, at)?,
            worker: Relay::start_on(hub, at)?,
            relays: relays_paths?,
        };

        let mut api = maker.service("api", "api", true, None)?;
        let text = files.api(api.listens_at()?, paths.api.address());
        home.write("api.toml", &format!("{}\n{text}{}", options.api_lines, cache.lines()))?;
        home.folder("api")?;
        let mut worker = maker.service("worker", "worker", false, None)?;
        home.write(
            "worker.toml",
            &format!("{}\n{}", options.worker_lines, files.worker(paths.worker.address())),
        )?;
        let mut relays = Vec::new();
        for (number, path) in paths.relays.iter().enumerate() {
            let name = format!("relay-{number}");
            let relay = maker.service(&name, "relay", true, options.site(options.relay_site(number)))?;
            let text = files.relay(&name, relay.listens_at()?, path.address(), &options.relay_lines);
            home.write(&format!("{name}.toml"), &(text + &cache.lines()))?;
            home.folder(&name)?;
            relays.push(relay);
        }

        people::migrate(&postgres, PASSWORD)?;
        pooler.start()?;
        let url = files.url("api", paths.api.address());
        people::first_account(&url, home.network)?;
        api.start()?;
        worker.start()?;
        for relay in &mut relays {
            relay.start()?;
        }
        let customer = Customer::make(api.listens_at()?, home.network)?;
        let mut network = Self {
            providers: Vec::new(),
            proxies: Vec::new(),
            relays,
            worker,
            api,
            pooler,
            paths,
            postgres,
            cache,
            customer,
            options,
            home,
        };
        network.join()?;
        Ok(network)
    }

    /// The login of the proxies, and the account that pays.
    #[must_use]
    pub const fn customer(&self) -> &Customer {
        &self.customer
    }

    /// Where each proxy listens.
    #[must_use]
    pub fn proxy_addresses(&self) -> Vec<SocketAddr> {
        self.proxies.iter().filter_map(Service::address).collect()
    }

    /// How a provider says that it stands; null if it cannot be asked.
    #[must_use]
    pub fn provider_status(&self, number: usize) -> serde_json::Value {
        let state = self.home.file(&format!("provider-{number}"));
        let mut command = self.home.account.command(&self.options.program);
        command.args(["provider", "status", "--json", "--state"]).arg(state);
        let said = command.output().map(|output| output.stdout).unwrap_or_default();
        serde_json::from_slice(&said).unwrap_or_default()
    }

    /// How many connections a provider has had since its start.
    #[must_use]
    pub fn provider_connections(&self, number: usize) -> u64 {
        self.provider_status(number)["link"]["connections"].as_u64().unwrap_or(0)
    }

    /// Providers that only hold a link, with tokens of this network: for weight.
    ///
    /// # Errors
    /// Their process cannot be started, or they do not come in.
    pub fn guests(&self, relay: usize, count: usize) -> anyhow::Result<Guests> {
        let address = self.relays.get(relay).context("there is no such relay")?.listens_at()?;
        Guests::start(&self.options.program, &self.home.root, &self.home.token, address, relay * count, count)
    }

    /// Rows of the network's database, asked past all faults.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub fn ask(&self, sql: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
        self.postgres.admin_in(DATABASE, sql)
    }

    /// One number of the network's database; none: no row, or NULL.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub fn number(&self, sql: &str) -> anyhow::Result<Option<i64>> {
        let rows = self.ask(sql)?;
        let first = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        first.map(|text| text.parse().with_context(|| format!("no number: {text}"))).transpose()
    }

    /// A file or folder of the network: `relay-0`, `api.toml`.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.file(name)
    }

    /// The program, as the account that the roles run as.
    #[must_use]
    pub fn program(&self) -> std::process::Command {
        self.home.account.command(&self.options.program)
    }

    fn join(&mut self) -> anyhow::Result<()> {
        for number in 0..self.options.proxies {
            let name = format!("proxy-{number}");
            self.member(&name, "proxy")?;
            let site = self.options.site(self.options.proxy_site(number));
            let mut proxy =
                Maker { options: &self.options, home: &self.home }.service(&name, "proxy", true, site)?;
            let text = Files::proxy(proxy.listens_at()?, self.options.target);
            self.home.write(&format!("{name}/proxy.toml"), &text)?;
            proxy.start()?;
            self.proxies.push(proxy);
        }
        for _ in 0..self.options.providers {
            self.join_provider()?;
        }
        for number in 0..self.options.providers {
            let is_up = clock::wait_for(CONNECT_LIMIT, || {
                self.provider_status(number)["link"]["state"] == "connected"
            });
            ensure!(is_up, "provider-{number} is not connected:\n{}", self.providers[number].log());
        }
        Ok(())
    }

    /// One more provider joins and is started; its number. It need not be connected yet.
    ///
    /// # Errors
    /// The api's, or its process cannot be started.
    pub fn join_provider(&mut self) -> anyhow::Result<usize> {
        let number = self.providers.len();
        let name = format!("provider-{number}");
        self.member(&name, "provider")?;
        self.home.write(&format!("{name}/provider.toml"), &Files::provider(self.options.target))?;
        self.start_provider(&name, self.options.site(self.options.provider_site(number)))?;
        Ok(number)
    }

    /// Starts a copy of a provider's state folder, at the spare site: the same provider, with a later start; its number.
    ///
    /// # Errors
    /// The folder cannot be copied, or its process cannot be started.
    pub fn copy_provider(&mut self, of: usize) -> anyhow::Result<usize> {
        let number = self.providers.len();
        let name = format!("provider-{number}");
        let to = self.home.folder(&name)?;
        for entry in std::fs::read_dir(self.home.file(&format!("provider-{of}")))? {
            let entry = entry?;
            // Its socket stays where it is.
            if entry.file_type()?.is_file() {
                let copy = to.join(entry.file_name());
                std::fs::copy(entry.path(), &copy)?;
                self.home.account.give(&copy)?;
            }
        }
        self.start_provider(&name, self.options.site(self.options.spare_site()))?;
        Ok(number)
    }

    fn start_provider(&mut self, name: &str, site: Option<Site>) -> anyhow::Result<()> {
        let mut provider =
            Maker { options: &self.options, home: &self.home }.service(name, "provider", false, site)?;
        provider.start()?;
        self.providers.push(provider);
        Ok(())
    }

    /// How large it was to be.
    #[must_use]
    pub const fn options(&self) -> &NetworkOptions {
        &self.options
    }

    /// Joins by a code, as a stranger would.
    fn member(&self, name: &str, role: &str) -> anyhow::Result<()> {
        let folder = self.home.folder(name)?;
        let code = self.customer.join_code(role.parse()?)?;
        let code = self.home.write(&format!("{name}.code"), &code)?;
        let mut command = self.program();
        command.args([role, "join", &self.customer.link().to_string(), "--label", name, "--code-file"]);
        let output = command.arg(code).arg("--state").arg(folder).output()?;
        ensure!(output.status.success(), "{name} did not join: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

struct Maker<'a> {
    options: &'a NetworkOptions,
    home: &'a Home,
}

impl Maker<'_> {
    fn service(&self, name: &str, role: &str, listens: bool, site: Option<Site>) -> anyhow::Result<Service> {
        let file = |name: String| self.home.file(&name).display().to_string();
        let words = match role {
            "proxy" | "provider" => ["up", "--state"].map(str::to_owned).into_iter().collect(),
            _ => Vec::new(),
        };
        let last = if words.is_empty() { file(format!("{name}.toml")) } else { file(name.to_owned()) };
        let start = Start {
            name: name.to_owned(),
            program: self.options.program.clone(),
            words: std::iter::once(role.to_owned()).chain(words).chain([last]).collect(),
            account: self.home.account.clone(),
            home: self.home.path().to_owned(),
            ip: site.as_ref().map_or_else(|| self.options.hub(), |site| site.address().into()),
            site,
        };
        Ok(Service::new(start, if listens { Some(PortLease::take()?) } else { None }))
    }
}
