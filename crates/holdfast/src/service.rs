//! `holdfast api | relay | worker FILE`: one role of a network as a process of its own.

use crate::cli::ServiceArgs;
use crate::log;
use crate::process::{Told, carrying_runtime, raise_descriptors, refuse_root, small_runtime};
use crate::roles::relay_file;
use std::process::ExitCode;

pub(crate) fn api(arguments: &ServiceArgs) -> anyhow::Result<ExitCode> {
    let config = ready(arguments, "an api", || Ok(api::Config::read(&arguments.file)?))?;
    raise_descriptors();
    ended(carrying_runtime()?.block_on(async {
        let mut told = Told::listen()?;
        Ok(api::run(config, async move { told.times(1).await }).await?)
    }))
}

pub(crate) fn worker(arguments: &ServiceArgs) -> anyhow::Result<ExitCode> {
    let config = ready(arguments, "a worker", || Ok(worker::Config::read(&arguments.file)?))?;
    ended(small_runtime()?.block_on(async {
        let mut told = Told::listen()?;
        Ok(worker::run(config, async move { told.times(1).await }).await?)
    }))
}

/// The first signal drains, the second ends at once.
pub(crate) fn relay(arguments: &ServiceArgs) -> anyhow::Result<ExitCode> {
    let file = ready(arguments, "a relay", || relay_file::read(&arguments.file))?;
    raise_descriptors();
    ended(small_runtime()?.block_on(async {
        let mut first = Told::listen()?;
        let mut second = first.clone();
        relay_file::run(file, async move { first.times(1).await }, async move { second.times(2).await }).await
    }))
}

/// A mistake in the file is told before anything is begun.
fn ready<C>(
    arguments: &ServiceArgs,
    who: &str,
    read: impl FnOnce() -> anyhow::Result<C>,
) -> anyhow::Result<C> {
    let config = read()?;
    refuse_root(who)?;
    log::start(arguments.json_log, None::<std::io::Sink>)?;
    Ok(config)
}

fn ended(result: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    if let Err(error) = &result {
        tracing::error!("{error:#}");
    }
    Ok(if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
