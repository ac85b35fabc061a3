//! The clock on the wall and the owner's calendar.

use clock::unix_ms;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, ZonedDateTime};

/// A moment as the owner's calendar and watch show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wall {
    /// Milliseconds since 1970.
    pub(crate) unix_ms: u64,
    /// The year and month, as 202612.
    pub(crate) month: u32,
    /// The day in it.
    pub(crate) day: u32,
    /// Minutes since midnight.
    pub(crate) minute: u16,
}

impl Wall {
    /// Now, in the zone of this machine.
    pub(crate) fn now() -> Self {
        Self::at(unix_ms(), &TimeZone::system())
    }

    pub(crate) fn at(unix_ms: u64, zone: &TimeZone) -> Self {
        let here = zoned(unix_ms, zone);
        Self {
            unix_ms,
            month: u32::from(here.year().unsigned_abs()) * 100 + u32::from(here.month().unsigned_abs()),
            day: here.day().unsigned_abs().into(),
            minute: u16::from(here.hour().unsigned_abs()) * 60 + u16::from(here.minute().unsigned_abs()),
        }
    }
}

/// When the next month begins here, in ms since 1970.
pub(crate) fn next_month_ms(unix_ms: u64) -> u64 {
    let here = zoned(unix_ms, &TimeZone::system());
    let first =
        here.first_of_month().and_then(|day| day.start_of_day()).and_then(|day| day.checked_add(1.month()));
    first.map_or(unix_ms, |day| u64::try_from(day.timestamp().as_millisecond()).unwrap_or(unix_ms))
}

/// A time of the local calendar, for people.
pub(crate) fn for_people(unix_ms: u64) -> String {
    zoned(unix_ms, &TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

fn zoned(unix_ms: u64, zone: &TimeZone) -> ZonedDateTime {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX).to_zoned_datetime(zone.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_shows_the_owners_time_and_the_next_month_comes_after_now() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // 2026-11-30 22:30 UTC.
        let wall = Wall::at(1_796_077_800_000, &zone);
        assert_eq!((wall.month, wall.day, wall.minute), (202_612, 1, 30));
        let next = next_month_ms(1_796_077_800_000);
        assert!(next > 1_796_077_800_000 && next < 1_796_077_800_000 + 32 * 86_400_000);
        assert_eq!(Wall::at(u64::MAX, &zone).day, 31, "the end of time is no reason to fall over");
    }
}
