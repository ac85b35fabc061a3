//! The network's api: joining, tokens, contracts, providers, accounts. HTTP/1.1 and JSON over TLS with the role's certificate.
//!
//! Who may do what stands in one table (`routes`); a path that is not in it opens to nobody. What requests and
//! answers look like is in `trust::api`; `docs/openapi.json` is made from both.

mod access;
mod answer;
mod app;
mod beat;
mod config;
mod documents;
mod guesses;
mod handlers;
mod known;
mod lookups;
mod memory;
mod neighbours;
mod offline;
mod openapi;
mod passwords;
mod pools;
mod routes;
mod server;

pub use app::{AccountError, RunError, ensure_account};
pub use config::Config;
pub use openapi::openapi;
pub use passwords::NoRandomness;

use std::future::Future;

/// Serves the api until `shutdown`; requests that are under way are answered first.
///
/// # Errors
/// Keys, certificate or address cannot be used. A database that is not there is no reason: whoever asks hears that.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    let (app, keeping) = app::App::build(&config)?;
    let listener = server::bind(&config)?;
    server::serve(app, keeping, listener, shutdown).await
}
