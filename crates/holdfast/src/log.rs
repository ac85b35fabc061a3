//! Log lines of the network's roles: to standard error, and to a writer of the role's own if it has one.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Mutex;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt};

/// What is logged, as `info`, or `provider=debug,info`.
const LEVEL_VARIABLE: &str = "HOLDFAST_LOG";

/// Starts to log; once in a process.
pub(crate) fn start(json: bool, also_to: Option<impl Write + Send + 'static>) -> anyhow::Result<()> {
    let filter = EnvFilter::builder()
        .with_env_var(LEVEL_VARIABLE)
        .with_default_directive(tracing::level_filters::LevelFilter::INFO.into());
    let stderr = fmt::layer().with_writer(io::stderr);
    let stderr = if json {
        stderr.json().flatten_event(true).boxed()
    } else {
        stderr.with_ansi(io::stderr().is_terminal()).boxed()
    };
    let file = also_to.map(|writer| fmt::layer().with_ansi(false).with_writer(Mutex::new(writer)).boxed());
    Registry::default().with(filter.from_env()?).with(stderr).with(file).try_init()?;
    Ok(())
}
