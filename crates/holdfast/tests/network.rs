//! A whole network on this machine, as `holdfast up` makes it, seen through its own command line and through foreign clients.
#![allow(clippy::disallowed_methods, reason = "it waits for processes, by the real clock")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "network/house.rs"]
mod house;
#[path = "network/keys.rs"]
mod keys;
#[path = "network/life.rs"]
mod life;
#[path = "network/providers.rs"]
mod providers;
