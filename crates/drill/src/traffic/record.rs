//! What customers saw.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::opening::NotOpened;
use crate::clock;

/// The most refusals and breaks that are kept one by one; they are counted beyond that.
const MOST_KEPT: usize = 10_000;
/// The most seconds: a day.
const MOST_SECONDS: usize = 86_400;

/// One second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Second {
    /// Streams that were held at its end.
    pub held: u64,
    /// Answers that came, of held and new streams.
    pub rounds: u64,
    /// The longest wait for one, ms.
    pub longest_ms: u64,
    /// New streams that came about.
    pub opened: u64,
    /// New streams that did not.
    pub refused: u64,
    /// Streams that ended without being asked to.
    pub broken: u64,
}

/// A stream that ended without being asked to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Broken {
    /// When, seconds since the beginning.
    pub at_s: f64,
    /// What was seen.
    pub cause: String,
}

/// A stream that did not come about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refused {
    /// When, seconds since the beginning.
    pub at_s: f64,
    /// The proxy's word for it.
    pub cause: String,
    /// When to come back, if it said so.
    pub retry_after_s: Option<u64>,
    /// It was to be held, and was asked for by SOCKS5, which carries no cause.
    pub is_held: bool,
}

/// All of it together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Bytes that customers sent and got back.
    pub bytes: u64,
    /// Messages, each at least one frame in each direction.
    pub rounds: u64,
    /// Streams that came about, held ones too.
    pub streams: u64,
    /// New streams that came about.
    pub opened: u64,
    /// Streams that did not.
    pub refused: u64,
    /// Streams that ended without being asked to.
    pub broken: u64,
    /// Streams held now.
    pub held: u64,
}

#[derive(Debug)]
pub(super) struct Record {
    began: Instant,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    now: Second,
    seconds: Vec<Second>,
    sums: Sums,
    broken: Vec<Broken>,
    refused: Vec<Refused>,
}

impl Record {
    pub(super) fn begin() -> Self {
        Self { began: clock::now(), seen: Mutex::default() }
    }

    pub(super) fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// A second is over.
    pub(super) fn turn(&self) {
        let mut seen = self.seen();
        let second = Second { held: seen.sums.held, ..std::mem::take(&mut seen.now) };
        if seen.seconds.len() < MOST_SECONDS {
            seen.seconds.push(second);
        }
    }

    pub(super) fn held(&self, step: i64) {
        let mut seen = self.seen();
        seen.sums.held = seen.sums.held.saturating_add_signed(step);
        seen.sums.streams += u64::from(step > 0);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.seen().sums.bytes += bytes as u64;
    }

    pub(super) fn heard(&self, bytes: usize, waited: Duration) {
        let mut seen = self.seen();
        seen.sums.bytes += bytes as u64;
        seen.sums.rounds += 1;
        seen.now.rounds += 1;
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        seen.now.longest_ms = seen.now.longest_ms.max(waited_ms);
    }

    pub(super) fn opened(&self) {
        let mut seen = self.seen();
        seen.now.opened += 1;
        seen.sums.opened += 1;
        seen.sums.streams += 1;
    }

    pub(super) fn broke(&self, cause: String) {
        let at_s = self.elapsed_s();
        let mut seen = self.seen();
        seen.now.broken += 1;
        seen.sums.broken += 1;
        if seen.broken.len() < MOST_KEPT {
            seen.broken.push(Broken { at_s, cause });
        }
    }

    pub(super) fn refused_one(&self, refusal: NotOpened, is_held: bool) {
        let at_s = self.elapsed_s();
        let NotOpened { cause, retry_after_s } = refusal;
        let mut seen = self.seen();
        seen.now.refused += 1;
        seen.sums.refused += 1;
        if seen.refused.len() < MOST_KEPT {
            seen.refused.push(Refused { at_s, cause, retry_after_s, is_held });
        }
    }

    pub(super) fn sums(&self) -> Sums {
        self.seen().sums
    }

    pub(super) fn seconds(&self) -> Vec<Second> {
        self.seen().seconds.clone()
    }

    pub(super) fn broken(&self) -> Vec<Broken> {
        self.seen().broken.clone()
    }

    pub(super) fn refused(&self) -> Vec<Refused> {
        self.seen().refused.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
