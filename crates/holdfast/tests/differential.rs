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

use campaign::Campaign;
use generator::Features;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_mode_answers_as_postgresql_does() {
    let features = Features {
        transactions: true,
        kept_statements: true,
        session_state: true,
        names_in_sql: true,
        stale_plans: true,
        syncs_among_data: true,
        reset_to_start: false,
    };
    Campaign { mode: "session", pool_size: 4, features, scripts: 1_000 }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_mode_answers_as_postgresql_does() {
    let features = Features {
        transactions: true,
        kept_statements: true,
        session_state: true,
        names_in_sql: false,
        stale_plans: false,
        syncs_among_data: false,
        reset_to_start: false,
    };
    Campaign { mode: "transaction", pool_size: 8, features, scripts: 2_000 }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_mode_answers_as_postgresql_does() {
    let features = Features {
        transactions: false,
        kept_statements: true,
        session_state: true,
        names_in_sql: false,
        stale_plans: false,
        syncs_among_data: false,
        reset_to_start: false,
    };
    Campaign { mode: "statement", pool_size: 8, features, scripts: 1_000 }.run().await;
}
