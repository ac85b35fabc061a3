//! Single rules of the engine that random schedules reach seldom or never.

#![allow(unreachable_pub, dead_code, reason = "the modules of one test program")]
#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

#[path = "rules/attempts.rs"]
mod attempts;
#[path = "rules/back_pressure.rs"]
mod back_pressure;
#[path = "rules/bench.rs"]
mod bench;
#[path = "rules/budget.rs"]
mod budget_of_server;
#[path = "rules/departures.rs"]
mod departures;
#[path = "rules/events.rs"]
mod events;
#[path = "rules/lanes.rs"]
mod lanes;
#[path = "rules/limits.rs"]
mod limits;
#[path = "rules/lines.rs"]
mod lines;
#[path = "rules/locks.rs"]
mod locks;
#[path = "rules/logins.rs"]
mod logins;
#[path = "rules/modes.rs"]
mod modes;
#[path = "rules/overload_load.rs"]
mod overload_load;
#[path = "rules/overload.rs"]
mod overload_rules;
#[path = "rules/pools.rs"]
mod pools;
#[path = "simulation/random.rs"]
mod random;
#[path = "rules/reloads.rs"]
mod reloads;
#[path = "rules/running.rs"]
mod running;
#[path = "rules/session_state.rs"]
mod session_state;
#[path = "rules/stalls.rs"]
mod stalls;
#[path = "rules/statements.rs"]
mod statements;
#[path = "simulation/wire.rs"]
mod wire;
