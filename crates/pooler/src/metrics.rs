//! Metrics in the OpenMetrics and the Prometheus text format, made afresh from one [`Overview`] at each scrape.
//!
//! The engine counts in plain numbers; nothing here runs between two scrapes.

mod collector;
mod fold;
#[cfg(test)]
mod tests;

use collector::OverviewCollector;
use pooling::snapshot::Overview;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;
use std::fmt;
use std::time::SystemTime;

pub use fold::{MAX_LABELLED_POOLS, OTHER};

/// Media type of [`Format::OpenMetrics`].
pub const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The shape of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0, for those who ask for it.
    OpenMetrics,
    /// Prometheus text 0.0.4.
    Prometheus,
}

impl Format {
    /// What an Accept header asks for.
    #[must_use]
    pub fn from_accept(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The Content-Type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => OPEN_METRICS_TYPE,
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// What is true of the process and not of the engine.
#[derive(Clone, Copy, Debug)]
pub struct ProcessFacts {
    /// holdfast's version.
    pub version: &'static str,
    /// When the process started.
    pub started: SystemTime,
    /// Log lines that were lost because the log could not be written fast enough.
    pub log_lines_lost: u64,
    /// Whether what runs is what the file says; none without a file.
    pub config: Option<ConfigFacts>,
}

/// Whether what runs is what the file says.
#[derive(Clone, Copy, Debug)]
pub struct ConfigFacts {
    /// Settings that differ between the file and what was loaded.
    pub not_reloaded: usize,
    /// Settings that were loaded and wait for a restart.
    pub pending_restart: usize,
    /// The file cannot be loaded as it stands.
    pub broken: bool,
}

/// The text of all metrics.
///
/// # Errors
/// None that can be caused from outside: the text is written to memory.
pub fn encode(overview: Overview, process: ProcessFacts, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("holdfast_pooler");
    registry.register_collector(Box::new(OverviewCollector::new(overview, process)));
    let mut out = String::new();
    match format {
        Format::OpenMetrics => text::encode(&mut out, &registry)?,
        Format::Prometheus => prometheus_text::encode(&mut out, &registry)?,
    }
    Ok(out)
}
