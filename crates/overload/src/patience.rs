//! How long a caller waits before it gives up: what it has declared, or what is known of it otherwise.

use std::time::Duration;

pub mod learnt;

/// The least target: a line that everybody leaves within this is no overload, however short the patience.
pub const LEAST_TARGET: Duration = Duration::from_millis(50);

/// A line stands once it has been above its target for so many targets (Nichols and Jacobson, "Controlling Queue Delay",
/// 2012: the interval is the time that callers need to react, here the patience itself).
pub const INTERVAL_IN_TARGETS: u32 = 10;

/// A caller's patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    limit_ms: u32,
    source: PatienceSource,
}

/// How a patience is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatienceSource {
    /// The client has said so.
    Declared,
    /// It ends its statements after that time.
    StatementTimeout,
    /// Callers like it were seen to leave after that time.
    Learnt,
}

impl PatienceSource {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Declared, Self::StatementTimeout, Self::Learnt];

    /// Its name in metrics and on the console.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::StatementTimeout => "statement_timeout",
            Self::Learnt => "learnt",
        }
    }
}

impl Patience {
    /// In whole milliseconds, at least one; what is longer than 49 days counts as that.
    #[must_use]
    pub fn new(limit: Duration, source: PatienceSource) -> Self {
        Self { limit_ms: u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1), source }
    }

    /// After so long the caller is gone.
    #[must_use]
    pub const fn limit(self) -> Duration {
        Duration::from_millis(self.limit_ms as u64)
    }

    /// How it is known.
    #[must_use]
    pub const fn source(self) -> PatienceSource {
        self.source
    }

    /// The wait that is no trouble to this caller: a tenth of its patience, and at least [`LEAST_TARGET`].
    #[must_use]
    pub fn target(self) -> Duration {
        (self.limit() / 10).max(LEAST_TARGET)
    }

    /// A line whose waits are above the target for so long stands.
    #[must_use]
    pub fn interval(self) -> Duration {
        self.target() * INTERVAL_IN_TARGETS
    }

    /// True if the caller is certain to be gone after it. What was learnt is a guess: whoever outlasts it proves it wrong, and
    /// must be able to.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        !matches!(self.source, PatienceSource::Learnt)
    }
}

/// A time as PostgreSQL writes those of its settings: a number of milliseconds, or with `us`, `ms`, `s`, `min`, `h` or `d`
/// behind it (PostgreSQL documentation, "Setting Parameters"). `None` for anything else, and for more than 30 years.
#[must_use]
pub fn postgres_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit_ms = match unit.trim_start() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1e3,
        "min" => 6e4,
        "h" => 3.6e6,
        "d" => 8.64e7,
        _ => return None,
    };
    let ms = number.parse::<f64>().ok()? * unit_ms;
    (ms <= 1e12).then(|| Duration::from_secs_f64(ms / 1e3))
}

#[cfg(test)]
mod tests;
