//! Times cross the room's door as ms since 1970.

use std::time::{Duration, SystemTime};

/// As the database takes it.
pub(crate) fn from_ms(unix_ms: u64) -> SystemTime {
    // Beyond the year 200,000 the database has no times.
    SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms.min(1 << 52))
}

/// As it comes out; a time before 1970 is 1970.
pub(crate) fn to_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
