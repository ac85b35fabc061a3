//! The blocks of bytes that an account's streams are paid from.
//!
//! One contract serves many streams. When half of it is used the next is asked for, beside the streams; only an account
//! without any bytes left waits for the api. No clock and no request here: what is to be asked comes out.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use client::Contract;
use overload::{Backoff, Moment};
use trust::ContractId;
use trust::api::{ContractAnswer, ContractRequest, ErrorAnswer, ErrorCode};
use uuid::Uuid;

use crate::refusal::{Reason, Refusal};

/// The pause after the first question without an answer.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause between questions while the api gives no answer.
pub(crate) const GREATEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a refusal stands that names no time.
pub(crate) const REFUSED_FOR: Duration = Duration::from_secs(5);

/// The longest that a refusal stands: a grant may have been given meanwhile.
pub(crate) const REFUSED_FOR_AT_MOST: Duration = Duration::from_secs(30);

/// A block opens no streams this long before its time is over: the clocks are not the same.
const EXPIRY_MARGIN_MS: u64 = 10_000;

/// A contract and what is left of it, as counted here. The bill is the relay's.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) contract: Contract,
    bytes: u64,
    expires_at_ms: u64,
    used: AtomicU64,
    half_used: AtomicBool,
    streams: AtomicU32,
    /// Its relay says that nothing is left.
    spent: AtomicBool,
    /// The block that goes on for it.
    next: OnceLock<Arc<Self>>,
    /// The one that this goes on for, while it has streams.
    previous: Weak<Self>,
    given_back: AtomicBool,
}

impl Block {
    fn new(answer: &ContractAnswer, previous: Option<&Arc<Self>>) -> Self {
        let follows = previous.map(|block| block.contract.id);
        let contract =
            Contract { id: ContractId(answer.contract), text: answer.signed.as_str().into(), follows };
        Self {
            contract,
            bytes: answer.bytes,
            expires_at_ms: answer.expires_at_ms,
            used: AtomicU64::new(0),
            half_used: AtomicBool::new(false),
            streams: AtomicU32::new(0),
            spent: AtomicBool::new(false),
            next: OnceLock::new(),
            previous: previous.map(Arc::downgrade).unwrap_or_default(),
            given_back: AtomicBool::new(false),
        }
    }

    /// Whether it can carry a new stream.
    fn carries(&self, now_ms: u64) -> bool {
        !self.is_spent() && carries_until(self.expires_at_ms, now_ms)
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed) || self.used.load(Ordering::Relaxed) >= self.bytes
    }

    /// As the api gave it, and how much is used.
    pub(crate) fn saved(&self) -> (ContractAnswer, u64) {
        let (contract, signed) = (self.contract.id.0, self.contract.text.to_string());
        let answer =
            ContractAnswer { contract, signed, bytes: self.bytes, expires_at_ms: self.expires_at_ms };
        (answer, self.used.load(Ordering::Relaxed))
    }

    /// The relay has said that nothing is left of it.
    pub(crate) fn set_spent(&self) {
        self.spent.store(true, Ordering::Relaxed);
    }

    /// A stream of this block has moved bytes. They count against it, or against those that go on for it; `true` once for each
    /// of them, when half is used.
    pub(crate) fn moved(&self, bytes: u64) -> bool {
        let mut block = self;
        while block.is_spent() {
            match block.next.get() {
                Some(next) => block = next,
                None => break,
            }
        }
        let used = block.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        used >= block.bytes - block.bytes / 2 && !block.half_used.swap(true, Ordering::Relaxed)
    }

    /// Bytes that have been counted.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// `true` if it was the last.
    pub(crate) fn stream_closed(&self) -> bool {
        self.streams.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Whether streams are paid from it: its own, or those of a block that it goes on for.
    pub(crate) fn in_use(&self) -> bool {
        let has_streams = |block: &Self| block.streams.load(Ordering::Relaxed) > 0;
        if has_streams(self) {
            return true;
        }
        let mut previous = self.previous.upgrade();
        while let Some(block) = previous {
            if has_streams(&block) {
                return true;
            }
            previous = block.previous.upgrade();
        }
        false
    }

    /// The block that goes on for it.
    pub(crate) fn next(&self) -> Option<&Arc<Self>> {
        self.next.get()
    }

    /// The block that it goes on for.
    pub(crate) fn previous(&self) -> Option<Arc<Self>> {
        self.previous.upgrade()
    }

    /// `true` once: what is left of it is to be given back.
    pub(crate) fn give_back(&self) -> bool {
        !self.given_back.swap(true, Ordering::Relaxed)
    }
}

/// What an account's next stream is paid from.
#[derive(Debug)]
pub(crate) enum Take {
    /// This.
    Block(Arc<Block>),
    /// Nothing yet: the question has been asked, or has to be.
    Wait,
    /// Nothing.
    Refused(Refusal),
}

/// What has become of a question.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// A block.
    Granted(ContractAnswer),
    /// The api says no.
    Refused(ErrorAnswer),
    /// The api cannot say now: its database is gone, or it has too much to do.
    Unable(ErrorAnswer),
    /// Nobody answers.
    Silent,
}

impl Outcome {
    /// The api's block; or a refusal, if its time is over before it could carry a stream: asked for again at once, it would only come
    /// again.
    pub(crate) fn of(answer: ContractAnswer, now_ms: u64) -> Self {
        if carries_until(answer.expires_at_ms, now_ms) {
            return Self::Granted(answer);
        }
        let cause = "the account's grant is about to end".to_owned();
        Self::Refused(ErrorAnswer { code: ErrorCode::GrantExpired, cause, retry_after_ms: None })
    }
}

/// Whether a block that ends then can carry a new stream now.
const fn carries_until(expires_at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_add(EXPIRY_MARGIN_MS) < expires_at_ms
}

/// The blocks of one account.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    current: Option<Arc<Block>>,
    /// The question that is under way or will be asked again, under the same id.
    question: Option<Uuid>,
    asking: bool,
    refused: Option<(Refusal, Moment)>,
    backoff: Backoff,
}

impl Purse {
    /// What a new stream is paid from.
    pub(crate) fn take(&self, now: Moment, now_ms: u64) -> Take {
        if let Some(block) = self.current.as_ref().filter(|block| block.carries(now_ms)) {
            return Take::Block(Arc::clone(block));
        }
        match &self.refused {
            Some((refusal, until)) if *until > now => Take::Refused(refusal.clone().after(until.since(now))),
            _ => Take::Wait,
        }
    }

    /// The question that has to be asked now, if any: nobody asks, nothing was refused just now, and there is no block or half
    /// of it is used. Whoever gets it has to call [`Self::answered`].
    pub(crate) fn question(&mut self, account: &str, now: Moment, now_ms: u64) -> Option<ContractRequest> {
        let current = self.current.as_ref();
        let enough =
            current.is_some_and(|block| block.carries(now_ms) && !block.half_used.load(Ordering::Relaxed));
        let rests = self.refused.as_ref().is_some_and(|(_, until)| *until > now);
        if enough || self.asking || rests {
            return None;
        }
        self.asking = true;
        let request = *self.question.get_or_insert_with(Uuid::now_v7);
        let previous = current.map(|block| block.contract.id.0);
        Some(ContractRequest { request, proxy_account: Some(account.to_owned()), previous })
    }

    /// The answer to the question. The new block, and the one that it goes on for, if there is one with streams.
    pub(crate) fn answered(&mut self, outcome: &Outcome, now: Moment, jitter: u64) -> Option<Arc<Block>> {
        self.asking = false;
        match outcome {
            Outcome::Granted(answer) => {
                self.question = None;
                self.refused = None;
                self.backoff.reset();
                let block = Arc::new(Block::new(answer, self.current.as_ref()));
                if let Some(previous) = self.current.replace(Arc::clone(&block)) {
                    // It cannot have been set: a block is current once.
                    let _ = previous.next.set(Arc::clone(&block));
                }
                Some(block)
            }
            Outcome::Refused(answer) => {
                // A definite answer ends the question: the next one is another.
                self.question = None;
                self.backoff.reset();
                let asked = answer.retry_after_ms.map_or(REFUSED_FOR, Duration::from_millis);
                let refusal = Refusal::new(reason(answer.code), answer.cause.clone());
                self.refused = Some((refusal, now + asked.min(REFUSED_FOR_AT_MOST)));
                None
            }
            Outcome::Unable(answer) => {
                let asked = answer.retry_after_ms.map_or(FIRST_PAUSE, Duration::from_millis);
                let cause = format!("{}; this account has no bytes left here", answer.cause);
                self.rest(cause, asked.min(GREATEST_PAUSE), now, jitter);
                None
            }
            Outcome::Silent => {
                let cause = "the network's api gives no answer, and this account has no bytes left here";
                self.rest(cause.to_owned(), Duration::ZERO, now, jitter);
                None
            }
        }
    }

    /// The question stands, and is asked again under the same name: not before the api has asked for, ever more slowly.
    fn rest(&mut self, cause: String, asked: Duration, now: Moment, jitter: u64) {
        let pause = self.backoff.failed(FIRST_PAUSE, GREATEST_PAUSE, jitter).max(asked);
        self.refused = Some((Refusal::new(Reason::Unavailable, cause), now + pause));
    }

    /// The block that new streams are paid from.
    pub(crate) const fn current(&self) -> Option<&Arc<Block>> {
        self.current.as_ref()
    }

    /// A block of an earlier run, of which so much was used.
    pub(crate) fn restore(&mut self, answer: &ContractAnswer, used: u64) {
        let block = Block::new(answer, None);
        block.used.store(used, Ordering::Relaxed);
        self.current = Some(Arc::new(block));
    }

    /// Takes the block away if it has no streams: it is to be given back.
    pub(crate) fn give_back(&mut self) -> Option<Arc<Block>> {
        if self.asking || self.current.as_ref().is_some_and(|block| block.in_use()) {
            return None;
        }
        self.current.take()
    }
}

/// What the api's code is to a customer.
fn reason(code: ErrorCode) -> Reason {
    match code {
        ErrorCode::NoGrant | ErrorCode::GrantExpired | ErrorCode::GrantSpent => Reason::NoGrant,
        ErrorCode::AccountDisabled | ErrorCode::NotFound => Reason::AccountDisabled,
        ErrorCode::TooMany | ErrorCode::LimitContracts => Reason::LimitOpens,
        _ => Reason::Unavailable,
    }
}

#[cfg(test)]
mod tests;
