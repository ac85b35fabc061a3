//! The pooler's rules: clients, servers, pools, and the hand-off between them.
//!
//! A state machine without I/O. A driver tells [`Engine`] what has happened (bytes came, a peer has gone, a server has
//! logged in, time has passed) and does what the engine asks through [`seam::Transport`]. The rules:
//!
//! - a client that waits is read and watched; one that leaves is out of the line before a server is spent on it;
//! - a server connection outlives its client: cancel, drain, reset, and only then the next one;
//! - a reply that nothing explains closes the connection: no client ever sees another's rows;
//! - servers are opened as many at once as are needed, within size, caps and the pace of their address;
//! - an idle client owns no buffer, and nothing ticks while nothing is due.
//!
//! What is not here: sockets, TLS, name lookup, passwords that cost CPU, logs' destinations.

mod client;
pub mod close_cause;
pub mod connection;
mod engine;
pub mod events;
mod guard;
mod held;
pub mod markers;
mod origin;
pub mod parameters;
mod pool;
pub mod seam;
mod server;
pub mod snapshot;
pub mod stall;
mod statements;
mod texts;
mod watch;

pub use engine::{CONSOLE_DATABASE, Engine, MAX_POOLS, REFUSAL_ALLOWANCE, Shutdown};
