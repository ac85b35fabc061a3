//! The deadlines of opens that no provider has answered yet, and of streams that nobody pays for.

use super::{Connection, Hub};
use overload::Moment;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Entries of opens that were answered stay until their time, or until there are so many: then they are looked through. So there are
/// never many more than opens that wait.
const FEW: usize = 4_096;

#[derive(Default)]
pub(crate) struct Deadlines {
    heap: RefCell<BinaryHeap<Reverse<Entry>>>,
    /// Entries at which they are looked through.
    most: Cell<usize>,
    earlier: Notify,
}

struct Entry {
    at: Moment,
    opener: Weak<Connection>,
    stream: u32,
}

impl Deadlines {
    pub(super) fn add(&self, hub: &Hub, after: Duration, opener: &Rc<Connection>, stream: u32) {
        let at = hub.clock.now() + after;
        let mut heap = self.heap.borrow_mut();
        if heap.len() >= self.most.get().max(FEW) {
            heap.retain(|Reverse(entry)| {
                entry.opener.upgrade().is_some_and(|opener| opener.waits(entry.stream))
            });
            self.most.set(heap.len() * 2);
        }
        let is_first = heap.peek().is_none_or(|Reverse(first)| at < first.at);
        heap.push(Reverse(Entry { at, opener: Rc::downgrade(opener), stream }));
        if is_first {
            self.earlier.notify_one();
        }
    }

    fn take_due(&self, now: Moment) -> Option<(Weak<Connection>, u32)> {
        let mut heap = self.heap.borrow_mut();
        let Reverse(first) = heap.peek()?;
        if first.at > now {
            return None;
        }
        heap.pop().map(|Reverse(entry)| (entry.opener, entry.stream))
    }

    fn next(&self) -> Option<Moment> {
        self.heap.borrow().peek().map(|Reverse(first)| first.at)
    }
}

impl Hub {
    /// Keeps the deadlines; never ends.
    pub(crate) async fn keep_deadlines(self: Rc<Self>) {
        loop {
            while let Some((opener, stream)) = self.deadlines.take_due(self.clock.now()) {
                if let Some(opener) = opener.upgrade() {
                    opener.overdue(&self, stream);
                }
            }
            match self.deadlines.next() {
                None => self.deadlines.earlier.notified().await,
                Some(next) => tokio::select! {
                    () = self.deadlines.earlier.notified() => {}
                    () = tokio::time::sleep_until(self.clock.instant(next)) => {}
                },
            }
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
