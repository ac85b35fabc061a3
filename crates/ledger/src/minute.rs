//! Holds end at whole minutes, so that a slice has few of them.

const MINUTE_MS: u64 = 60_000;

/// A minute since 1970. A hold of this minute counts before it begins, and no more from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minute(u32);

impl Minute {
    /// The first minute that begins at this time or later.
    #[must_use]
    pub fn at_or_after(unix_ms: u64) -> Self {
        Self(u32::try_from(unix_ms.div_ceil(MINUTE_MS)).unwrap_or(u32::MAX))
    }

    /// The minute of this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The minute that is so many later.
    #[must_use]
    pub fn later_by(self, minutes: u32) -> Self {
        Self(self.0.saturating_add(minutes))
    }

    /// When it begins, ms since 1970.
    #[must_use]
    pub fn begins_at_ms(self) -> u64 {
        u64::from(self.0) * MINUTE_MS
    }

    /// Whether holds of this minute still count.
    #[must_use]
    pub fn counts_at(self, unix_ms: u64) -> bool {
        unix_ms < self.begins_at_ms()
    }
}
