//! All roles but the pooler in one process, as `holdfast up` runs them: wired by the files in its data folder.

pub(crate) mod relay_file;

use crate::log;
use crate::process::carrying_runtime;
use anyhow::{Context as _, anyhow};
use client::Membership;
use provider::StateFolder;
use std::fmt::Display;
use std::future::{Future, pending};
use std::net::Ipv4Addr;
use std::sync::Arc;
use supervisor::{DataFolder, OPERATOR, Owner, serve_demonstration};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Runs them until SIGTERM; ends with the first of them that fails.
pub(crate) fn run(data: &DataFolder) -> anyhow::Result<()> {
    log::start(false, None::<std::io::Sink>)?;
    carrying_runtime()?.block_on(all(data)).inspect_err(|error| tracing::error!("{error:#}"))
}

async fn all(data: &DataFolder) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let owner = Owner::open(data)?;
    let mut services = Group::default();
    let mut carriers = Group::default();
    let result = tokio::select! {
        result = start(data, &owner, &mut services, &mut carriers, &mut terminate) => result,
        ended = demonstrate(&owner) => ended,
    };
    // Those that carry streams go first: they still need the others.
    carriers.stop().await;
    services.stop().await;
    result
}

async fn start(
    data: &DataFolder,
    owner: &Owner,
    services: &mut Group,
    carriers: &mut Group,
    terminate: &mut Signal,
) -> anyhow::Result<()> {
    let config = api::Config::read(&data.file("api.toml"))?;
    let store = config.database.open(config.network)?;
    api::ensure_account(&store, OPERATOR, owner.password(), true).await.context("the operator's account")?;
    services.add("api", |stop| api::run(config, stop));
    let config = worker::Config::read(&data.file("worker.toml"))?;
    services.add("worker", |stop| worker::run(config, stop));
    let file = relay_file::read(&data.file("relay.toml"))?;
    services.add("relay", |stop| relay_file::run(file, pending(), stop));
    tokio::select! {
        provisioned = owner.provision() => provisioned?,
        ended = services.first_end() => return ended,
        _ = terminate.recv() => return Ok(()),
    }
    let config = proxy::Config::load(&data.file("proxy.toml"))?;
    let membership = Arc::new(Membership::open(&data.file("proxy"))?);
    carriers.add("proxy", |stop| proxy::run(config, membership, stop));
    let state = StateFolder::open(&data.file("provider"))?;
    carriers.add("provider", |stop| provider::run(state, None, stop));
    tokio::select! {
        ended = services.first_end() => ended,
        ended = carriers.first_end() => ended,
        _ = terminate.recv() => Ok(()),
    }
}

async fn demonstrate(owner: &Owner) -> anyhow::Result<()> {
    let target = (Ipv4Addr::LOCALHOST, owner.settings().ports.demonstration);
    match serve_demonstration(target.into()).await.context("the demonstration target")? {}
}

/// Roles that are stopped together.
struct Group {
    stop: watch::Sender<bool>,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Default for Group {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false), tasks: JoinSet::new() }
    }
}

impl Group {
    fn add<F, E>(&mut self, name: &'static str, run: impl FnOnce(StopFuture) -> F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        let mut stop = self.stop.subscribe();
        let role = run(Box::pin(async move {
            // Nobody is left who could say so: that is a stop too.
            let _ = stop.wait_for(|stop| *stop).await;
        }));
        self.tasks.spawn(async move { role.await.map_err(|error| anyhow!("{name}: {error}")) });
    }

    /// The first of them that ends, which none does by itself.
    async fn first_end(&mut self) -> anyhow::Result<()> {
        match self.tasks.join_next().await {
            Some(ended) => ended?.and(Err(anyhow!("a role ended by itself"))),
            None => pending().await,
        }
    }

    async fn stop(&mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended.map_err(anyhow::Error::from).flatten() {
                tracing::error!("{error:#}");
            }
        }
    }
}

type StopFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
