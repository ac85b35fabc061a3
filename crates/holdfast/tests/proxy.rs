//! A customer's way through proxy, relay and provider, sealed, with each role as it is; only the api is a small one.
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

#[allow(dead_code, reason = "the provider's own tests use the rest")]
#[path = "provider/support.rs"]
mod support;

#[path = "proxy/control.rs"]
mod control;
#[path = "proxy/house.rs"]
mod house;
#[path = "proxy/way.rs"]
mod way;
