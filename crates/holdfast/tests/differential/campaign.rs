//! Many scripts, by several clients at once, against PostgreSQL and then through the pooler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drill::postgres::{ADMIN_USER, PostgresOptions, PrivatePostgres, USER};
use drill::wire::{Address, ConnectOptions};
use tokio::task::JoinSet;

use crate::certificates::Files;
use crate::compare;
use crate::generator::{self, Features};
use crate::play::{Pace, play};
use crate::script::Script;
use crate::shrink;
use crate::support::{House, PATIENCE, eventually, holdfast};
use crate::tunnel::Tunnel;

/// Databases that are the same at the start, one for each side.
const DIRECT: &str = "direct";
const POOLED: &str = "pooled";

/// Clients at once, unless `CLIENTS` says another number.
const CLIENTS: u64 = 6;

/// The seed of the first script, unless `SEED` says another.
const FIRST_SEED: u64 = 1;

/// Lines of the pooler's log that a failure shows.
const LOG_LINES: usize = 60;

/// What is run, and how.
pub(crate) struct Campaign {
    pub(crate) mode: &'static str,
    pub(crate) pool_size: usize,
    pub(crate) features: Features,
    /// TLS to the pooler, and from it to the database.
    pub(crate) tls: bool,
    /// How many scripts, unless `SEEDS` says another number.
    pub(crate) scripts: u64,
}

/// What came of a script.
pub(crate) enum Outcome {
    Same,
    Differs(String),
    /// PostgreSQL itself ended the session.
    Invalid(String),
}

/// The two sides.
pub(crate) struct Sides {
    house: House,
    direct: ConnectOptions,
    pooled: ConnectOptions,
    clients: AtomicU64,
    _tunnel: Option<Tunnel>,
    _files: Option<Files>,
}

impl Sides {
    /// Plays a script against both, and tells where they differ.
    pub(crate) async fn play(&self, script: &Script) -> Outcome {
        let script = script.numbered(self.clients.fetch_add(1, Ordering::Relaxed));
        let direct = play(&self.direct, &script, &Pace::Listen).await;
        if let Some(trouble) = direct.trouble {
            return Outcome::Invalid(trouble);
        }
        let pooled = play(&self.pooled, &script, &Pace::Follow(&direct)).await;
        compare::difference(&direct, &pooled).map_or(Outcome::Same, Outcome::Differs)
    }
}

impl Campaign {
    /// Runs it, and fails the test with the smallest script found whose answers differ.
    pub(crate) async fn run(&self) {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let first = number("SEED").unwrap_or(FIRST_SEED);
        // A seed alone is that one script.
        let usual = if number("SEED").is_some() { 1 } else { self.scripts };
        let count = number("SEEDS").unwrap_or(usual);
        println!("{} mode, TLS {}: SEED={first} SEEDS={count}", self.mode, self.tls);
        let sides = Arc::new(self.sides().await);
        let next = Arc::new(AtomicU64::new(first));
        let mut clients = JoinSet::new();
        for _ in 0..number("CLIENTS").unwrap_or(CLIENTS) {
            let (sides, next, features) = (sides.clone(), next.clone(), self.features);
            clients.spawn(async move {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return None;
                    }
                    let script = generator::script(seed, features);
                    let difference = match sides.play(&script).await {
                        Outcome::Same => continue,
                        Outcome::Differs(difference) => difference,
                        Outcome::Invalid(trouble) => {
                            let log = sides.house.postgres.log();
                            panic!("SEED={seed} is not valid: {trouble}\n{script:?}\n{}", last_lines(&log))
                        }
                    };
                    next.store(u64::MAX / 2, Ordering::Relaxed);
                    return Some((seed, script, difference));
                }
            });
        }
        let mut failures: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
        failures.sort_by_key(|(seed, ..)| *seed);
        let seeds: Vec<u64> = failures.iter().map(|(seed, ..)| *seed).collect();
        if let Some((seed, script, difference)) = failures.into_iter().next() {
            let (smallest, again) = shrink::shrink(&sides, &script).await;
            let told = again.unwrap_or_else(|| format!("(not so when it runs alone)\n{difference}"));
            panic!(
                "{} mode, SEED={seed} (all that failed: {seeds:?}): the pooler answers otherwise than PostgreSQL\n{smallest:?}\n{told}\n{}",
                self.mode,
                last_lines(&sides.house.pooler.log())
            );
        }
        self.assert_clean(&sides).await;
    }

    async fn sides(&self) -> Sides {
        let files = self.tls.then(Files::new);
        let mut options = PostgresOptions::default()
            .setting("log_min_messages", "log")
            .setting("log_connections", "off")
            .setting("log_disconnections", "off");
        if let Some(files) = &files {
            let certificate = files.authority.certify("127.0.0.1");
            options = options.tls(&certificate.pem, &certificate.key);
        }
        let postgres = PrivatePostgres::start(options).unwrap();
        for database in [DIRECT, POOLED] {
            postgres.admin(&format!("create database {database} owner {USER}")).unwrap();
        }
        let direct = ConnectOptions::new(Address::Tcp(postgres.tcp_address()), USER, DIRECT);
        let house = House::build_on(&holdfast(), postgres, false, |setup, _| {
            let setup = setup
                .setting("pool_mode", self.mode)
                .setting("default_pool_size", &self.pool_size.to_string());
            let Some(files) = &files else { return setup };
            files
                .offer(setup, "require")
                .setting("server_tls_sslmode", "verify-full")
                .setting("server_tls_ca_file", &files.path("ca.pem"))
        });
        let mut pooled = house.pooler.connect_options(USER, POOLED);
        let mut tunnel = None;
        if let Some(files) = &files {
            let opened = Tunnel::open(house.pooler.address(), &files.authority.pem).await.unwrap();
            pooled.address = Address::Tcp(opened.address);
            tunnel = Some(opened);
        }
        Sides { house, direct, pooled, clients: AtomicU64::new(1), _tunnel: tunnel, _files: files }
    }

    /// Nothing is left of clients that have gone.
    async fn assert_clean(&self, sides: &Sides) {
        let busy = || {
            let backends = sides.house.postgres.backends().unwrap();
            backends
                .into_iter()
                .filter(|backend| backend.user != ADMIN_USER && backend.state != "idle")
                .count()
        };
        eventually(PATIENCE, "every backend is idle", || busy() == 0).await;
        let log = sides.house.pooler.log();
        let out_of_step = log.lines().find(|line| line.contains("was due: the connection is closed"));
        assert_eq!(out_of_step, None);
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
