//! Random sequences of messages, sent to PostgreSQL itself and through the pooler: the answers are the same, byte for
//! byte, but for what `compare.rs` lists.
//!
//! `SEED=7 SEEDS=20000 cargo nextest run -p holdfast --test differential` runs so many from there; `SEED=7` alone runs
//! that one. `AS_IT_IS=1` shows what fails without making it smaller, `CLIENTS=1` runs one script after the other.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/support.rs"]
mod support;

#[path = "support/certificates.rs"]
mod certificates;

#[path = "differential/campaign.rs"]
mod campaign;
#[path = "differential/compare.rs"]
mod compare;
#[path = "differential/compare_tests.rs"]
mod compare_tests;
#[path = "differential/generator.rs"]
mod generator;
#[path = "differential/play.rs"]
mod play;
#[path = "differential/script.rs"]
mod script;
#[path = "differential/shrink.rs"]
mod shrink;
#[path = "differential/sql.rs"]
mod sql;
#[path = "differential/step.rs"]
mod step;
#[path = "differential/tunnel.rs"]
mod tunnel;

use campaign::Campaign;
use generator::Features;

/// What clients may ask in session mode: all.
const SESSION: Features = Features {
    transactions: true,
    kept_statements: true,
    session_state: true,
    names_in_sql: true,
    stale_plans: true,
    syncs_among_data: true,
    reset_to_start: false,
};

/// In transaction mode.
const TRANSACTION: Features =
    Features { names_in_sql: false, stale_plans: false, syncs_among_data: false, ..SESSION };

/// In statement mode.
const STATEMENT: Features = Features { transactions: false, ..TRANSACTION };

/// Fewer servers than clients, who take turns: what would keep a server is left out, since it may be refused then.
const FEW: usize = 3;

/// A server for each client that keeps one, and more.
const ENOUGH: usize = 8;

const fn shared(features: Features) -> Features {
    Features { session_state: false, ..features }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_mode_answers_as_postgresql_does() {
    Campaign { mode: "session", pool_size: FEW, features: SESSION, tls: false, scripts: 1_000 }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_mode_answers_as_postgresql_does() {
    let features = shared(TRANSACTION);
    Campaign { mode: "transaction", pool_size: FEW, features, tls: false, scripts: 1_000 }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_mode_keeps_sessions_as_postgresql_does() {
    let features = TRANSACTION;
    Campaign { mode: "transaction", pool_size: ENOUGH, features, tls: false, scripts: 1_000 }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_mode_with_tls_answers_as_postgresql_does() {
    let features = shared(TRANSACTION);
    Campaign { mode: "transaction", pool_size: FEW, features, tls: true, scripts: 500 }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_mode_answers_as_postgresql_does() {
    let features = shared(STATEMENT);
    Campaign { mode: "statement", pool_size: FEW, features, tls: false, scripts: 500 }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_mode_keeps_sessions_as_postgresql_does() {
    let features = STATEMENT;
    Campaign { mode: "statement", pool_size: ENOUGH, features, tls: false, scripts: 500 }.run().await;
}
