//! One declaration for each table: who writes it, what keeps it small, and what it grows with.
//!
//! The database's grants are made from it, a test holds it against the real catalogue, and what watches sizes reads it.

mod grants;
mod tables;

pub use tables::TABLES;

pub(crate) use grants::statements;

/// A role of the program that has a role of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writer {
    /// `holdfast_api`.
    Api,
    /// `holdfast_relay`.
    Relay,
    /// `holdfast_worker`.
    Worker,
    /// Whoever migrates; no role at run time.
    Migration,
}

impl Writer {
    /// The roles that log in at run time.
    pub const AT_RUN_TIME: [Self; 3] = [Self::Api, Self::Relay, Self::Worker];

    /// Name of the database's role.
    #[must_use]
    pub fn database_role(self) -> &'static str {
        match self {
            Self::Api => "holdfast_api",
            Self::Relay => "holdfast_relay",
            Self::Worker => "holdfast_worker",
            Self::Migration => "holdfast_migration",
        }
    }
}

/// What a writer does with its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbs {
    /// INSERT only.
    Insert,
    /// INSERT and UPDATE.
    InsertUpdate,
    /// INSERT, UPDATE and DELETE.
    All,
}

/// What keeps a table from growing for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It has a bound by its nature.
    Bounded {
        /// Which.
        by: &'static str,
    },
    /// The worker deletes rows some time after the moment in `column`.
    Sweep {
        /// A time, or a minute since 1970.
        column: &'static str,
        /// How long a row is kept behind that moment, s.
        keep_s: u64,
    },
    /// The worker takes rows out when their work is done.
    Queue,
    /// Whole partitions are dropped.
    Partitions {
        /// How old the rows of one are by then, s.
        keep_s: u64,
    },
    /// It is never emptied, and its growth is small beside everything else.
    Forever {
        /// Why that is fine.
        because: &'static str,
    },
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name in schema `public`.
    pub name: &'static str,
    /// The only role that inserts and updates.
    pub writer: Writer,
    /// What it does.
    pub verbs: Verbs,
    /// Who else reads it. The worker reads and the sweep deletes what [`Life`] says.
    pub readers: &'static [Writer],
    /// What keeps it small.
    pub life: Life,
    /// What a row stands for.
    pub grows_with: &'static str,
}

impl Table {
    /// Whether the worker may delete rows.
    #[must_use]
    pub fn is_drained_by_worker(&self) -> bool {
        matches!(self.life, Life::Sweep { .. } | Life::Queue)
    }
}

#[cfg(test)]
mod tests;
