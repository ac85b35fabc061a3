//! A map with a bound: the entry that was used longest ago makes room.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, at most so many; see the head of this file.
#[derive(Clone, Debug)]
pub struct Lru<K, V> {
    entries: HashMap<K, (V, u64)>,
    /// By the time of their last use: the first goes first.
    order: BTreeMap<u64, K>,
    uses: u64,
    most: usize,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    /// Room for so many entries, at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), uses: 0, most: most.max(1) }
    }

    /// One entry; this is no use of it.
    #[must_use]
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// See [`Self::peek`].
    pub fn peek_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(value, _)| value)
    }

    /// One entry, which counts as used now.
    pub fn touch(&mut self, key: &K) -> Option<&mut V> {
        let (value, used) = self.entries.get_mut(key)?;
        let kept = self.order.remove(used)?;
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, kept);
        Some(value)
    }

    /// One entry, which counts as used now, and is made if it is not there.
    pub fn touch_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(key) {
            self.make_room();
        }
        self.uses += 1;
        let uses = self.uses;
        let (value, used) = self.entries.entry(key.clone()).or_insert_with(|| (make(), uses));
        self.order.remove(used);
        self.order.insert(uses, key.clone());
        *used = uses;
        value
    }

    /// In place of what the key had.
    pub fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        self.make_room();
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, (value, self.uses));
    }

    /// Takes one out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (value, used) = self.entries.remove(key)?;
        self.order.remove(&used);
        Some(value)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        debug_assert_eq!(self.entries.len(), self.order.len());
        self.entries.len()
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, (value, _))| (key, value))
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
    }

    fn make_room(&mut self) {
        while self.entries.len() >= self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_that_was_used_longest_ago_makes_room() {
        let mut map = Lru::new(3);
        (0..3).for_each(|key| map.insert(key, key));
        assert!(map.touch(&0).is_some());
        map.insert(3, 3);
        assert_eq!((map.len(), map.peek(&1), map.peek(&0)), (3, None, Some(&0)));
        map.insert(3, 4);
        assert_eq!((map.len(), map.remove(&3), map.len()), (3, Some(4), 2));
        assert_eq!((*map.touch_or_insert_with(&2, || 9), *map.touch_or_insert_with(&4, || 4)), (2, 4));
        map.insert(5, 5);
        assert_eq!((map.len(), map.peek(&0), map.iter().count()), (3, None, 3));
        map.clear();
        assert!(map.is_empty() && map.touch(&4).is_none());
    }
}
