//! What an operator and the people behind the applications meet: logins, the console, reloads, signals, health, limits,
//! and start-up parameters.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/support.rs"]
mod support;

#[path = "operator/attempts.rs"]
mod attempts;
#[path = "operator/client_limits.rs"]
mod client_limits;
#[path = "operator/console.rs"]
mod console;
#[path = "operator/health.rs"]
mod health;
#[path = "operator/lanes.rs"]
mod lanes;
#[path = "operator/limits.rs"]
mod limits;
#[path = "operator/locks.rs"]
mod locks;
#[path = "operator/logins.rs"]
mod logins;
#[path = "operator/modes.rs"]
mod modes;
#[path = "operator/overload.rs"]
mod overload;
#[path = "operator/parameters.rs"]
mod parameters;
#[path = "operator/pool_limits.rs"]
mod pool_limits;
#[path = "operator/psql.rs"]
mod psql;
#[path = "operator/reload.rs"]
mod reload;
#[path = "operator/server_budget.rs"]
mod server_budget;
#[path = "operator/server_logins.rs"]
mod server_logins;
#[path = "operator/session_state.rs"]
mod session_state;
#[path = "operator/stalls.rs"]
mod stalls;
#[path = "operator/stopping.rs"]
mod stopping;
#[path = "operator/timeouts.rs"]
mod timeouts;
