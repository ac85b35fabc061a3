//! The waiting line of one pool: first come, first served, and anyone may leave from any place at any time.

use std::time::Duration;

use thiserror::Error;

use crate::Moment;
use slots::{Entry, Slots};

mod slots;

/// A waiting line with a bound.
///
/// Every entry is the item and the moment it was queued. Entries stand in the order of those moments, so the first to
/// wait is also the first to expire. A linked list within a table: joining and leaving cost O(1) and, once the table has
/// grown, no allocation.
#[derive(Clone, Debug)]
pub struct Line<T> {
    slots: Slots<T>,
    ends: Option<Ends>,
    /// The first whom [`Line::take_notice`] has not passed yet; everyone behind him neither.
    unnoticed: Option<u32>,
    limit: usize,
}

/// The place of one entry in its line. A ticket of someone who has left is never valid again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    index: u32,
    generation: u64,
    /// Which of several lines, for [`crate::Lanes`]; a line alone does not look at it.
    pub(crate) lane: u8,
}

impl Ticket {
    /// Which lane of a [`crate::Lanes`] it is for; zero in a line alone.
    #[must_use]
    pub const fn lane(self) -> u8 {
        self.lane
    }

    pub(crate) const fn in_lane(self, lane: u8) -> Self {
        Self { lane, ..self }
    }
}

/// The line has reached its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the waiting line is full: {limit} may wait. Nothing was sent to a server; trying again later is safe"
)]
pub struct LineFull {
    /// How many may wait.
    pub limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    front: u32,
    back: u32,
}

impl<T: Copy> Line<T> {
    /// An empty line that owns no memory. At most `limit` may wait (and never more than 2³² − 1).
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { slots: Slots::new(), ends: None, unnoticed: None, limit: bounded(limit) }
    }

    /// Joins at the end.
    ///
    /// A moment before that of the last entry counts as that one's: the line stays in order.
    ///
    /// # Errors
    /// [`LineFull`] at the limit.
    pub fn push_back(&mut self, item: T, now: Moment) -> Result<Ticket, LineFull> {
        self.check_room()?;
        let before = self.ends.map(|ends| ends.back);
        let last = before.and_then(|index| self.slots.entry(index)).map(|entry| entry.queued_at);
        let queued_at = last.map_or(now, |last| last.max(now));
        Ok(self.link(item, queued_at, before, None))
    }

    /// Someone who was served in vain goes back to the place that his first queueing gives him: before everyone who came
    /// at that moment or later. Costs one step for each who came earlier, and those are only others who went back.
    ///
    /// # Errors
    /// [`LineFull`] at the limit.
    pub fn push_front_since(&mut self, item: T, queued_at: Moment) -> Result<Ticket, LineFull> {
        self.check_room()?;
        let mut before = None;
        let mut after = self.ends.map(|ends| ends.front);
        while let Some(index) = after {
            let Some(entry) = self.slots.entry(index) else { break };
            if entry.queued_at >= queued_at {
                break;
            }
            before = after;
            after = entry.next;
        }
        let ticket = self.link(item, queued_at, before, after);
        // He may have been named before; behind someone who has not been, he is named with him.
        if self.unnoticed == Some(ticket.index) {
            self.unnoticed = after;
        }
        Ok(ticket)
    }

    /// Leaves the line from wherever he stands. `None` if he has left already.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.slots.find(ticket)?;
        self.unlink(ticket.index).map(|entry| entry.item)
    }

    /// Takes out the first, with the moment he was queued.
    pub fn pop_front(&mut self) -> Option<(T, Moment)> {
        let front = self.ends?.front;
        self.unlink(front).map(|entry| (entry.item, entry.queued_at))
    }

    /// Takes out the first if he has waited for `limit` or longer. The limit is an argument so that a reload reaches
    /// those who wait already. Zero: no limit.
    pub fn pop_expired(&mut self, now: Moment, limit: Duration) -> Option<(T, Moment)> {
        if self.next_deadline(limit)? > now {
            return None;
        }
        self.pop_front()
    }

    /// When [`Self::pop_expired`] has something to give. `None` for an empty line and for a limit of zero.
    #[must_use]
    pub fn next_deadline(&self, limit: Duration) -> Option<Moment> {
        if limit.is_zero() {
            return None;
        }
        self.front().map(|(_, queued_at)| queued_at + limit)
    }

    /// The next who has waited for `limit` or longer and has not been named here before: each is named once while he
    /// stands in the line. Costs the same however many wait. Zero: no limit.
    pub fn take_notice(&mut self, now: Moment, limit: Duration) -> Option<T> {
        if self.next_notice(limit)? > now {
            return None;
        }
        let entry = self.slots.entry(self.unnoticed?)?;
        let item = entry.item;
        self.unnoticed = entry.next;
        Some(item)
    }

    /// When [`Self::take_notice`] has someone to name.
    #[must_use]
    pub fn next_notice(&self, limit: Duration) -> Option<Moment> {
        if limit.is_zero() {
            return None;
        }
        self.slots.entry(self.unnoticed?).map(|entry| entry.queued_at + limit)
    }

    /// The first, with the moment he was queued.
    #[must_use]
    pub fn front(&self) -> Option<(&T, Moment)> {
        self.iter().next()
    }

    /// The entry of a ticket, with the moment it was queued. `None` if it has left.
    #[must_use]
    pub fn entry(&self, ticket: Ticket) -> Option<(&T, Moment)> {
        self.slots.find(ticket).map(|entry| (&entry.item, entry.queued_at))
    }

    /// How long the first has waited; zero for an empty line.
    #[must_use]
    pub fn oldest_wait(&self, now: Moment) -> Duration {
        self.front().map_or(Duration::ZERO, |(_, queued_at)| now.since(queued_at))
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.used()
    }

    /// Nobody waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many may wait.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Another limit. Nobody who waits is put out; above the limit nobody joins.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = bounded(limit);
    }

    /// All entries from the first to the last, each with the moment it was queued.
    pub fn iter(&self) -> impl Iterator<Item = (&T, Moment)> + '_ {
        let first = self.ends.and_then(|ends| self.slots.entry(ends.front));
        std::iter::successors(first, |entry| entry.next.and_then(|next| self.slots.entry(next)))
            .map(|entry| (&entry.item, entry.queued_at))
    }

    /// Gives the memory of an empty line back. Without effect while someone waits. Old tickets stay invalid.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.slots.release();
        }
    }

    /// Bytes owned beyond the line itself.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
    }

    fn check_room(&self) -> Result<(), LineFull> {
        if self.len() < self.limit { Ok(()) } else { Err(LineFull { limit: self.limit }) }
    }

    fn link(&mut self, item: T, queued_at: Moment, before: Option<u32>, after: Option<u32>) -> Ticket {
        let ticket = self.slots.insert(Entry { item, queued_at, previous: before, next: after });
        self.join(before, Some(ticket.index));
        self.join(Some(ticket.index), after);
        if after.is_none() {
            self.unnoticed.get_or_insert(ticket.index);
        }
        ticket
    }

    fn unlink(&mut self, index: u32) -> Option<Entry<T>> {
        let entry = self.slots.remove(index)?;
        self.join(entry.previous, entry.next);
        if self.unnoticed == Some(index) {
            self.unnoticed = entry.next;
        }
        Some(entry)
    }

    /// Makes two places neighbours; no place means the end of the line on that side.
    fn join(&mut self, left: Option<u32>, right: Option<u32>) {
        if let Some(entry) = left.and_then(|index| self.slots.entry_mut(index)) {
            entry.next = right;
        }
        if let Some(entry) = right.and_then(|index| self.slots.entry_mut(index)) {
            entry.previous = left;
        }
        self.ends = match (left, right, self.ends) {
            (None, None, _) => None,
            (None, Some(front), ends) => Some(Ends { front, back: ends.map_or(front, |ends| ends.back) }),
            (Some(back), None, ends) => Some(Ends { front: ends.map_or(back, |ends| ends.front), back }),
            (Some(_), Some(_), ends) => ends,
        };
    }
}

/// Places are numbered with 32 bits.
const fn bounded(limit: usize) -> usize {
    if limit > u32::MAX as usize { u32::MAX as usize } else { limit }
}

#[cfg(test)]
mod tests;
