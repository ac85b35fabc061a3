//! Rules for work that has to wait: the waiting line, fairness between lines, pacing of logins, and what a failure means.
//!
//! No socket, no clock, no SQL: bytes and moments go in, decisions come out.

pub mod attempts;
pub mod backoff;
pub mod bucket;
pub mod cause;
pub mod fair;
pub mod histogram;
pub mod lanes;
pub mod line;
pub mod lru;
mod moment;
pub mod newest;
pub mod pace;
pub mod pacing;
pub mod patience;
pub mod recovery;
pub mod running;
pub mod shedding;
pub mod storms;

pub use attempts::{AttemptLimits, AttemptRefusal, Attempts};
pub use backoff::{Backoff, JITTER_SHARE};
pub use bucket::{RateLimited, TokenBucket};
pub use cause::{Cause, Scope};
pub use fair::Rotation;
pub use histogram::{BOUNDS_US, LatencyHistogram};
pub use lanes::{LaneShare, Lanes, MAX_LANES};
pub use line::{Line, LineFull, Ticket};
pub use lru::Lru;
pub use moment::Moment;
pub use newest::Newest;
pub use pace::Pace;
pub use pacing::{LoginLimits, LoginPacer, RAMP_START, SLOW_FACTOR, SLOW_FLOOR, WINDOW_FLOOR};
pub use patience::learnt::LearntPatience;
pub use patience::{Patience, PatienceSource, postgres_time};
pub use recovery::{Admission, PROBE_PATIENCE, Recovery};
pub use running::{QueryTotals, RunningLimit};
pub use shedding::{ShedCause, Shedding, Verdict};
pub use storms::{StormReport, Storms};
