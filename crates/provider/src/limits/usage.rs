//! Bytes carried, by day and by month of the owner's calendar.

use crate::wall::Wall;
use serde::{Deserialize, Serialize};

/// What has been carried, both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// The year and month, as 202612.
    pub month: u32,
    /// Bytes in it.
    pub month_bytes: u64,
    /// The day of it.
    pub day: u32,
    /// Bytes on it.
    pub day_bytes: u64,
}

impl Usage {
    /// Moves on to the day of `wall`. A clock that is set back into an earlier month does not give the month's bytes back.
    pub(crate) fn turn(&mut self, wall: Wall) {
        if wall.month > self.month {
            *self = Self { month: wall.month, day: wall.day, ..Self::default() };
        } else if wall.month == self.month && wall.day != self.day {
            (self.day, self.day_bytes) = (wall.day, 0);
        }
    }

    /// Adds bytes.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.month_bytes = self.month_bytes.saturating_add(bytes);
        self.day_bytes = self.day_bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(month: u32, day: u32) -> Wall {
        Wall { unix_ms: 0, month, day, minute: 0 }
    }

    #[test]
    fn days_and_months_begin_at_nothing_and_a_clock_set_back_gives_nothing_away() {
        let mut usage = Usage::default();
        usage.turn(wall(202_611, 30));
        usage.add(5);
        assert_eq!((usage.day_bytes, usage.month_bytes), (5, 5));
        usage.turn(wall(202_612, 1));
        assert_eq!((usage.day_bytes, usage.month_bytes), (0, 0));
        usage.add(7);
        usage.turn(wall(202_612, 2));
        usage.add(1);
        assert_eq!((usage.day_bytes, usage.month_bytes), (1, 8));
        usage.turn(wall(202_611, 30));
        assert_eq!(usage.month_bytes, 8);
        usage.turn(wall(202_701, 1));
        assert_eq!(usage.month_bytes, 0);
    }
}
