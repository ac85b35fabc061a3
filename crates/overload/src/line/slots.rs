//! The table that a line keeps its entries in: places are used again, tickets are not.

use super::Ticket;
use crate::Moment;

#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Option<u32>,
    used: usize,
    /// Counts all entries there ever were, so that a ticket stays invalid even after the table was released.
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<T> {
    pub(super) item: T,
    pub(super) queued_at: Moment,
    pub(super) previous: Option<u32>,
    pub(super) next: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Slot<T> {
    Free { next_free: Option<u32> },
    Used { generation: u64, entry: Entry<T> },
}

impl<T: Copy> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: None, used: 0, generation: 0 }
    }

    /// The caller keeps the number of entries at or below `u32::MAX`.
    pub(super) fn insert(&mut self, entry: Entry<T>) -> Ticket {
        self.generation += 1;
        self.used += 1;
        let generation = self.generation;
        let used = Slot::Used { generation, entry };
        let index = match self.free.and_then(|index| Some((index, self.slots.get_mut(index as usize)?))) {
            Some((index, slot)) => {
                if let Slot::Free { next_free } = *slot {
                    self.free = next_free;
                }
                *slot = used;
                index
            }
            None => {
                self.slots.push(used);
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        Ticket { index, generation, lane: 0 }
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<Entry<T>> {
        let slot = self.slots.get_mut(index as usize)?;
        let Slot::Used { entry, .. } = *slot else { return None };
        *slot = Slot::Free { next_free: self.free };
        self.free = Some(index);
        self.used -= 1;
        Some(entry)
    }

    pub(super) fn find(&self, ticket: Ticket) -> Option<&Entry<T>> {
        match self.slots.get(ticket.index as usize)? {
            Slot::Used { generation, entry } if *generation == ticket.generation => Some(entry),
            Slot::Used { .. } | Slot::Free { .. } => None,
        }
    }

    pub(super) fn entry(&self, index: u32) -> Option<&Entry<T>> {
        match self.slots.get(index as usize)? {
            Slot::Used { entry, .. } => Some(entry),
            Slot::Free { .. } => None,
        }
    }

    pub(super) fn entry_mut(&mut self, index: u32) -> Option<&mut Entry<T>> {
        match self.slots.get_mut(index as usize)? {
            Slot::Used { entry, .. } => Some(entry),
            Slot::Free { .. } => None,
        }
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Only for an empty table.
    pub(super) fn release(&mut self) {
        self.slots = Vec::new();
        self.free = None;
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>()
    }
}
