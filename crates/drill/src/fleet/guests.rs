//! Providers that only hold a link, at a relay that others have started.

use super::Seeds;
use super::part::{Part, Process};
use crate::clock;
use anyhow::bail;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use trust::{RootKey, TokenKey};

/// How long they may take to come in.
const COME_LIMIT: Duration = Duration::from_secs(60);
/// The words with which the program becomes a part of the bench.
const WORDS: [&str; 4] = ["bench", "providers", "--part", "--json"];

/// A process of providers; they come back by the rules of the protocol whatever ends their links.
pub struct Guests {
    process: Process,
    count: usize,
}

impl Guests {
    /// Starts `count` of them with tokens of this network, and waits until all are in.
    ///
    /// # Errors
    /// The process cannot be started, or they do not come in.
    pub fn start(
        program: &Path,
        root: &RootKey,
        token: &TokenKey,
        relay: SocketAddr,
        first: usize,
        count: usize,
    ) -> anyhow::Result<Self> {
        let seeds = Seeds { root: *root.seed(), tokens: *token.seed() };
        let words = WORDS.map(str::to_owned);
        let part = Part::Providers { seeds, address: relay, first, count };
        let mut guests = Self { process: Process::of(program, &words, &part)?, count };
        if !clock::wait_for(COME_LIMIT, || guests.connected().is_ok_and(|connected| connected == count)) {
            bail!("only {} of {count} providers came in", guests.connected()?);
        }
        Ok(guests)
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// How many are connected now.
    ///
    /// # Errors
    /// Their process has ended.
    pub fn connected(&mut self) -> anyhow::Result<usize> {
        self.process.connected()
    }

    /// Dials since the start, of all together: as many as there are providers if no link ever ended.
    ///
    /// # Errors
    /// Their process has ended.
    pub fn dials(&mut self) -> anyhow::Result<u64> {
        Ok(self.process.last()?.dials)
    }
}
