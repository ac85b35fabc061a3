//! What the data plane may cost, as counts that do not depend on how fast a machine is: system calls, instructions and
//! memory of the release build, and an idle process that does nothing at all. The bounds and where they come from stand in
//! `docs/decisions/0001-io.md`; time and a comparison with PgBouncer are what `holdfast bench cost` is for.
//!
//! The release build is made by the first test that needs it, which takes minutes on a fresh clone. Without strace or
//! valgrind their tests say that they are not run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and a count is worth a line"
)]

#[path = "support/support.rs"]
mod support;

#[path = "support/certificates.rs"]
mod certificates;
#[path = "support/tls_client.rs"]
mod tls_client;

#[path = "budget/idle.rs"]
mod idle;
#[path = "budget/instructions.rs"]
mod instructions;
#[path = "budget/release.rs"]
mod release;
#[path = "budget/system_calls.rs"]
mod system_calls;
#[path = "budget/tls.rs"]
mod tls;
#[path = "budget/work.rs"]
mod work;
