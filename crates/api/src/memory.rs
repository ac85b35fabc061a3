//! What is remembered for a moment, so that whoever asks the same again and again costs no database.

use std::collections::HashMap;
use std::hash::Hash;

/// The most that is remembered; beyond that, what is over goes, and else all of it.
pub(crate) const MOST_REMEMBERED: usize = 10_000;

/// Values that hold for a bounded time.
#[derive(Debug)]
pub(crate) struct Memory<K, V> {
    kept: HashMap<K, (u64, V)>,
    keep_ms: u64,
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    pub(crate) fn new(keep_ms: u64) -> Self {
        Self { kept: HashMap::new(), keep_ms }
    }

    pub(crate) fn get(&self, key: &K, now_ms: u64) -> Option<V> {
        let (at_ms, value) = self.kept.get(key)?;
        (now_ms.saturating_sub(*at_ms) < self.keep_ms).then(|| value.clone())
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    pub(crate) fn keep(&mut self, key: K, value: V, now_ms: u64) {
        if self.kept.len() >= MOST_REMEMBERED && !self.kept.contains_key(&key) {
            let keep_ms = self.keep_ms;
            self.kept.retain(|_, (at_ms, _)| now_ms.saturating_sub(*at_ms) < keep_ms);
            if self.kept.len() >= MOST_REMEMBERED {
                self.kept.clear();
            }
        }
        self.kept.insert(key, (now_ms, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_forgotten_in_time_and_bounded() {
        let mut memory = Memory::new(1_000);
        memory.keep(1, "a", 0);
        assert_eq!((memory.get(&1, 999), memory.get(&1, 1_000), memory.get(&2, 0)), (Some("a"), None, None));
        for key in 0..3 * MOST_REMEMBERED {
            memory.keep(key, "b", 5_000);
            assert!(memory.kept.len() <= MOST_REMEMBERED);
        }
    }
}
