//! Who is in and who is out: leases of sessions, and verdicts over relays. No socket, no clock, no SQL.

pub mod lease;
pub mod reaper;
