//! The outgoing side, as the rest of the proxy sees it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use client::{Contract, Counter, Family};
use egress::Target;
use selection::Fault;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::directory::Provider;
use crate::refusal::Reason;

/// A stream that is wanted.
#[derive(Clone, Debug)]
pub struct Wanted<'open> {
    /// Through whom.
    pub provider: &'open Provider,
    /// Where to.
    pub target: &'open Target,
    /// By which addresses.
    pub family: Family,
    /// What pays.
    pub contract: &'open Contract,
    /// How long the answer is worth something.
    pub patience: Duration,
}

/// Why there is no stream. Nothing has been sent to the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitError {
    /// The provider, or the way to it.
    Provider(Fault, String),
    /// The target: another provider would hardly do better.
    Target(Reason, String),
    /// The contract is spent or not taken.
    Contract(String),
}

/// How streams are opened.
pub trait Exits: Send + Sync + 'static {
    /// A stream.
    type Stream: ExitStream;

    /// Opens one. Dropping the future gives it up.
    fn open(&self, wanted: Wanted<'_>) -> impl Future<Output = Result<Self::Stream, ExitError>> + Send;

    /// A contract goes on for another: whoever has been shown the other one is shown this one.
    fn show(&self, contract: &Contract);
}

/// A stream through a provider.
pub trait ExitStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// From now on, whatever passes is told to the counter.
    fn set_counter(&mut self, counter: Arc<dyn Counter>);

    /// Copies between the stream and a socket until both directions have ended, or one is given up. `first` is what has come
    /// from the socket already.
    fn splice(self, socket: TcpStream, first: &[u8], idle: Duration) -> impl Future<Output = ()> + Send;
}
