//! Rules for work that has to wait: the waiting line, fairness between lines, pacing of logins, and what a failure means.
//!
//! No socket, no clock, no SQL: bytes and moments go in, decisions come out.

mod moment;

pub use moment::Moment;
