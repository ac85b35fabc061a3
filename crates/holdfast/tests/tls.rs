//! TLS to clients and to servers, as PostgreSQL's own client, another TLS library and a real server see it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/support.rs"]
mod support;

#[path = "support/certificates.rs"]
mod certificates;
#[path = "support/tls_client.rs"]
mod tls_client;

#[path = "tls/binding.rs"]
mod binding;
#[path = "tls/bytes.rs"]
mod bytes;
#[path = "tls/clients.rs"]
mod clients;
#[path = "tls/load.rs"]
mod load;
#[path = "tls/reload.rs"]
mod reload;
#[path = "tls/servers.rs"]
mod servers;
