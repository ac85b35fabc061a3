//! The lanes.

/// How many there are.
pub const LANES: usize = 5;

/// Kinds of work that must not hold each other up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Settling, charging, releasing holds.
    Ledger,
    /// Judging relays.
    Membership,
    /// Building pools.
    Pools,
    /// Sweeping, partitions, moving tasks that are due.
    Upkeep,
    /// All else.
    General,
}

impl Lane {
    /// Each once, in the order of [`Lane::index`].
    pub const ALL: [Self; LANES] = [Self::Ledger, Self::Membership, Self::Pools, Self::Upkeep, Self::General];

    /// Its place in arrays, and its number in the database.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Ledger => 0,
            Self::Membership => 1,
            Self::Pools => 2,
            Self::Upkeep => 3,
            Self::General => 4,
        }
    }

    /// A name, for metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Membership => "membership",
            Self::Pools => "pools",
            Self::Upkeep => "upkeep",
            Self::General => "general",
        }
    }

    /// Places that are kept for it, whatever the others have to do. The ledger has most: what is late there is money.
    #[must_use]
    pub const fn guaranteed(self) -> usize {
        match self {
            Self::Ledger => 4,
            Self::Membership | Self::Pools | Self::Upkeep => 2,
            Self::General => 1,
        }
    }
}
