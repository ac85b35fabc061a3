//! What every role needs of its process: threads, descriptors, signals, and not to be root.

use anyhow::bail;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use std::future::Future;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Threads that carry streams, or requests.
const WORKERS_MAX: usize = 4;

/// A mistake in what faces strangers must not cost the machine.
pub(crate) fn refuse_root(who: &str) -> anyhow::Result<()> {
    if geteuid().is_root() {
        bail!("{who} does not run as root; make a user for it, or use a systemd unit (packaging/ has one)");
    }
    Ok(())
}

/// As many descriptors as the process may have.
pub(crate) fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!("the limit of descriptors stays as it is: {error}");
    }
}

/// For one thing at a time.
pub(crate) fn small_runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// For whoever carries streams or answers requests.
pub(crate) fn carrying_runtime() -> anyhow::Result<Runtime> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    Ok(Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
}

/// Comes back at SIGTERM or SIGINT.
pub(crate) fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let mut told = Told::listen()?;
    Ok(async move { told.times(1).await })
}

/// How often this process was told to stop, by SIGTERM or SIGINT.
#[derive(Clone)]
pub(crate) struct Told(watch::Receiver<u32>);

impl Told {
    /// Within a runtime.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (count, told) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(told))
    }

    /// Comes back when it was told so often.
    pub(crate) async fn times(&mut self, wanted: u32) {
        // The task that counts ends with the runtime.
        let _ = self.0.wait_for(|count| *count >= wanted).await;
    }
}
