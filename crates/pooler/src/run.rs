//! Running the pooler: bind everything, become who we are to be, start both planes, obey signals.

mod limits;
mod pidfile;
mod privileges;
mod reload;
mod signals;

pub use crate::reactor::listener::BindError;
pub use pidfile::PidfileError;
pub use privileges::PrivilegeError;
pub(crate) use reload::line as line_of;

use crate::console::ConsoleContext;
use crate::control::EngineHandle;
use crate::health::{self, HealthContext};
use crate::logging::Logging;
use crate::login_plane::request::{PlaneSender, channel};
use crate::login_plane::{LoginPlane, LoginPlaneError};
use crate::reactor::listener::{Listener, Listeners, UnixAccess, bind_tcp, bind_unix};
use crate::reactor::{Reactor, Seed};
use crate::tls::TlsContext;
use crate::truth::ConfigTruth;
use pidfile::Pidfile;
use settings::pooler::{General, Loaded, PoolerConfig};
use signals::{Orders, Signals};
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Threads for what blocks: name lookups, password hashing, reading the configuration.
const MAX_BLOCKING_THREADS: usize = 16;
/// Reloads that wait; one more is refused by the console and already covered after a signal.
const MAX_RELOADS: usize = 4;

/// What [`run`] needs.
#[derive(Debug)]
pub struct RunOptions {
    /// The file that HUP and RELOAD read again.
    pub config_path: PathBuf,
    /// What it said at the start.
    pub loaded: Loaded,
    /// What its TLS files hold.
    pub tls: TlsContext,
    /// The program's version, as the console shows it.
    pub version: &'static str,
    /// The log, which a reload opens anew and makes more or less of.
    pub logging: Arc<Logging>,
}

/// Why the pooler did not start, or ended on its own.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A listening socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The page of metrics and health.
    #[error(
        "cannot listen on metrics_listen {address}: {error}; stop what listens there, or choose another address"
    )]
    BindMetrics {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// There is no address at all.
    #[error("nothing to listen on: set listen_addr or unix_socket_dir")]
    NoListener,
    /// The pidfile.
    #[error(transparent)]
    Pidfile(#[from] PidfileError),
    /// Becoming another user.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// The system gives no poller, thread, runtime or signal handler.
    #[error("cannot start: {0}")]
    Start(#[source] io::Error),
    /// The poller failed.
    #[error("the reactor cannot go on: {0}")]
    Reactor(#[source] io::Error),
    /// A bug of ours; a half-dead pooler would be worse than none.
    #[error("the reactor ended by a panic: {0}")]
    ReactorPanicked(String),
    /// A bug of ours.
    #[error(transparent)]
    LoginPlane(#[from] LoginPlaneError),
}

/// How the reactor's thread ended.
type ReactorEnd = Result<io::Result<()>, String>;

/// Everything that is bound before privileges are given up.
struct Bound {
    listeners: Vec<Listener>,
    metrics: Option<std::net::TcpListener>,
}

/// Runs the pooler until it is told to stop. Logging must have been set up.
///
/// # Errors
/// [`RunError`]; before anything was served, except for the last three.
pub fn run(options: RunOptions) -> Result<(), RunError> {
    let config = Arc::new(options.loaded.config);
    let truth = ConfigTruth::new(options.config_path.clone(), options.loaded.files, Arc::clone(&config));
    let client_limit = limits::client_limit(&config);
    let pidfile = config.general.pidfile.as_deref().map(Pidfile::claim).transpose()?;
    let bound = bind_all(&config.general)?;
    let names: Vec<String> = bound.listeners.iter().map(Listener::name).collect();
    privileges::give_up(config.general.user.as_deref(), pidfile.as_ref())?;
    let seed = Seed::new(Listeners::new(bound.listeners)).map_err(RunError::Start)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .map_err(RunError::Start)?;
    tracing::info!(listen = names.join(", "), client_limit, version = options.version, "process up");
    let (path, version, logging, tls) = (options.config_path, options.version, options.logging, options.tls);
    let started = Started { config, client_limit, path, version, logging, tls, truth: Arc::new(truth) };
    let result = supervise(&runtime, seed, started, bound.metrics);
    // A name lookup may hang in the system for long.
    runtime.shutdown_background();
    drop(pidfile);
    result
}

struct Started {
    config: Arc<PoolerConfig>,
    client_limit: usize,
    path: PathBuf,
    version: &'static str,
    logging: Arc<Logging>,
    tls: TlsContext,
    truth: Arc<ConfigTruth>,
}

/// Starts the threads and waits until the reactor has ended.
fn supervise(
    runtime: &Runtime,
    seed: Seed,
    started: Started,
    metrics: Option<std::net::TcpListener>,
) -> Result<(), RunError> {
    let (plane_sender, requests) = channel();
    let inbox = seed.inbox();
    let handle = EngineHandle::new(Arc::clone(&inbox));
    let (reload_sender, reloads) = mpsc::channel(MAX_RELOADS);
    runtime.block_on(async move {
        // Before the reactor runs, so that no early signal finds nobody.
        let signals = Signals::install().map_err(RunError::Start)?;
        let console = Arc::new(
            ConsoleContext::new(handle.clone(), reload_sender.clone(), started.version)
                .with_truth(Arc::clone(&started.truth)),
        );
        let plane = tokio::spawn(LoginPlane::new(inbox, Arc::clone(&console)).run(requests));
        let lost_lines = Arc::new(started.logging.lost_lines());
        let health = Arc::new(HealthContext::new(handle.clone(), console, started.version, lost_lines));
        let reloading = reload::Reloading {
            handle: handle.clone(),
            path: started.path,
            started: Arc::clone(&started.config),
            logging: started.logging,
            tls: started.tls.clone(),
            truth: started.truth,
        };
        tokio::spawn(reloading.serve(reloads));
        if let Some(listener) = metrics {
            serve_health(listener, Arc::clone(&health)).map_err(RunError::Start)?;
        }
        let orders = Orders::new(handle, reload_sender, started.config.general.drain_timeout);
        let end = start_reactor(seed, started.config, started.client_limit, plane_sender, started.tls)?;
        // Bound long ago, and accepted from now on.
        health.set_listening(true);
        tokio::select! {
            end = end => match end {
                Ok(Ok(ended)) => ended.map_err(RunError::Reactor),
                Ok(Err(panic)) => Err(RunError::ReactorPanicked(panic)),
                Err(_) => Err(RunError::ReactorPanicked("no word of it".to_owned())),
            },
            error = failure_of(plane) => Err(error.into()),
            () = orders.obey(signals) => {
                tracing::warn!("the stop took too long, connections are cut off");
                Ok(())
            }
        }
    })
}

/// The login plane ends well only after the reactor, whose own word counts then.
async fn failure_of(plane: JoinHandle<Result<(), LoginPlaneError>>) -> LoginPlaneError {
    match plane.await {
        Ok(Ok(())) => std::future::pending().await,
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    }
}

/// Starts the reactor on a thread of its own; how it ended comes through the channel.
fn start_reactor(
    seed: Seed,
    config: Arc<PoolerConfig>,
    client_limit: usize,
    plane: PlaneSender,
    tls: TlsContext,
) -> Result<oneshot::Receiver<ReactorEnd>, RunError> {
    let (sender, end) = oneshot::channel();
    let body = move || {
        let run = || Reactor::new(seed, config, client_limit, plane, tls)?.run();
        let ended = catch_unwind(AssertUnwindSafe(run)).map_err(|panic| words_of(&*panic));
        drop(sender.send(ended));
    };
    std::thread::Builder::new().name("reactor".to_owned()).spawn(body).map_err(RunError::Start)?;
    Ok(end)
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(words) = panic.downcast_ref::<&str>() {
        (*words).to_owned()
    } else if let Some(words) = panic.downcast_ref::<String>() {
        words.clone()
    } else {
        "no words".to_owned()
    }
}

fn bind_all(general: &General) -> Result<Bound, RunError> {
    let mut listeners = Vec::new();
    for &address in &general.listen {
        listeners.push(bind_tcp(
            address,
            general.listen_backlog,
            general.so_reuseport,
            general.tcp_keepalive,
        )?);
    }
    if let Some(directory) = &general.unix_socket_dir {
        let access =
            UnixAccess { mode: general.unix_socket_mode, group: general.unix_socket_group.as_deref() };
        listeners.push(bind_unix(directory, general.listen_port, access, general.listen_backlog)?);
    }
    if listeners.is_empty() {
        return Err(RunError::NoListener);
    }
    let metrics = general.metrics_listen.map(|address| {
        let failed = |error| RunError::BindMetrics { address, error };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok::<_, RunError>(listener)
    });
    Ok(Bound { listeners, metrics: metrics.transpose()? })
}

fn serve_health(listener: std::net::TcpListener, health: Arc<HealthContext>) -> io::Result<()> {
    tokio::spawn(health::serve(tokio::net::TcpListener::from_std(listener)?, health));
    Ok(())
}
