//! What stands in the files.

use crate::limits::ByteCount;
use client::Pace;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A credential that was definitely refused. It is not tried again by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The code of the refusal.
    pub code: String,
    /// What was said.
    pub cause: String,
    /// When, ms since 1970.
    pub at_ms: u64,
    /// The version of this program then: a version that is too old is no longer when it is replaced.
    pub version: String,
}

/// What the owner has said by command. It stands above the configuration file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wishes {
    /// No new streams.
    pub paused: bool,
    /// Bytes a month in place of the file's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<MonthCap>,
}

/// A limit that was given by command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MonthCap {
    /// None at all, whatever the file says.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
}

impl MonthCap {
    /// The limit.
    #[must_use]
    pub const fn limit(self) -> Option<ByteCount> {
        match self {
            Self::Unlimited => None,
            Self::Bytes(bytes) => Some(ByteCount(bytes)),
        }
    }
}

/// How fast to come back, in ms.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaceMs {
    base_ms: u64,
    cap_ms: u64,
    stable_after_ms: u64,
}

impl PaceMs {
    pub(super) fn of(pace: Pace) -> Self {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self { base_ms: ms(pace.base), cap_ms: ms(pace.cap), stable_after_ms: ms(pace.stable_after) }
    }

    pub(super) const fn pace(self) -> Pace {
        Pace {
            base: Duration::from_millis(self.base_ms),
            cap: Duration::from_millis(self.cap_ms),
            stable_after: Duration::from_millis(self.stable_after_ms),
        }
    }
}
