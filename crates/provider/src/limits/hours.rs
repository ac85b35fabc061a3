//! The hours of a day in which a provider works.

use std::fmt;
use std::str::FromStr;

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// Spans at most.
const SPANS_MAX: usize = 12;

/// Spans of a day by the machine's own clock, such as `22:00-06:00, 12:00-13:00`. None means always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hours(Vec<(u16, u16)>);

/// Why a text names no hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no hours: write spans such as `22:00-06:00`, at most {SPANS_MAX}, with commas between them, or `always`"
)]
pub struct HoursError;

impl Hours {
    /// Whether `minute` of the day is inside.
    #[must_use]
    pub fn contain(&self, minute: u16) -> bool {
        self.0.is_empty() || self.0.iter().any(|(from, to)| minute_in(*from, *to, minute))
    }

    /// Minutes from `minute` until the hours begin; 0 if it is inside.
    #[must_use]
    pub fn minutes_until_open(&self, minute: u16) -> u16 {
        if self.contain(minute) {
            return 0;
        }
        self.0.iter().map(|(from, _)| (from + DAY - minute % DAY) % DAY).min().unwrap_or(0)
    }
}

/// A span over midnight is one, too; one from a minute to itself is the whole day.
const fn minute_in(from: u16, to: u16, minute: u16) -> bool {
    if from < to { from <= minute && minute < to } else { from <= minute || minute < to }
}

impl FromStr for Hours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, HoursError> {
        if text.trim() == "always" {
            return Ok(Self::default());
        }
        let spans: Vec<_> = text.split(',').map(span).collect::<Option<_>>().ok_or(HoursError)?;
        if spans.len() > SPANS_MAX { Err(HoursError) } else { Ok(Self(spans)) }
    }
}

fn span(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.trim().split_once('-')?;
    Some((time(from.trim())? % DAY, time(to.trim())? % DAY))
}

/// `24:00` is midnight, too.
fn time(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str, most: u16| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| digits && *number <= most)
    };
    let time = number(hour, 24)? * 60 + number(minute, 59)?;
    (time <= DAY).then_some(time)
}

impl fmt::Display for Hours {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("always");
        }
        for (place, (from, to)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(out, "{comma}{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_goes_over_midnight() {
        let night: Hours = "22:00-06:00, 12:30-13:00".parse().unwrap();
        for minute in [22 * 60, 23 * 60, 0, 5 * 60 + 59, 12 * 60 + 30, 12 * 60 + 59] {
            assert!(night.contain(minute), "{minute}");
        }
        for minute in [6 * 60, 12 * 60, 13 * 60, 21 * 60 + 59] {
            assert!(!night.contain(minute), "{minute}");
        }
        assert_eq!(night.minutes_until_open(6 * 60), 6 * 60 + 30);
        assert_eq!(night.minutes_until_open(21 * 60), 60);
        assert_eq!(night.minutes_until_open(23 * 60), 0);
        assert_eq!(night.to_string().parse(), Ok(night));
    }

    #[test]
    fn always_is_always_and_nonsense_is_refused() {
        let always: Hours = "always".parse().unwrap();
        assert!(always.contain(0) && always.contain(DAY - 1));
        assert!("00:00-24:00".parse::<Hours>().unwrap().contain(700));
        for text in
            ["", "22-06", "22:00", "25:00-06:00", "24:01-06:00", "22:60-06:00", "22:00-06:00,", "+1:00-2:00"]
        {
            assert!(text.parse::<Hours>().is_err(), "{text}");
        }
        assert!(vec!["1:00-2:00"; SPANS_MAX + 1].join(",").parse::<Hours>().is_err());
    }
}
