//! The pooler's drivers: what moves bytes, opens connections and tells the time for the rules in `pooling`.
//!
//! Two planes. The `reactor` owns every logged-in socket on one thread, without an async runtime and without a lock
//! per transaction. The `login_plane` beside it, on tokio, does what may block or takes milliseconds: names, server
//! logins, password hashing, cancel requests, the console and the metrics page. [`run`] starts both.

pub mod console;
pub mod control;
pub mod health;
pub mod logging;
mod login_plane;
pub mod metrics;
mod reactor;
pub mod run;
pub mod tls;
pub mod truth;
