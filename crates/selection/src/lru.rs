//! A map with a bound: the entry that was used longest ago makes room.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

#[derive(Clone, Debug)]
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, (V, u64)>,
    /// By the time of their last use: the first goes first.
    order: BTreeMap<u64, K>,
    uses: u64,
    most: usize,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    /// Room for so many entries, at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), uses: 0, most: most.max(1) }
    }

    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// One entry, which counts as used now.
    pub(crate) fn touch(&mut self, key: &K) -> Option<&mut V> {
        let (value, used) = self.entries.get_mut(key)?;
        let kept = self.order.remove(used)?;
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, kept);
        Some(value)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        while self.entries.len() >= self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.entries.remove(&oldest);
        }
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, (value, self.uses));
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (value, used) = self.entries.remove(key)?;
        self.order.remove(&used);
        Some(value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        debug_assert_eq!(self.entries.len(), self.order.len());
        self.entries.len()
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
    }
}
