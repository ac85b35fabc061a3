//! Log lines to standard error, and to `logfile` if there is one.
//!
//! Lines are handed to a thread of their own through a bounded queue that drops and counts what does not fit, so that a
//! full disk or a stopped reader of standard error never stops the data plane. One place in the code may write only so
//! many lines a second; the next line that passes says how many were held back.

mod file;
mod limit;
#[cfg(test)]
mod tests;

use file::LogFile;
use limit::Limited;
use settings::pooler::LogFormat;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry, fmt, reload};

pub use limit::{BURST_LINES, LINES_PER_SECOND};

/// Lines that wait to be written, for each of standard error and the file; further ones are lost and counted.
pub const MAX_WAITING_LINES: usize = 8_192;

/// Whose lines `verbose` makes more of. What other crates say is shown from warnings up.
const OWN_TARGETS: &[&str] = &["drill", "holdfast", "overload", "pgwire", "pooler", "pooling", "settings"];

/// What and where to log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Shape of the lines.
    pub format: LogFormat,
    /// File to log to as well.
    pub logfile: Option<PathBuf>,
    /// 0 to 3; more is more.
    pub verbose: u8,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The file cannot be opened.
    #[error("cannot open logfile {}: {source}; create its folder or make it writable for this user", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something else in this process logs already.
    #[error("logging was started twice in this process")]
    Twice(#[from] SetGlobalDefaultError),
}

/// Keeps the log going; what still waits is written when it is dropped.
pub struct Logging {
    level: reload::Handle<Targets, Registry>,
    file: Option<Arc<LogFile>>,
    lost: Vec<ErrorCounter>,
    _workers: Vec<WorkerGuard>,
}

impl Logging {
    /// Starts to log, once in a process.
    ///
    /// # Errors
    /// [`LoggingError`].
    pub fn start(options: &LogOptions) -> Result<Self, LoggingError> {
        let mut writers = vec![non_blocking("log-stderr", std::io::stderr())];
        let mut file = None;
        if let Some(path) = &options.logfile {
            let opened =
                LogFile::open(path).map_err(|source| LoggingError::Open { path: path.clone(), source })?;
            let opened = Arc::new(opened);
            writers.push(non_blocking("log-file", file::Writer::new(Arc::clone(&opened))));
            file = Some(opened);
        }
        let lost = writers.iter().map(|(writer, _)| writer.error_counter()).collect();
        let (writers, workers): (Vec<_>, Vec<_>) = writers.into_iter().unzip();
        // Colours are for people alone.
        let ansi = file.is_none() && std::io::stderr().is_terminal();
        let (filter, level) = reload::Layer::new(targets(options.verbose));
        let subscriber =
            Registry::default().with(lines(options.format, tee(writers), ansi).with_filter(filter));
        tracing::subscriber::set_global_default(subscriber)?;
        Ok(Self { level, file, lost, _workers: workers })
    }

    /// Another `verbose` from now on.
    pub fn set_verbose(&self, verbose: u8) {
        if let Err(error) = self.level.reload(targets(verbose)) {
            tracing::error!(%error, "cannot change how much is logged");
        }
    }

    /// Opens the file anew before the next line, after it has been renamed by a log rotation.
    pub fn reopen(&self) {
        if let Some(file) = &self.file {
            file.reopen();
        }
    }

    /// A counter of the lines lost so far.
    pub fn lost_lines(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let lost = self.lost.clone();
        move || {
            let lines = lost.iter().map(ErrorCounter::dropped_lines).fold(0, usize::saturating_add);
            u64::try_from(lines).unwrap_or(u64::MAX)
        }
    }
}

impl std::fmt::Debug for Logging {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Logging").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The level of each crate.
fn targets(verbose: u8) -> Targets {
    let level = match verbose {
        0 => LevelFilter::INFO,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_targets(OWN_TARGETS.iter().map(|target| (*target, level)))
}

/// The layer that makes lines. Times are RFC 3339 in UTC.
fn lines<S>(format: LogFormat, writer: BoxMakeWriter, ansi: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    match format {
        LogFormat::Text => {
            let limited = Limited::new(fmt::format().with_ansi(ansi), format);
            fmt::layer()
                .event_format(limited)
                .with_ansi(ansi)
                .with_writer(writer)
                .log_internal_errors(false)
                .boxed()
        }
        LogFormat::Json => {
            let limited = Limited::new(fmt::format().json().flatten_event(true), format);
            fmt::layer()
                .fmt_fields(JsonFields::new())
                .event_format(limited)
                .with_writer(writer)
                .log_internal_errors(false)
                .boxed()
        }
    }
}

fn tee(writers: Vec<NonBlocking>) -> BoxMakeWriter {
    let mut all = BoxMakeWriter::new(std::io::sink);
    for (index, writer) in writers.into_iter().enumerate() {
        all = if index == 0 { BoxMakeWriter::new(writer) } else { BoxMakeWriter::new(all.and(writer)) };
    }
    all
}

fn non_blocking(thread: &str, writer: impl std::io::Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(MAX_WAITING_LINES)
        .thread_name(thread)
        .finish(writer)
}
