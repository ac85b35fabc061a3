//! A provider in a network of one relay: what its owner, its openers and its enemies meet.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "../../relay/tests/support.rs"]
mod relay_support;

/// What the fixture of the api expects around it.
mod api {
    pub(crate) use client::Api;
}
#[allow(dead_code, reason = "its own tests use the rest")]
#[path = "../../client/src/fixtures.rs"]
mod fixtures;

#[path = "provider/support.rs"]
mod support;

#[path = "provider/limits.rs"]
mod limits;
#[path = "provider/membership.rs"]
mod membership;
#[path = "provider/program.rs"]
mod program;
#[path = "provider/scripted.rs"]
mod scripted;
#[path = "provider/targets.rs"]
mod targets;
