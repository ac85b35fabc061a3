//! The library for whoever joins a network: register, dial a relay, say hello, open streams or carry them, ask the api.
//!
//! It runs on any tokio runtime, and everything in it may move between threads. The protocol is `docs/protocol.md`;
//! `examples/forward.rs` is a whole program.
//!
//! # Joining
//!
//! [`Membership::join`] takes a join link and a code, and keeps keys, token and the network's signed documents in a folder that one
//! process holds at a time. A join that broke off is taken up by calling it again. [`Membership::open`] asks nobody; call
//! [`Membership::take_epoch`] once a start, and run [`Membership::keep_fresh`] beside the rest: it refreshes the token, and comes back
//! only when the api refuses this client for good.
//!
//! # Connecting
//!
//! [`Link::connect_by`] dials a relay by the one of [`Ways`] that is next: straight, or inside a WebSocket where only HTTP passes. The
//! connection is kept by a task of its own until the last handle and the last stream are gone. It does not come back by itself:
//! [`Link::ended`] says why it is over ([`LinkError`]). Then
//! - [`LinkError::is_final`]: stay away, and tell the owner;
//! - else wait for what [`LinkError::retry_after`] names and a random part of it, or for the back-off of the last WELCOME
//!   ([`Pace`]; `link::Comeback` reckons both), and dial again; never give up;
//! - [`Code::TokenExpired`]: refresh first.
//!
//! [`Phase::Draining`] means: dial another relay at a random moment within `spread`, and let the old link end with its streams.
//!
//! # Opening streams
//!
//! [`Link::open`] asks a provider of this relay for a target. An [`OpenError`] means that nothing was sent to the target, so another
//! provider may be tried, but for codes where [`Code::concerns_target`]. Dropping the future takes the open back. A
//! [`Contract`] pays for as many streams as its bytes last; show the next one ([`Link::show`], [`Contract::follows`]) before they are
//! used up, else its streams are reset with [`Code::ContractSpent`].
//!
//! # Carrying streams
//!
//! A provider makes one [`Opens::channel`] a start, and gives it to each of its links. What comes out is a [`SealedOpen`]; in a task of
//! its own, [`SealedOpen::unseal`] looks into it. The [`IncomingOpen`] is answered with
//! [`IncomingOpen::accept`] once the target is connected, with [`IncomingOpen::fail`] if the dial failed (only the opener can read why),
//! or with [`IncomingOpen::refuse`] if no dial was tried. Dropping it refuses it. Opens that were replayed, are too old or meant for
//! another start never get here.
//!
//! # The two ends of a stream
//!
//! [`Stream::splice`] joins it to a socket until both directions have ended, and is the cheap way; or use it as
//! [`tokio::io::AsyncRead`] and [`tokio::io::AsyncWrite`]. Half-close goes through: `shutdown` ends what is sent, and reading
//! goes on. The end of the other side is told only under the seal: a stream that was cut on the way is an error of the kind
//! `ConnectionReset`, with [`Stream::reset_code`]. Dropping a stream before both directions have ended resets it.
//!
//! # Counting
//!
//! A [`Meter`] counts what all streams of its links carry, and keeps them to a rate.

pub mod api;
mod connect;
mod error;
#[cfg(test)]
mod fixtures;
mod link;
pub mod membership;
mod meter;
mod reach;
mod stream;
mod ways;

pub use ::link::seal::{Answer, Family, Host, Target};
pub use ::link::{Code, Pace};
pub use api::{Api, ApiError};
pub use connect::Identification;
pub use error::{LinkError, OpenError};
pub use link::{Contract, IncomingOpen, Link, MAX_INCOMING, OpenRequest, Opens, Phase, SealedOpen};
pub use membership::{Glance, Joining, Membership, MembershipError};
pub use meter::{Counter, Meter};
pub use reach::{Reach, reach};
pub use stream::{SpliceEnd, SpliceLimits, SpliceReport, Stream};
pub use ways::{HttpProxy, ProxyError, Transport, Ways};
