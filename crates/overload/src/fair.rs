//! Which of several waiting lines under a shared cap is served next.

use std::collections::{BTreeSet, HashMap};

/// Takes turns between pools: of those with need, the one whose turn is longest ago comes next.
///
/// A newcomer joins behind everyone who is registered; so pools that come and go cannot push the others back, and the
/// newcomer itself waits for at most one turn of each. A pool that had no need for a while gets one turn for it, not many.
/// Each pick costs O(log n) of the pools with need; pools without need are not visited.
#[derive(Clone, Debug, Default)]
pub struct Rotation {
    pools: HashMap<u32, Pool>,
    needy: BTreeSet<(u64, u32)>,
    turns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pool {
    /// The number of its last turn; unique among the pools.
    last_turn: u64,
    needs: bool,
}

impl Rotation {
    /// No pools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pool without need. One that is registered already keeps its place.
    pub fn register(&mut self, key: u32) {
        let last_turn = self.turn();
        self.pools.entry(key).or_insert(Pool { last_turn, needs: false });
    }

    /// Takes a pool out.
    pub fn forget(&mut self, key: u32) {
        self.set_need(key, false);
        self.pools.remove(&key);
    }

    /// Whether the pool has someone waiting whom a connection would help. A pool at its own limit has no need.
    /// Without effect for a pool that is not registered.
    pub fn set_need(&mut self, key: u32, needs: bool) {
        let Some(pool) = self.pools.get_mut(&key) else { return };
        if pool.needs == needs {
            return;
        }
        pool.needs = needs;
        if needs {
            self.needy.insert((pool.last_turn, key));
        } else {
            self.needy.remove(&(pool.last_turn, key));
        }
    }

    /// The pool whose turn it is; it stays so until [`Self::served`] is told.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        self.needy.first().map(|(_, key)| *key)
    }

    /// The pools with need, in the order of their turns.
    pub fn needy(&self) -> impl Iterator<Item = u32> + '_ {
        self.needy.iter().map(|(_, key)| *key)
    }

    /// The pool has had a turn and goes behind all others; its need stays as it is.
    pub fn served(&mut self, key: u32) {
        let turn = self.turn();
        let Some(pool) = self.pools.get_mut(&key) else { return };
        if pool.needs {
            self.needy.remove(&(pool.last_turn, key));
            self.needy.insert((turn, key));
        }
        pool.last_turn = turn;
    }

    /// [`Self::next`] and [`Self::served`] in one.
    pub fn take_turn(&mut self) -> Option<u32> {
        let key = self.next()?;
        self.served(key);
        Some(key)
    }

    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

#[cfg(test)]
mod tests;
