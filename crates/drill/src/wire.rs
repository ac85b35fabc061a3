//! A PostgreSQL client of our own for tests: it can do what drivers refuse to do (send half a message, leave without
//! Terminate, stop reading, reset the connection). Protocol 3.0 (PostgreSQL documentation, chapter "Frontend/Backend
//! Protocol"), written independently of the pooler's protocol room.

pub mod frame;

mod address;
mod connection;
mod error;
mod farewell;
mod login;
mod message;
mod reply;

pub use address::{Address, Stream};
pub use connection::{CancelKey, Connection, MAX_MESSAGE_BYTES, ProbeAnswer};
pub use error::{Error, ServerError};
pub use login::{ConnectOptions, Encryption};
pub use message::{Message, TransactionStatus};
pub use reply::Reply;

use std::future::Future;
use std::thread;

/// Runs a future to its end on a thread and runtime of its own: also from inside another runtime, which it blocks.
///
/// # Errors
/// No runtime or thread can be made.
pub fn block_on<F>(future: F) -> std::io::Result<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let run = || Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future));
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, run)?.join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests;
