//! What people who run PostgreSQL poolers have reported, as tests against a real PostgreSQL: each is named after its
//! symptom and says at its top which report it tells.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/support.rs"]
mod support;

#[path = "bugs/cancel.rs"]
mod cancel;
#[path = "differential/compare.rs"]
mod compare;
#[path = "bugs/credentials.rs"]
mod credentials;
#[path = "bugs/deaths.rs"]
mod deaths;
#[path = "bugs/extended.rs"]
mod extended;
#[path = "bugs/fairness.rs"]
mod fairness;
#[path = "bugs/functions.rs"]
mod functions;
#[path = "bugs/large.rs"]
mod large;
#[path = "bugs/limits.rs"]
mod limits;
#[path = "bugs/login.rs"]
mod login;
#[path = "bugs/memory.rs"]
mod memory;
#[path = "bugs/prepared.rs"]
mod prepared;
#[path = "bugs/stalls.rs"]
mod stalls;
#[path = "bugs/twins.rs"]
mod twins;
#[path = "bugs/upgrade.rs"]
mod upgrade;
