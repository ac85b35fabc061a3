//! Chunks: what one lock stands for.

/// Some places of the budget. Its key holds its size, so that poolers with other terms know what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chunk {
    index: u16,
    places: u16,
}

impl Chunk {
    /// Most chunks of one budget.
    pub const MAX_COUNT: usize = 1 << 16;
    /// Most places of one chunk.
    pub const MAX_PLACES: usize = (1 << 12) - 1;

    /// The chunk of this number, of so many places. Both stay within what a key holds.
    #[must_use]
    pub fn new(index: usize, places: usize) -> Self {
        Self { index: u16::try_from(index).unwrap_or(u16::MAX), places: places.min(Self::MAX_PLACES) as u16 }
    }

    /// The second half of the lock's key: the size above the low 16 bits, the number in them.
    #[must_use]
    pub fn key(self) -> i32 {
        i32::from(self.places) << 16 | i32::from(self.index)
    }

    /// What a key stands for; `None` for one that is none of ours.
    #[must_use]
    pub fn from_key(key: i64) -> Option<Self> {
        let places =
            u16::try_from(key >> 16).ok().filter(|places| usize::from(*places) <= Self::MAX_PLACES)?;
        Some(Self { index: (key & 0xffff) as u16, places })
    }

    /// Connections that it allows.
    #[must_use]
    pub fn places(self) -> usize {
        self.places.into()
    }

    /// Its number.
    #[must_use]
    pub fn index(self) -> usize {
        self.index.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_number_and_size_and_is_a_positive_integer_of_the_server() {
        for (index, places) in [(0, 1), (7, 4), (65_535, Chunk::MAX_PLACES)] {
            let chunk = Chunk::new(index, places);
            assert!(chunk.key() > 0);
            assert_eq!(Chunk::from_key(chunk.key().into()), Some(chunk));
        }
        assert_eq!(Chunk::new(70_000, 5_000), Chunk::new(65_535, Chunk::MAX_PLACES));
        assert_eq!(Chunk::from_key(-1), None);
        assert_eq!(Chunk::from_key(i64::from(u32::MAX)), None);
    }
}
