//! What a look at PostgreSQL's locks means: who waits for whom, which pools pile up behind it, and what a policy does.
//!
//! No socket, no clock, no SQL sent: rows of `pg_locks` and moments go in, verdicts and actions come out. Beside it, the
//! lexical rules of SQL ([`sql`]): where a statement ends, and what of it may be shown.

#[cfg(test)]
mod fixtures;
mod judge;
mod memory;
mod mode;
mod policy;
mod rows;
pub mod sql;

pub use judge::{MAX_BLOCKERS_NAMED, Ours, Party, PileUp, is_pile, judge};
pub use memory::{ACT_AGAIN_AFTER, Action, MAX_ACTS, Memory, Verb};
pub use mode::LockMode;
pub use policy::Policy;
pub use rows::{Backend, LockRow, MAX_ROWS};
