//! Which provider carries a stream: options in user names, candidates, stickiness, patience, retry budget.
//!
//! No socket, no clock, no SQL: names, lists and moments go in, picks and refusals come out.

pub mod budget;
pub mod candidate;
mod choice;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod hash;
pub mod health;
pub mod options;
pub mod patience;
pub mod pool;
pub mod selector;
pub mod sticky;

pub use budget::RetryBudget;
pub use candidate::{Candidate, Country, Snapshot};
pub use health::Fault;
pub use options::{Family, NameResolution, Options, Stickiness, Username, UsernameError, UsernameProblem};
pub use patience::Patience;
pub use selector::{NoCandidate, Pick, RetryRefused, Search, Selector};
