//! What may stay in a session and cannot follow a client to another server.

use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(u8);

impl Held {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ADVISORY_LOCK: Self = Self(1);
    pub(crate) const TEMPORARY: Self = Self(1 << 1);
    pub(crate) const CURSOR: Self = Self(1 << 2);
    pub(crate) const STATEMENT: Self = Self(1 << 3);
    pub(crate) const LISTEN: Self = Self(1 << 4);
    /// A parameter that may have been set by a name that is not known, or one that is too long to follow.
    pub(crate) const UNNAMED: Self = Self(1 << 5);

    pub(crate) const ALL: [Self; 6] =
        [Self::ADVISORY_LOCK, Self::TEMPORARY, Self::CURSOR, Self::STATEMENT, Self::LISTEN, Self::UNNAMED];

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The first of them, for people.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|&kind| self.has(kind)).map_or("nothing", |kind| match kind {
            Self::ADVISORY_LOCK => "advisory lock of the session",
            Self::TEMPORARY => "temporary table",
            Self::CURSOR => "cursor WITH HOLD",
            Self::STATEMENT => "statement prepared by PREPARE",
            Self::LISTEN => "LISTEN",
            _ => "parameter set by set_config",
        })
    }
}

impl BitOr for Held {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Held {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOrAssign for Held {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
