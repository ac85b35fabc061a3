//! The rules of the table: expiry, and what has to go when it is full. Without a clock: every call says when it is.
//!
//! Values go first, the one that expires soonest before the others. A lease or a counter that has not expired is never thrown
//! out, since somebody relies on it: if there are only those, the table is full, and says so.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use overload::Moment;

use super::MemoryLimits;
use crate::CacheError;
use crate::cache::Count;

/// What an entry costs beside its name and value, about.
pub(super) const ENTRY_BYTES: usize = 160;

/// Expired entries that one call clears away: none of them pays for all.
const CLEARED_AT_ONCE: usize = 16;

type Name = Arc<str>;

pub(super) struct Table {
    limits: MemoryLimits,
    entries: HashMap<Name, Entry>,
    /// By expiry: what may be thrown out, and what may not.
    values: BTreeSet<(Moment, Name)>,
    held: BTreeSet<(Moment, Name)>,
    bytes: usize,
    last_fence: u64,
}

struct Entry {
    what: What,
    until: Moment,
}

enum What {
    Value(Box<[u8]>),
    Lease { holder: Box<str>, fence: u64 },
    Count(u64),
}

impl Table {
    pub(super) fn new(limits: MemoryLimits, last_fence: u64) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            values: BTreeSet::new(),
            held: BTreeSet::new(),
            bytes: 0,
            last_fence,
        }
    }

    pub(super) fn get(&mut self, name: &str, now: Moment) -> Option<&[u8]> {
        self.clear(now);
        match self.entries.get(name) {
            Some(Entry { what: What::Value(value), until }) if *until > now => Some(value),
            _ => None,
        }
    }

    pub(super) fn put(
        &mut self,
        name: &str,
        value: &[u8],
        keep: Duration,
        now: Moment,
    ) -> Result<(), CacheError> {
        self.insert(name, What::Value(value.into()), now + keep, now)
    }

    /// The fencing number, or for how many ms another has it.
    pub(super) fn take(
        &mut self,
        name: &str,
        holder: &str,
        keep: Duration,
        now: Moment,
    ) -> Result<Result<u64, u64>, CacheError> {
        if let Some(entry) = self.live(name, now)
            && let What::Lease { holder: has, fence } = &entry.what
        {
            let fence = *fence;
            if **has != *holder {
                return Ok(Err(ms(entry.until.since(now)).max(1)));
            }
            self.extend(name, now + keep);
            return Ok(Ok(fence));
        }
        let fence = self.last_fence + 1;
        self.insert(name, What::Lease { holder: holder.into(), fence }, now + keep, now)?;
        self.last_fence = fence;
        Ok(Ok(fence))
    }

    pub(super) fn renew(
        &mut self,
        name: &str,
        holder: &str,
        fence: u64,
        keep: Duration,
        now: Moment,
    ) -> bool {
        let holds = self.holds(name, holder, fence, now);
        if holds {
            self.extend(name, now + keep);
        }
        holds
    }

    pub(super) fn give_back(&mut self, name: &str, holder: &str, fence: u64, now: Moment) -> bool {
        let holds = self.holds(name, holder, fence, now);
        if holds {
            self.remove(name);
        }
        holds
    }

    pub(super) fn count(
        &mut self,
        name: &str,
        by: u32,
        window: Duration,
        now: Moment,
    ) -> Result<Count, CacheError> {
        self.clear(now);
        if let Some(Entry { what: What::Count(total), until }) = self.entries.get_mut(name)
            && *until > now
        {
            *total = total.saturating_add(u64::from(by));
            return Ok(Count { total: *total, ends_in_ms: ms(until.since(now)).max(1) });
        }
        self.insert(name, What::Count(u64::from(by)), now + window, now)?;
        Ok(Count { total: u64::from(by), ends_in_ms: ms(window).max(1) })
    }

    fn live(&self, name: &str, now: Moment) -> Option<&Entry> {
        self.entries.get(name).filter(|entry| entry.until > now)
    }

    fn holds(&self, name: &str, holder: &str, fence: u64, now: Moment) -> bool {
        matches!(
            self.live(name, now),
            Some(Entry { what: What::Lease { holder: has, fence: number }, .. })
                if **has == *holder && *number == fence
        )
    }

    fn insert(&mut self, name: &str, what: What, until: Moment, now: Moment) -> Result<(), CacheError> {
        self.clear(now);
        self.remove(name);
        self.make_room(cost(name, &what), now)?;
        let name: Name = name.into();
        self.bytes += cost(&name, &what);
        self.order(&what).insert((until, Arc::clone(&name)));
        self.entries.insert(name, Entry { what, until });
        Ok(())
    }

    fn extend(&mut self, name: &str, until: Moment) {
        if let Some((name, entry)) = self.entries.remove_entry(name) {
            self.order(&entry.what).remove(&(entry.until, Arc::clone(&name)));
            self.order(&entry.what).insert((until, Arc::clone(&name)));
            self.entries.insert(name, Entry { until, ..entry });
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some((name, entry)) = self.entries.remove_entry(name) {
            self.bytes -= cost(&name, &entry.what);
            self.order(&entry.what).remove(&(entry.until, name));
        }
    }

    fn order(&mut self, what: &What) -> &mut BTreeSet<(Moment, Name)> {
        match what {
            What::Value(_) => &mut self.values,
            What::Lease { .. } | What::Count(_) => &mut self.held,
        }
    }

    fn make_room(&mut self, cost: usize, now: Moment) -> Result<(), CacheError> {
        while self.entries.len() >= self.limits.entries || self.bytes.saturating_add(cost) > self.limits.bytes
        {
            let expired = self.held.first().filter(|(until, _)| *until <= now);
            let Some((_, name)) = expired.or_else(|| self.values.first()) else {
                return Err(CacheError::Full);
            };
            let name = Arc::clone(name);
            self.remove(&name);
        }
        Ok(())
    }

    fn clear(&mut self, now: Moment) {
        for _ in 0..CLEARED_AT_ONCE {
            let firsts = [self.values.first(), self.held.first()];
            let expired = firsts.into_iter().flatten().find(|(until, _)| *until <= now);
            let Some((_, name)) = expired else { return };
            let name = Arc::clone(name);
            self.remove(&name);
        }
    }
}

fn cost(name: &str, what: &What) -> usize {
    let own = match what {
        What::Value(value) => value.len(),
        What::Lease { holder, .. } => holder.len(),
        What::Count(_) => 0,
    };
    ENTRY_BYTES + name.len() + own
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
