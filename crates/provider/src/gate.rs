//! Who may open a stream now, and which streams have to end: pause, hours, the month's bytes, streams at once, and the brake for
//! scans. Every refusal says why, and when to come back if that is known.

use crate::exit::Failure;
use crate::limits::{ByteCount, Hours, Usage};
use crate::state::Wishes;
use crate::wall::{Wall, next_month_ms};
use client::Meter;
use clock::Clock;
use egress::{Brake, Target, Verdict};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

/// An opener of whom so many contracts have been stopped within the brake's time is stopped as a whole: whoever takes a new
/// contract for each scan gains nothing.
const STOPPED_CONTRACTS_MAX: usize = 3;

/// How often it is looked at whether the month is still used up.
const MONTH_LOOK: Duration = Duration::from_secs(1);

/// Whom a stream is carried for, as far as a provider can tell: the opener, and the contract, which belongs to one payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct User {
    /// The client that opened the stream: an app, or a proxy with many accounts.
    pub opener: [u8; 16],
    /// The contract that pays.
    pub contract: [u8; 16],
}

/// Limits as they hold now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) month: Option<ByteCount>,
    pub(crate) rate_mbit_s: Option<u32>,
    pub(crate) streams: u32,
    pub(crate) hours: Hours,
}

/// Why no stream is taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Closed {
    #[error("the provider is paused by its owner")]
    Paused,
    #[error("the provider does not work at this hour")]
    Hours,
    #[error("the provider has carried what it gives in a month")]
    Month,
    #[error("the provider stops")]
    Stopping,
}

/// Why a stream is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0}")]
    Closed(#[source] Closed),
    #[error("the provider carries as many streams as it may")]
    Streams,
    #[error("too many different hosts were tried in vain; wait before trying more")]
    Brake,
}

impl Refused {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Closed(Closed::Paused) => "paused",
            Self::Closed(Closed::Hours) => "hours",
            Self::Closed(Closed::Month) => "month",
            Self::Closed(Closed::Stopping) => "stopping",
            Self::Streams => "streams",
            Self::Brake => "brake",
        }
    }
}

/// Whether streams are taken, and from when on again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Openness {
    pub(crate) closed: Option<Closed>,
    /// When it opens by itself, ms since 1970.
    pub(crate) opens_at_ms: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Gate {
    clock: Clock,
    meter: Arc<Meter>,
    digest: RandomState,
    inner: Mutex<Inner>,
    openness: watch::Sender<Openness>,
    streams: watch::Sender<usize>,
}

#[derive(Debug)]
struct Inner {
    limits: Limits,
    wishes: Wishes,
    usage: Usage,
    stopping: bool,
    contracts: Brake<User>,
    openers: Brake<[u8; 16]>,
    stopped: BTreeMap<[u8; 16], Vec<overload::Moment>>,
    /// One for each stream, by its number: what is sent ends it. Polled beside the splice, so it has to be cheap.
    cuts: HashMap<u64, (User, oneshot::Sender<Ended>)>,
    /// Streams taken so far; the last one's number.
    taken: u64,
    stops: u64,
}

/// A stream that has been taken; its place is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    gate: Arc<Gate>,
    user: User,
    number: u64,
    cut: oneshot::Receiver<Ended>,
}

impl Gate {
    pub(crate) fn new(clock: Clock, limits: Limits, wishes: Wishes, usage: Usage, wall: Wall) -> Arc<Self> {
        let gate = Self {
            clock,
            meter: Arc::default(),
            digest: RandomState::new(),
            inner: Mutex::new(Inner {
                limits,
                wishes,
                usage,
                stopping: false,
                contracts: Brake::default(),
                openers: Brake::default(),
                stopped: BTreeMap::new(),
                cuts: HashMap::new(),
                taken: 0,
                stops: 0,
            }),
            openness: watch::Sender::new(Openness { closed: None, opens_at_ms: None }),
            streams: watch::Sender::new(0),
        };
        gate.look(wall);
        Arc::new(gate)
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Whether streams are taken, followed.
    pub(crate) fn openness(&self) -> watch::Receiver<Openness> {
        self.openness.subscribe()
    }

    /// Streams now, followed.
    pub(crate) fn streams(&self) -> watch::Receiver<usize> {
        self.streams.subscribe()
    }

    /// Takes a stream.
    pub(crate) fn enter(self: &Arc<Self>, user: User) -> Result<Place, Refused> {
        let now = self.clock.now();
        let mut inner = self.lock();
        let refused = if let Some(closed) = self.openness.borrow().closed {
            Some(Refused::Closed(closed))
        } else if inner.contracts.rests_until(now, user).is_some()
            || inner.openers.rests_until(now, user.opener).is_some()
        {
            Some(Refused::Brake)
        } else if *self.streams.borrow() >= inner.limits.streams as usize {
            Some(Refused::Streams)
        } else {
            None
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        inner.taken += 1;
        let (sender, cut) = oneshot::channel();
        let number = inner.taken;
        inner.cuts.insert(number, (user, sender));
        self.streams.send_modify(|streams| *streams += 1);
        drop(inner);
        Ok(Place { gate: Arc::clone(self), user, number, cut })
    }

    /// Ends all streams whenever the month is used up; until the task is dropped.
    pub(crate) async fn keep_month(&self) {
        loop {
            self.meter.used_up().await;
            self.look(Wall::now());
            self.lock().cut(Ended::Month, |_| true);
            // It stays used up until somebody raises the limit, or the month ends.
            sleep(MONTH_LOOK).await;
        }
    }

    /// Time has passed: counts what was carried, and opens or closes by the calendar and the clock.
    pub(crate) fn look(&self, wall: Wall) -> Usage {
        let mut inner = self.lock();
        self.settle(&mut inner, wall);
        inner.usage
    }

    pub(crate) fn set_limits(&self, limits: Limits, wall: Wall) {
        let mut inner = self.lock();
        inner.limits = limits;
        self.settle(&mut inner, wall);
    }

    pub(crate) fn set_wishes(&self, wishes: Wishes, wall: Wall) {
        let mut inner = self.lock();
        inner.wishes = wishes;
        self.settle(&mut inner, wall);
    }

    pub(crate) fn wishes(&self) -> Wishes {
        self.lock().wishes
    }

    /// No streams from now on.
    pub(crate) fn stop(&self, wall: Wall) {
        let mut inner = self.lock();
        inner.stopping = true;
        self.settle(&mut inner, wall);
    }

    /// The limits, the usage, and the counts of streams taken and of users stopped.
    pub(crate) fn account(&self) -> Account {
        let inner = self.lock();
        Account {
            limits: inner.limits.clone(),
            month: inner.month_limit(),
            usage: inner.usage,
            taken: inner.taken,
            stops: inner.stops,
        }
    }

    fn settle(&self, inner: &mut Inner, wall: Wall) {
        inner.usage.turn(wall);
        inner.usage.add(self.meter.collect());
        let month = inner.month_limit();
        let left = month.map(|limit| limit.0.saturating_sub(inner.usage.month_bytes));
        self.meter.set_left(left);
        self.meter.set_rate(inner.limits.rate_mbit_s);
        let openness = inner.openness(left, wall);
        self.openness.send_if_modified(|before| {
            // Minutes until the hours begin are counted from now: the second matters to nobody.
            let changed = before.closed != openness.closed;
            *before = openness;
            changed
        });
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the gate has counted.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) limits: Limits,
    pub(crate) month: Option<ByteCount>,
    pub(crate) usage: Usage,
    pub(crate) taken: u64,
    pub(crate) stops: u64,
}

impl Inner {
    fn month_limit(&self) -> Option<ByteCount> {
        self.wishes.month.map_or(self.limits.month, crate::state::MonthCap::limit)
    }

    fn openness(&self, left: Option<u64>, wall: Wall) -> Openness {
        let minutes = self.limits.hours.minutes_until_open(wall.minute);
        if self.stopping {
            Openness { closed: Some(Closed::Stopping), opens_at_ms: None }
        } else if self.wishes.paused {
            Openness { closed: Some(Closed::Paused), opens_at_ms: None }
        } else if left == Some(0) {
            Openness { closed: Some(Closed::Month), opens_at_ms: Some(next_month_ms(wall.unix_ms)) }
        } else if minutes > 0 {
            let at_ms = wall.unix_ms / 60_000 * 60_000 + u64::from(minutes) * 60_000;
            Openness { closed: Some(Closed::Hours), opens_at_ms: Some(at_ms) }
        } else {
            Openness { closed: None, opens_at_ms: None }
        }
    }

    /// Ends the streams of these users.
    fn cut(&mut self, why: Ended, whose: impl Fn(User) -> bool) {
        for (_, (_, cut)) in self.cuts.extract_if(|_, (user, _)| whose(*user)) {
            // One that has ended by itself is as good.
            let _ = cut.send(why);
        }
    }

    /// Somebody scans. Its streams end; so do all of its opener, if that happens again and again.
    fn stop_user(&mut self, now: overload::Moment, user: User) {
        self.stops += 1;
        let stops = self.stopped.entry(user.opener).or_default();
        stops.retain(|at| now.since(*at) < egress::brake::REST);
        stops.push(now);
        let whole = stops.len() >= STOPPED_CONTRACTS_MAX;
        if whole {
            self.stopped.remove(&user.opener);
            self.openers.rest(now, user.opener);
        }
        self.cut(Ended::Brake, |one| one == user || (whole && one.opener == user.opener));
        self.stopped.retain(|_, stops| stops.iter().any(|at| now.since(*at) < egress::brake::REST));
    }
}

impl Place {
    /// How the attempt to reach the target ended.
    pub(crate) fn attempted(&self, target: &Target, outcome: Result<(), Failure>) {
        let failed = match outcome {
            Ok(()) => false,
            Err(failure) if failure.is_failed_connect() => true,
            Err(_) => return,
        };
        let now = self.gate.clock.now();
        let digest = self.gate.digest.hash_one(&target.host);
        let mut inner = self.gate.lock();
        let verdict = inner.contracts.attempted(now, self.user, target.port, digest, failed);
        if let Verdict::Stop { hosts, failed } = verdict {
            inner.stop_user(now, self.user);
            drop(inner);
            let opener = uuid::Uuid::from_bytes(self.user.opener);
            tracing::warn!(%opener, hosts, failed, "somebody tries many hosts in vain: stopped for ten minutes");
        }
    }

    /// Comes back if the stream has to end before its ends want it to.
    pub(crate) async fn must_end(&mut self) -> Ended {
        match (&mut self.cut).await {
            Ok(why) => why,
            // The sender lives in the gate for as long as this place does.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Why a stream was ended by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Month,
    Brake,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.lock().cuts.remove(&self.number);
        self.gate.streams.send_modify(|streams| *streams -= 1);
    }
}

/// How long an opener had better stay away, if that is known.
pub(crate) fn stay_away(refused: Refused, openness: Openness, now_ms: u64) -> Option<Duration> {
    match refused {
        Refused::Closed(_) => openness.opens_at_ms.map(|at| Duration::from_millis(at.saturating_sub(now_ms))),
        Refused::Brake => Some(egress::brake::REST),
        Refused::Streams => None,
    }
}

#[cfg(test)]
mod tests;
