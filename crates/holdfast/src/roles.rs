//! All roles but the pooler in one process, as `holdfast up` runs them: wired by the files in its data folder.

pub(crate) mod relay_file;

use crate::log;
use crate::process::carrying_runtime;
use anyhow::{Context as _, anyhow};
use api::AccountError;
use client::Membership;
use provider::StateFolder;
use std::fmt::Display;
use std::future::{Future, pending};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use supervisor::{DataFolder, OPERATOR, Owner, serve_demonstration};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Rest while the database gives no answer.
const ASK_AGAIN: Duration = Duration::from_secs(1);

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
    services.add("api", |stop| api::run(config, stop));
    let config = worker::Config::read(&data.file("worker.toml"))?;
    services.add("worker", |stop| worker::run(config, stop));
    let file = relay_file::read(&data.file("relay.toml"))?;
    services.add("relay", |stop| relay_file::run(file, pending(), stop));
    let prepared = prepare(&store, owner);
    tokio::pin!(prepared);
    // A network that has been up before needs nobody's leave to start again: its database may be away.
    let is_known = owner.has_joined();
    if !is_known {
        tokio::select! {
            prepared = &mut prepared => prepared?,
            ended = services.first_end() => return ended,
            _ = terminate.recv() => return Ok(()),
        }
    }
    let config = proxy::Config::load(&data.file("proxy.toml"))?;
    let membership = Arc::new(Membership::open(&data.file("proxy"))?);
    carriers.add("proxy", |stop| proxy::run(config, membership, stop));
    let state = StateFolder::open(&data.file("provider"))?;
    carriers.add("provider", |stop| provider::run(state, None, stop));
    let prepared = async {
        if is_known && let Err(error) = prepared.await {
            // It stands as it was before.
            tracing::error!("what a new network needs was not looked after: {error:#}");
        }
        pending::<()>().await;
    };
    tokio::select! {
        ended = services.first_end() => ended,
        ended = carriers.first_end() => ended,
        () = prepared => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// Sees to what a new network needs, when its database answers.
async fn prepare(store: &Store, owner: &Owner) -> anyhow::Result<()> {
    loop {
        match api::ensure_account(store, OPERATOR, owner.password(), true).await {
            Ok(_) => break,
            Err(AccountError::Store(error)) if error.is_silence() => {
                tracing::warn!(%error, "the operator's account waits for the database");
                sleep(ASK_AGAIN).await;
            }
            Err(error) => return Err(error).context("the operator's account"),
        }
    }
    Ok(owner.provision().await?)
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
