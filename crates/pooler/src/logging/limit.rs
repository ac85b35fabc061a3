//! A bound on how often one place in the code may log.

use overload::{Moment, RateLimited, TokenBucket};
use settings::pooler::LogFormat;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;
use tracing::callsite::Identifier;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Lines that one place may write at once after a quiet time.
pub const BURST_LINES: u32 = 20;

/// Lines a second that one place may write after that.
pub const LINES_PER_SECOND: u32 = 5;

/// Formats the events that pass.
pub(super) struct Limited<F> {
    inner: F,
    format: LogFormat,
    origin: Instant,
    /// As many entries as there are places that log, a number fixed when the program is built.
    places: Mutex<HashMap<Identifier, RateLimited>>,
}

impl<F> Limited<F> {
    pub(super) fn new(inner: F, format: LogFormat) -> Self {
        Self { inner, format, origin: Instant::now(), places: Mutex::default() }
    }

    /// How many lines were held back before this one; `None` if it is held back, too.
    fn allow(&self, place: Identifier) -> Option<u64> {
        let now = Moment::ORIGIN + self.origin.elapsed();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || RateLimited::new(TokenBucket::per_second(LINES_PER_SECOND, BURST_LINES));
        places.entry(place).or_insert_with(fresh).allow(now)
    }

    fn write_summary(&self, writer: &mut Writer<'_>, metadata: &Metadata<'_>, count: u64) -> fmt::Result {
        let (level, target) = (metadata.level(), metadata.target());
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let message = format!("{count} similar lines suppressed");
        match self.format {
            LogFormat::Text => writeln!(writer, "{time} {level:>5} {target}: {message}"),
            LogFormat::Json => {
                let line = serde_json::json!({
                    "timestamp": time, "level": level.as_str(), "message": message, "suppressed": count, "target": target,
                });
                writeln!(writer, "{line}")
            }
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    /// The error of a line that is held back is how the layer is told to write nothing.
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let suppressed = self.allow(metadata.callsite()).ok_or(fmt::Error)?;
        if suppressed > 0 {
            self.write_summary(&mut writer, metadata, suppressed)?;
        }
        self.inner.format_event(context, writer, event)
    }
}
