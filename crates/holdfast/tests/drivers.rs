//! Real drivers, ORMs and tools: each runs its script of real work straight against PostgreSQL, which shows that the script
//! is right, and through holdfast. The scripts are in `drivers/` at the top; `scripts/drivers` installs what they need.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/certificates.rs"]
mod certificates;
#[path = "support/support.rs"]
mod support;

#[path = "drivers/matrix.rs"]
mod matrix;
#[path = "drivers/soak.rs"]
mod soak;
#[path = "drivers/tools.rs"]
mod tools;
#[path = "drivers/way.rs"]
mod way;
