//! One pooler's share of a server's budget: what it may open now, and what its control connection has to do next.

use crate::chunk::Chunk;
use crate::estimate::Estimate;
use crate::floor::Floor;
use crate::order::{Look, Order, ServerLimits};
use crate::servers::Servers;
use crate::terms::Terms;
use crate::view::{LeaseState, LeaseView};
use overload::{Admission, Cause, Moment, Recovery};
use std::time::Duration;

/// Looks are so far apart while something happens.
pub const LOOK: Duration = Duration::from_secs(1);
/// And so far while nothing does.
pub const IDLE_LOOK: Duration = Duration::from_secs(5);
/// While somebody waits for a place that is not to be had.
const HUNGRY_LOOK: Duration = Duration::from_millis(100);
/// What the others should know, such as a new backend, waits so long for company.
const NEWS_LOOK: Duration = Duration::from_millis(100);
/// No two looks are nearer.
const LEAST_PACE: Duration = Duration::from_millis(5);
/// Looks take up at most one part of so many of the server's time.
const PACE_FACTOR: u32 = 10;
/// A chunk that is not needed is kept so long, unless others lack places.
pub const SURPLUS_REST: Duration = Duration::from_secs(5);
/// With fewer chunks than poolers, one is passed on after this.
pub const TURN: Duration = Duration::from_secs(2);
/// After a change the looks stay [`LOOK`] apart for so long.
const CALM: Duration = Duration::from_secs(10);

/// What the pools at this server need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Further connections for which somebody waits, or that are missing of a minimum.
    pub wanted: usize,
    /// What the pools keep open in any case.
    pub minimum: usize,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To be carried out now, and answered by [`Lease::looked`] or [`Lease::lost`].
    Ask(Order),
    /// Nothing before that moment.
    At(Moment),
    /// Nothing until something happens.
    Rest,
}

/// One pooler's share of the budget of one server.
///
/// Every connection is told from its beginning ([`Self::began`]) to its end, in exactly one of [`Self::opened`] and
/// [`Self::failed`], and after the first in [`Self::ended`].
#[derive(Clone, Debug)]
pub struct Lease {
    terms: Terms,
    servers: Servers,
    held: Vec<Held>,
    floor: Floor,
    /// When the last answered order was sent: the control session lived then.
    proof_at: Option<Moment>,
    /// When the last look was answered, and how long it took.
    looked_at: Option<Moment>,
    round_trip: Duration,
    asking: Option<(Moment, Order)>,
    next_id: u64,
    recovery: Recovery,
    limits: Option<ServerLimits>,
    estimate: Estimate,
    /// The last look took fewer chunks than were wanted.
    is_short: bool,
    /// The others have been told so.
    told_starving: bool,
    surplus_since: Option<Moment>,
    gained_at: Moment,
    changed_at: Moment,
    /// Places to be given up for others.
    giving: usize,
    /// What the pools keep open in any case.
    minimum: usize,
    seen: Seen,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    chunk: Chunk,
    since: Moment,
    is_settled: bool,
}

/// What the last look said, for the next steps and for people.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    poolers: usize,
    others: usize,
    unowned: usize,
    /// The fewest places of another pooler that lacks some.
    poorest: Option<usize>,
    looks: u64,
    losses: u64,
}

impl Lease {
    /// Nothing leased.
    #[must_use]
    pub fn new(terms: Terms, now: Moment) -> Self {
        Self {
            terms,
            servers: Servers::default(),
            held: Vec::new(),
            floor: Floor::default(),
            proof_at: None,
            looked_at: None,
            round_trip: Duration::ZERO,
            asking: None,
            next_id: 0,
            recovery: Recovery::new(),
            limits: None,
            estimate: Estimate::default(),
            is_short: false,
            told_starving: false,
            surplus_since: None,
            gained_at: now,
            changed_at: now,
            giving: 0,
            minimum: 0,
            seen: Seen::default(),
        }
    }

    /// How many logins may begin now.
    #[must_use]
    pub fn may_open(&self, now: Moment) -> usize {
        if self.is_proven(now) { self.usable(now).saturating_sub(self.servers.count()) } else { 0 }
    }

    /// No further place is to be had: whoever needs one gets it from another pool, or waits.
    #[must_use]
    pub fn is_exhausted(&self, now: Moment) -> bool {
        let coming = self.held.iter().any(|held| !held.is_settled);
        let squeezed = self.usable(now) < self.settled();
        let has_all = self.terms.places(self.limits).is_some_and(|places| self.capacity() >= places);
        self.looked_at.is_some()
            && !coming
            && (self.is_short || squeezed || has_all)
            && self.usable(now) <= self.servers.count()
    }

    /// Connections that should be closed as soon as they are free, so that another pooler gets its share.
    #[must_use]
    pub fn excess(&self) -> usize {
        let keep = if self.giving > 0 {
            self.capacity().saturating_sub(self.giving)
        } else if self.seen.poorest.is_some() && self.is_short {
            // Of a session that was lost, more may be open than there are places for now.
            self.capacity().max(self.minimum)
        } else {
            return 0;
        };
        self.servers.count().saturating_sub(keep)
    }

    /// A login begins.
    pub fn began(&mut self) {
        self.servers.began();
    }

    /// It has succeeded; the process id is that of the backend (zero if it told none).
    pub fn opened(&mut self, now: Moment, process_id: i32) {
        self.changed_at = now;
        self.servers.opened(process_id);
    }

    /// It has failed. `may_live`: its backend may be there all the same, such as after a time-out.
    pub fn failed(&mut self, now: Moment, may_live: bool) {
        self.servers.failed(now, may_live);
    }

    /// The server itself has said that it has too many connections.
    pub fn refused(&mut self, now: Moment) {
        // Told before the attempt is taken out.
        self.estimate.refused(now, self.servers.standing(), self.servers.attempts());
    }

    /// A connection has ended. `is_gone`: its process has certainly ended with it.
    pub fn ended(&mut self, now: Moment, process_id: i32, is_gone: bool) {
        self.changed_at = now;
        self.servers.ended(now, process_id, is_gone);
    }

    /// What comes next. With [`Step::Ask`] the order counts as sent.
    pub fn next_step(&mut self, now: Moment, demand: Demand) -> Step {
        if self.asking.is_some() {
            return Step::Rest;
        }
        let used = self.servers.count();
        let goal = self.goal(demand);
        self.minimum = demand.minimum;
        let is_idle = goal == 0 && used == 0 && self.held.is_empty();
        if is_idle && !self.servers.has_news() && !self.told_starving {
            return Step::Rest;
        }
        self.note_surplus(now, goal);
        let due = self.due(now, demand, goal);
        let due = match self.recovery.admits(now) {
            Admission::RestUntil(at) => due.max(at),
            Admission::Free | Admission::Probe => due,
        };
        if due > now {
            return Step::At(due);
        }
        let order = self.order(now, demand, goal);
        self.recovery.started(now);
        self.asking = Some((now, order.clone()));
        Step::Ask(order)
    }

    /// An order has been carried out.
    pub fn looked(&mut self, now: Moment, id: u64, look: &Look) {
        let Some((asked_at, order)) = self.asking.take_if(|(_, order)| order.id == id) else { return };
        self.recovery.succeeded(now, asked_at);
        self.proof_at = Some(asked_at);
        self.looked_at = Some(now);
        self.round_trip = now.since(asked_at);
        self.limits = Some(look.limits);
        self.told_starving = order.is_starving;
        self.servers.registered(&order.register);
        self.servers.looked(asked_at, &look.present, self.terms.settle);
        let gained = self.take_over(now, asked_at, &look.mine);
        self.is_short = order.take > gained;
        if gained > 0 {
            (self.gained_at, self.changed_at) = (now, now);
        }
        let unowned = look.unowned.iter().filter(|process_id| !self.servers.is_ours(**process_id)).count();
        let others: usize = look.others.iter().map(|other| other.greatest()).sum();
        let starving = look.others.iter().filter(|other| other.is_starving);
        self.seen = Seen {
            poolers: look.controls,
            others,
            unowned,
            poorest: starving.map(|other| other.places).min(),
            looks: self.seen.looks + 1,
            ..self.seen
        };
        let taken = self.terms.reserved.max(look.controls) + others + unowned;
        let left = self.terms.budget(self.limits).unwrap_or_default().saturating_sub(taken);
        self.floor.note(asked_at, left, self.terms.settle);
        self.giving = self.to_give(now);
    }

    /// An order has failed: its session has ended, or is as good as ended. `jitter` is any random number.
    pub fn lost(&mut self, now: Moment, id: u64, cause: Cause, jitter: u64) {
        let Some((asked_at, _)) = self.asking.take_if(|(_, order)| order.id == id) else { return };
        self.recovery.failed(now, asked_at, cause, jitter);
        self.seen.losses += 1;
        self.held.clear();
        self.floor = Floor::default();
        self.proof_at = None;
        self.looked_at = None;
        self.is_short = false;
        self.told_starving = false;
        self.surplus_since = None;
        self.giving = 0;
        self.servers.forgotten();
    }

    /// For people.
    #[must_use]
    pub fn view(&self, now: Moment) -> LeaseView {
        LeaseView {
            state: match (self.looked_at, self.recovery.cause()) {
                (Some(_), _) => LeaseState::Held,
                (None, Some(_)) => LeaseState::Lost,
                (None, None) => LeaseState::Unused,
            },
            budget: self.terms.budget(self.limits),
            reserved: self.terms.reserved,
            chunks: self.held.len(),
            places: self.capacity(),
            usable: self.usable(now),
            used: self.servers.count(),
            attempts: self.servers.attempts(),
            doubtful: self.servers.doubtful(),
            is_exhausted: self.is_exhausted(now),
            poolers: self.seen.poolers,
            others: self.seen.others,
            unowned: self.seen.unowned,
            estimate: self.estimate.limit(now),
            looked: self.looked_at.map(|at| now.since(at)),
            looks: self.seen.looks,
            losses: self.seen.losses,
        }
    }

    fn is_proven(&self, now: Moment) -> bool {
        self.proof_at.is_some_and(|at| now <= at + self.terms.proof_age())
    }

    /// Places of the chunks that are held.
    fn capacity(&self) -> usize {
        self.held.iter().map(|held| held.chunk.places()).sum()
    }

    fn settled(&self) -> usize {
        self.held.iter().filter(|held| held.is_settled).map(|held| held.chunk.places()).sum()
    }

    fn usable(&self, now: Moment) -> usize {
        let estimate = self.estimate.limit(now).unwrap_or(usize::MAX);
        self.settled().min(self.floor.places()).min(estimate)
    }

    /// Places that would serve everybody.
    fn goal(&self, demand: Demand) -> usize {
        let most = self.terms.places(self.limits).unwrap_or(usize::MAX);
        (self.servers.count() + demand.wanted).max(demand.minimum).min(most)
    }

    fn spare(&self, goal: usize) -> Option<Chunk> {
        // What has not settled is of no use yet; else the last one.
        let held = self.held.iter().find(|held| !held.is_settled).or_else(|| self.held.last())?;
        (self.capacity() >= goal + held.chunk.places()).then_some(held.chunk)
    }

    fn note_surplus(&mut self, now: Moment, goal: usize) {
        match self.spare(goal) {
            Some(_) => self.surplus_since = self.surplus_since.or(Some(now)),
            None => self.surplus_since = None,
        }
    }

    /// Another pooler has so much less, and needs it, that one chunk should be its own.
    fn to_give(&self, now: Moment) -> usize {
        let Some(poorest) = self.seen.poorest else { return 0 };
        let Some(last) = self.held.last().map(|held| held.chunk.places()) else { return 0 };
        let keeps_minimum = self.capacity() >= self.minimum + last;
        let is_richer = keeps_minimum && self.capacity() >= poorest + 2 * self.terms.chunk.max(1);
        let has_had_its_turn = poorest == 0 && now.since(self.gained_at) >= TURN;
        if is_richer || has_had_its_turn { last } else { 0 }
    }

    /// When the next look is due.
    fn due(&self, now: Moment, demand: Demand, goal: usize) -> Moment {
        let Some(looked_at) = self.looked_at else { return now };
        let pace = (self.round_trip * PACE_FACTOR).clamp(LEAST_PACE, LOOK);
        let is_busy = demand.wanted > 0 || self.seen.poorest.is_some() || now.since(self.changed_at) < CALM;
        let mut due = looked_at + if is_busy { LOOK } else { IDLE_LOOK };
        if self.servers.has_news() || self.told_starving && demand.wanted == 0 {
            due = due.min(looked_at + if demand.wanted > 0 { LEAST_PACE } else { NEWS_LOOK });
        }
        if demand.wanted > 0 && self.may_open(now) < demand.wanted {
            if self.is_short || self.is_exhausted(now) {
                due = due.min(looked_at + HUNGRY_LOOK);
            } else if self.capacity() < goal {
                due = now;
            }
            if !self.is_proven(now) && self.may_open_if_proven(now) {
                due = due.min(now);
            }
            let settles = self.held.iter().filter(|held| !held.is_settled).map(|held| held.since).min();
            if let Some(since) = settles {
                due = due.min(since + self.terms.settle);
            }
            if let Some(at) = self.floor.rises_at(self.terms.settle) {
                due = due.min(at);
            }
        }
        if let Some(since) = self.surplus_since {
            let rest = if self.seen.poorest.is_some() { Duration::ZERO } else { SURPLUS_REST };
            due = due.min(since + rest);
        }
        if self.giving > 0 && self.excess() == 0 {
            due = due.min(now);
        }
        due.max(looked_at + pace)
    }

    fn may_open_if_proven(&self, now: Moment) -> bool {
        self.usable(now) > self.servers.count()
    }

    fn order(&mut self, now: Moment, demand: Demand, goal: usize) -> Order {
        let release = self.give_back(now, goal);
        let mut order = Order {
            id: self.next_id,
            begins_session: self.looked_at.is_none(),
            register: self.servers.unregistered(),
            forget: self.servers.take_gone(),
            doubtful: self.servers.asked_after(),
            ..Order::default()
        };
        self.next_id += 1;
        let missing = goal.saturating_sub(self.capacity());
        if release.is_empty()
            && missing > 0
            && let Some(places) = self.terms.places(self.limits)
        {
            order.take = missing.div_ceil(self.terms.chunk.max(1));
            order.candidates =
                (0..self.terms.chunks(places)).map(|index| self.terms.chunk(places, index)).collect();
        }
        order.is_starving = demand.wanted > 0 && self.is_exhausted(now);
        order.release = release;
        order
    }

    /// Chunks that go back now; they are not used from here on.
    fn give_back(&mut self, now: Moment, goal: usize) -> Vec<Chunk> {
        let mut release = Vec::new();
        let used = self.servers.count();
        if self.giving > 0 && self.excess() == 0 {
            if let Some(held) = self.held.pop() {
                release.push(held.chunk);
                (self.gained_at, self.giving) = (now, 0);
            }
        } else {
            let rest = if self.seen.poorest.is_some() { Duration::ZERO } else { SURPLUS_REST };
            if self.surplus_since.is_some_and(|since| now.since(since) >= rest) {
                while let Some(chunk) = self.spare(goal.max(used)) {
                    self.held.retain(|held| held.chunk != chunk);
                    release.push(chunk);
                }
                self.surplus_since = None;
            }
        }
        release
    }

    /// The chunks that the session says it holds; returns how many are new.
    fn take_over(&mut self, now: Moment, asked_at: Moment, mine: &[Chunk]) -> usize {
        let before = std::mem::take(&mut self.held);
        let mut gained = 0;
        for &chunk in mine {
            let known = before.iter().find(|held| held.chunk == chunk);
            let since = known.map_or(now, |held| held.since);
            gained += usize::from(known.is_none());
            let is_settled =
                known.is_some_and(|held| held.is_settled) || since + self.terms.settle <= asked_at;
            self.held.push(Held { chunk, since, is_settled });
        }
        // The oldest first: the last one goes first.
        self.held.sort_by_key(|held| (held.since, held.chunk));
        gained
    }
}

#[cfg(test)]
mod tests;
