//! A whole proxy on real sockets: what customers see, whatever is behind it. The outgoing side dials by itself; the api is a
//! few tables in memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and one that is not run says so"
)]

#[path = "../src/fixtures.rs"]
mod fixtures;
#[path = "front/foreign.rs"]
mod foreign;
#[path = "front/hostile.rs"]
mod hostile;
#[path = "front/http.rs"]
mod http;
#[path = "front/network.rs"]
mod network;
#[path = "front/site.rs"]
mod site;
#[path = "front/socks.rs"]
mod socks;
#[path = "front/support.rs"]
mod support;
#[path = "front/wire.rs"]
mod wire;
