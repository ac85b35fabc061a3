//! A waiting line of several lanes, so that one class of work cannot starve the others.

use crate::Moment;
use crate::line::{Line, LineFull, Ticket};
use std::time::Duration;

/// Most lanes of one line.
pub const MAX_LANES: usize = 16;

/// Greatest weight of a lane.
pub const GREATEST_WEIGHT: u32 = 1_000;

/// What a turn costs a lane of weight one. Divisible by every small weight, and the greatest weight still pays a
/// thousandth exactly enough.
const STRIDE: u64 = 720_720_000;

/// What one lane may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneShare {
    /// Turns, relative to the other lanes that wait; zero counts as one.
    pub weight: u32,
    /// Of a hundred servers, so many go to this lane before any goes by weight.
    pub share_percent: u32,
}

impl LaneShare {
    /// The lane of whoever is in no other: one turn, and no guarantee.
    pub const PLAIN: Self = Self { weight: 1, share_percent: 0 };

    /// Whole servers that are guaranteed out of `servers`; a share of less than one counts by weight alone.
    #[must_use]
    pub const fn guaranteed(self, servers: usize) -> usize {
        let percent = if self.share_percent > 100 { 100 } else { self.share_percent };
        servers.saturating_mul(percent as usize) / 100
    }

    const fn cost(self) -> u64 {
        let weight = match self.weight {
            0 => 1,
            weight if weight > GREATEST_WEIGHT => GREATEST_WEIGHT,
            weight => weight,
        };
        STRIDE / weight as u64
    }
}

/// One waiting line of up to [`MAX_LANES`] lanes. Within a lane, first come, first served.
///
/// Who is next: of the lanes with waiters that hold fewer servers than they have guaranteed, the one that lacks most of it;
/// with no such lane, by stride scheduling (Waldspurger and Weihl 1995): turns in the ratio of the weights. A lane
/// without waiters asks for nothing, so its share goes to the others; when it comes back it has saved up no turns.
/// With one lane this is a [`Line`], and owns no memory beyond it.
#[derive(Clone, Debug)]
pub struct Lanes<T> {
    first: Lane<T>,
    more: Vec<Lane<T>>,
    /// Where the lane that was served last by weight stood.
    turn: u64,
    limit: usize,
}

#[derive(Clone, Debug)]
struct Lane<T> {
    line: Line<T>,
    share: LaneShare,
    /// Servers in use by this lane.
    held: usize,
    /// Servers that it was ever given.
    served: u64,
    /// The lane with the least is next.
    pass: u64,
}

impl<T: Copy> Lane<T> {
    const fn new(share: LaneShare) -> Self {
        Self { line: Line::new(usize::MAX), share, held: 0, served: 0, pass: 0 }
    }

    /// What it has guaranteed and does not hold, as a fraction: missing, guaranteed.
    fn lack(&self, servers: usize) -> Option<(usize, usize)> {
        let guaranteed = self.share.guaranteed(servers);
        (self.held < guaranteed).then(|| (guaranteed - self.held, guaranteed))
    }
}

impl<T: Copy> Lanes<T> {
    /// One empty lane. At most `limit` may wait in all lanes together.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { first: Lane::new(LaneShare::PLAIN), more: Vec::new(), turn: 0, limit }
    }

    /// Other lanes from now on: as many as `shares`, at least one and at most [`MAX_LANES`]. Gives back everybody who waits,
    /// the first to come first; each may be queued again with the moment that stands beside him. No lane holds a server
    /// until it is said again.
    pub fn reshape(&mut self, shares: &[LaneShare]) -> Vec<(T, Moment)> {
        let mut waiting = Vec::with_capacity(self.len());
        while let Some(entry) = self.pop_front() {
            waiting.push(entry);
        }
        let mut lanes = shares.iter().take(MAX_LANES).map(|&share| Lane::new(share));
        self.first = lanes.next().unwrap_or_else(|| Lane::new(LaneShare::PLAIN));
        self.more = lanes.collect();
        self.turn = 0;
        waiting
    }

    /// Joins a lane at its end. A lane that does not exist counts as the first.
    ///
    /// # Errors
    /// [`LineFull`] at the limit of all lanes together.
    pub fn push_back(&mut self, lane: u8, item: T, now: Moment) -> Result<Ticket, LineFull> {
        if self.len() >= self.limit {
            return Err(LineFull { limit: self.limit });
        }
        let lane = if usize::from(lane) <= self.more.len() { lane } else { 0 };
        let turn = self.turn;
        let joined = self.lane_mut(lane);
        if joined.line.is_empty() {
            joined.pass = joined.pass.max(turn);
        }
        let ticket = joined.line.push_back(item, now)?;
        Ok(ticket.in_lane(lane))
    }

    /// Takes out whoever is next for a server, of `servers` that there are, with the moment he was queued.
    pub fn pop_next(&mut self, servers: usize) -> Option<(T, Moment)> {
        let lane = self.next_lane(servers)?;
        self.lane_mut(lane).line.pop_front()
    }

    /// Chooses the lane that is served next, and charges it for its turn. `None` if nobody waits.
    pub fn next_lane(&mut self, servers: usize) -> Option<u8> {
        if self.more.is_empty() {
            return (!self.first.line.is_empty()).then_some(0);
        }
        let waiting = || self.numbered().filter(|(_, lane)| !lane.line.is_empty());
        let lacking = waiting().filter_map(|(number, lane)| Some((number, lane.lack(servers)?)));
        // The greater fraction is missing; crosswise, so that nothing is rounded.
        let neediest = lacking.reduce(|best, next| {
            let ((missing, of), (next_missing, next_of)) = (best.1, next.1);
            if next_missing * of > missing * next_of { next } else { best }
        });
        if let Some((number, _)) = neediest {
            return Some(number);
        }
        let (number, pass) =
            waiting().map(|(number, lane)| (number, lane.pass)).min_by_key(|(_, pass)| *pass)?;
        self.turn = self.turn.max(pass);
        let lane = self.lane_mut(number);
        lane.pass = lane.pass.saturating_add(lane.share.cost());
        Some(number)
    }

    /// Takes out the first of one lane.
    pub fn pop_front_of(&mut self, lane: u8) -> Option<(T, Moment)> {
        self.lane_mut(lane).line.pop_front()
    }

    /// Takes out whoever has waited for longest, whatever his lane.
    pub fn pop_front(&mut self) -> Option<(T, Moment)> {
        let lane = self.earliest(|line| line.front().map(|(_, queued_at)| queued_at))?;
        self.lane_mut(lane).line.pop_front()
    }

    /// Leaves from wherever he stands. `None` if he has left already.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.lane_mut(ticket.lane).line.remove(ticket)
    }

    /// A server is used by this lane from now on.
    pub fn hold(&mut self, lane: u8) {
        let lane = self.lane_mut(lane);
        lane.held += 1;
        lane.served += 1;
    }

    /// A server is not used by this lane any more.
    pub fn release(&mut self, lane: u8) {
        let lane = self.lane_mut(lane);
        lane.held = lane.held.saturating_sub(1);
    }

    /// [`Line::pop_expired`] over all lanes.
    pub fn pop_expired(&mut self, now: Moment, limit: Duration) -> Option<(T, Moment)> {
        let lane = self.earliest(|line| line.next_deadline(limit))?;
        self.lane_mut(lane).line.pop_expired(now, limit)
    }

    /// [`Line::next_deadline`] over all lanes.
    #[must_use]
    pub fn next_deadline(&self, limit: Duration) -> Option<Moment> {
        self.lines().filter_map(|line| line.next_deadline(limit)).min()
    }

    /// [`Line::take_notice`] over all lanes.
    pub fn take_notice(&mut self, now: Moment, limit: Duration) -> Option<T> {
        let lane = self.earliest(|line| line.next_notice(limit))?;
        self.lane_mut(lane).line.take_notice(now, limit)
    }

    /// [`Line::next_notice`] over all lanes.
    #[must_use]
    pub fn next_notice(&self, limit: Duration) -> Option<Moment> {
        self.lines().filter_map(|line| line.next_notice(limit)).min()
    }

    /// The entry of a ticket, with the moment it was queued. `None` if it has left.
    #[must_use]
    pub fn entry(&self, ticket: Ticket) -> Option<(&T, Moment)> {
        self.lane(ticket.lane).line.entry(ticket)
    }

    /// How many have been queued at moments for which `holds`; each lane is passed from its first on, up to the first for
    /// which it does not, and no more than `most` are counted.
    pub fn count_while(&self, most: usize, mut holds: impl FnMut(Moment) -> bool) -> usize {
        let mut count = 0;
        for line in self.lines() {
            let left = most - count;
            count += line.iter().take(left).take_while(|(_, queued_at)| holds(*queued_at)).count();
        }
        count
    }

    /// How long the first of all has waited; zero if nobody waits.
    #[must_use]
    pub fn oldest_wait(&self, now: Moment) -> Duration {
        self.lines().map(|line| line.oldest_wait(now)).max().unwrap_or_default()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines().map(Line::len).sum()
    }

    /// Nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.line.is_empty() && self.more.iter().all(|lane| lane.line.is_empty())
    }

    /// How many wait in one lane.
    #[must_use]
    pub fn len_of(&self, lane: u8) -> usize {
        self.lane(lane).line.len()
    }

    /// Everyone in one lane, the first to come first, each with the moment he was queued.
    pub fn iter_of(&self, lane: u8) -> impl Iterator<Item = (&T, Moment)> + '_ {
        self.lane(lane).line.iter()
    }

    /// How many lanes there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        1 + self.more.len()
    }

    /// Of each lane: its share, how many wait in it and since when the first of them, how many servers it uses.
    pub fn standing(&self) -> impl Iterator<Item = LaneStanding> + '_ {
        self.numbered().map(|(_, lane)| LaneStanding {
            share: lane.share,
            waiting: lane.line.len(),
            first_queued_at: lane.line.front().map(|(_, queued_at)| queued_at),
            held: lane.held,
            served: lane.served,
        })
    }

    fn earliest(&self, of: impl Fn(&Line<T>) -> Option<Moment>) -> Option<u8> {
        self.numbered()
            .filter_map(|(number, lane)| Some((of(&lane.line)?, number)))
            .min()
            .map(|(_, number)| number)
    }

    fn numbered(&self) -> impl Iterator<Item = (u8, &Lane<T>)> {
        (0..).zip(std::iter::once(&self.first).chain(&self.more))
    }

    fn lines(&self) -> impl Iterator<Item = &Line<T>> {
        std::iter::once(&self.first).chain(&self.more).map(|lane| &lane.line)
    }

    fn lane(&self, number: u8) -> &Lane<T> {
        let beside = usize::from(number).checked_sub(1);
        beside.and_then(|index| self.more.get(index)).unwrap_or(&self.first)
    }

    fn lane_mut(&mut self, number: u8) -> &mut Lane<T> {
        let beside = usize::from(number).checked_sub(1);
        beside.and_then(|index| self.more.get_mut(index)).unwrap_or(&mut self.first)
    }
}

/// How one lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStanding {
    /// What it may have.
    pub share: LaneShare,
    /// How many wait.
    pub waiting: usize,
    /// When the first of them was queued.
    pub first_queued_at: Option<Moment>,
    /// Servers that it uses.
    pub held: usize,
    /// Servers that it was given since the lanes are as they are.
    pub served: u64,
}

#[cfg(test)]
mod tests;
