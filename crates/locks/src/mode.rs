//! Lock modes and which of them exclude each other.

/// A lock mode, as PostgreSQL names it (documentation, "Explicit Locking", table 13.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// SELECT.
    AccessShare,
    /// SELECT FOR UPDATE and the like.
    RowShare,
    /// INSERT, UPDATE, DELETE.
    RowExclusive,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY, some forms of ALTER TABLE.
    ShareUpdateExclusive,
    /// CREATE INDEX.
    Share,
    /// CREATE TRIGGER, ADD FOREIGN KEY.
    ShareRowExclusive,
    /// REFRESH MATERIALIZED VIEW CONCURRENTLY.
    Exclusive,
    /// Most of ALTER TABLE, DROP, TRUNCATE, VACUUM FULL.
    AccessExclusive,
}

impl LockMode {
    /// All modes, the weakest first.
    pub const ALL: [Self; 8] = [
        Self::AccessShare,
        Self::RowShare,
        Self::RowExclusive,
        Self::ShareUpdateExclusive,
        Self::Share,
        Self::ShareRowExclusive,
        Self::Exclusive,
        Self::AccessExclusive,
    ];

    /// The mode of that name in `pg_locks.mode`; none for those of predicate locks (`SIReadLock`), which nobody waits for.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Its name in `pg_locks.mode`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessShare => "AccessShareLock",
            Self::RowShare => "RowShareLock",
            Self::RowExclusive => "RowExclusiveLock",
            Self::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            Self::Share => "ShareLock",
            Self::ShareRowExclusive => "ShareRowExclusiveLock",
            Self::Exclusive => "ExclusiveLock",
            Self::AccessExclusive => "AccessExclusiveLock",
        }
    }

    /// Whether two transactions cannot hold both on one object.
    #[must_use]
    pub const fn conflicts_with(self, other: Self) -> bool {
        self.conflicts() & (1 << other as u8) != 0
    }

    /// True for the modes that ordinary writes or reads have to wait for: what DDL asks for.
    #[must_use]
    pub const fn is_ddl(self) -> bool {
        self.conflicts_with(Self::RowExclusive)
    }

    const fn conflicts(self) -> u8 {
        match self {
            Self::AccessShare => 0b1000_0000,
            Self::RowShare => 0b1100_0000,
            Self::RowExclusive => 0b1111_0000,
            Self::ShareUpdateExclusive => 0b1111_1000,
            Self::Share => 0b1110_1100,
            Self::ShareRowExclusive => 0b1111_1100,
            Self::Exclusive => 0b1111_1110,
            Self::AccessExclusive => 0b1111_1111,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{self, *};

    #[test]
    fn conflicts_are_those_of_the_documentation() {
        let table = [
            (AccessShare, vec![AccessExclusive]),
            (RowShare, vec![Exclusive, AccessExclusive]),
            (RowExclusive, vec![Share, ShareRowExclusive, Exclusive, AccessExclusive]),
            (
                ShareUpdateExclusive,
                vec![ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive],
            ),
            (Share, vec![RowExclusive, ShareUpdateExclusive, ShareRowExclusive, Exclusive, AccessExclusive]),
        ];
        for (mode, with) in table {
            for other in LockMode::ALL {
                assert_eq!(mode.conflicts_with(other), with.contains(&other), "{mode:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_conflict_is_mutual_and_names_are_read_back() {
        for one in LockMode::ALL {
            assert_eq!(LockMode::parse(one.name()), Some(one));
            for other in LockMode::ALL {
                assert_eq!(one.conflicts_with(other), other.conflicts_with(one), "{one:?} {other:?}");
            }
        }
        assert_eq!(LockMode::parse("SIReadLock"), None);
        assert_eq!(LockMode::ALL.into_iter().filter(|mode| mode.is_ddl()).count(), 4);
    }
}
