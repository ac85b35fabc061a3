//! Who came last, in a line that is in the order of coming.

use crate::line::Ticket;

/// Tickets that mean nothing any more are thrown out when there are so many more than people in the line.
const SLACK: usize = 64;

/// The tickets of a line, the newest on top. Those of people who have left are passed over when they come up, and thrown out
/// when they have become as many as the others: it costs O(1) for each ticket, and memory in proportion to the line.
#[derive(Clone, Debug, Default)]
pub struct Newest {
    tickets: Vec<Ticket>,
}

impl Newest {
    /// Nobody; owns no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { tickets: Vec::new() }
    }

    /// Somebody has joined; `is_waiting` says of a ticket whether it still stands for somebody, and `waiting` how many wait.
    pub fn push(&mut self, ticket: Ticket, waiting: usize, is_waiting: impl FnMut(&Ticket) -> bool) {
        if self.tickets.len() >= waiting.saturating_mul(2).saturating_add(SLACK) {
            self.tickets.retain(is_waiting);
        }
        self.tickets.push(ticket);
    }

    /// Takes out the newest that still waits.
    pub fn pop(&mut self, mut is_waiting: impl FnMut(&Ticket) -> bool) -> Option<Ticket> {
        while let Some(ticket) = self.tickets.pop() {
            if is_waiting(&ticket) {
                return Some(ticket);
            }
        }
        None
    }

    /// Nobody any more; gives the memory back.
    pub fn clear(&mut self) {
        self.tickets = Vec::new();
    }

    /// Tickets that are kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.tickets.len()
    }

    /// None are.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }
}

#[cfg(test)]
mod tests;
