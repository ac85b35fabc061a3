//! From rows to verdicts: which pools pile up, and behind whom.

use crate::mode::LockMode;
use crate::rows::{Backend, LockRow};
use crate::sql::shown;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Most blockers that a verdict names.
pub const MAX_BLOCKERS_NAMED: usize = 8;

/// A pool is said to pile up once this share of its servers waits, as a divisor: a quarter.
const LEAST_SHARE: usize = 4;

/// A pool's servers at the time of the look.
#[derive(Clone, Debug)]
pub struct Ours<K> {
    /// Which pool.
    pub pool: K,
    /// Servers that it has.
    pub live: usize,
    /// Process ids of those that work for a client.
    pub pids: Vec<i32>,
}

/// A pool whose servers wait for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PileUp<K> {
    /// Which pool.
    pub pool: K,
    /// Its servers that wait.
    pub behind: usize,
    /// Servers that it has.
    pub live: usize,
    /// How long the first of them has waited; none if the server does not tell.
    pub longest: Option<Duration>,
    /// The table, where it is known.
    pub relation: Option<String>,
    /// The waiting DDL: who has asked for a lock that ordinary work has to wait for, and has not got it. None if they wait
    /// for a lock that is held.
    pub waiter: Option<Party>,
    /// Who keeps the DDL, or them, waiting by what it holds; the first [`MAX_BLOCKERS_NAMED`].
    pub blockers: Vec<Party>,
}

/// Somebody in a pile-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Process id; 0 for a prepared transaction.
    pub pid: i32,
    /// The mode that it asks for, or holds.
    pub mode: LockMode,
    /// The lock is a table's: not a row's, a transaction's or an advisory one.
    pub is_relation: bool,
    /// As `pg_stat_activity` has it; empty if it may not be seen.
    pub state: String,
    /// Its user.
    pub user: String,
    /// Its `application_name`.
    pub application: String,
    /// Its statement as it may be shown: bounded, and without constants.
    pub statement: String,
    /// It is a server of one of our pools.
    pub is_ours: bool,
}

/// Whether so many servers that wait are a pile-up of a pool that has so many.
#[must_use]
pub const fn is_pile(behind: usize, live: usize) -> bool {
    behind > 0 && behind * LEAST_SHARE >= live
}

/// The pools that pile up, in the order given.
#[must_use]
pub fn judge<K: Copy>(rows: &[LockRow], ours: &[Ours<K>]) -> Vec<PileUp<K>> {
    let graph = Graph::new(rows);
    let all: HashSet<i32> = ours.iter().flat_map(|pool| &pool.pids).copied().collect();
    ours.iter().filter_map(|pool| graph.judge(pool, &all)).collect()
}

struct Graph<'a> {
    rows: &'a [LockRow],
    objects: HashMap<&'a Arc<str>, Vec<usize>>,
    /// What each process, with its workers, asks for.
    requests: HashMap<i32, Vec<usize>>,
}

/// What one of our servers waits behind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// This request, of a DDL.
    Waiting(usize),
    /// This lock, which is held.
    Held(usize),
}

impl<'a> Graph<'a> {
    fn new(rows: &'a [LockRow]) -> Self {
        let mut objects: HashMap<_, Vec<usize>> = HashMap::new();
        let mut requests: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            objects.entry(&row.object).or_default().push(index);
            if !row.granted {
                requests.entry(row.backend.leader).or_default().push(index);
            }
        }
        Self { rows, objects, requests }
    }

    fn judge<K: Copy>(&self, pool: &Ours<K>, all: &HashSet<i32>) -> Option<PileUp<K>> {
        let mut behind: BTreeMap<Cause, (usize, Option<Duration>)> = BTreeMap::new();
        for pid in &pool.pids {
            let Some((cause, waited)) = self.cause(*pid) else { continue };
            let (count, longest) = behind.entry(cause).or_default();
            *count += 1;
            *longest = waited.max(*longest);
        }
        // The greatest pile; of equal ones that of a DDL.
        let (cause, (count, longest)) = behind.into_iter().rev().max_by_key(|(_, (count, _))| *count)?;
        if !is_pile(count, pool.live) {
            return None;
        }
        let named = |index: usize| self.party(index, all);
        let (waiter, holders, at) = match cause {
            Cause::Waiting(at) => (Some(named(at)), self.holders(at), at),
            Cause::Held(at) => (None, vec![at], at),
        };
        Some(PileUp {
            pool: pool.pool,
            behind: count,
            live: pool.live,
            longest,
            relation: self.rows[at].relation.as_deref().map(str::to_owned),
            waiter,
            blockers: holders.into_iter().take(MAX_BLOCKERS_NAMED).map(named).collect(),
        })
    }

    /// What a server waits behind, and for how long: the nearest DDL that waits, or else what is held.
    fn cause(&self, pid: i32) -> Option<(Cause, Option<Duration>)> {
        let first = self.requests.get(&pid)?;
        let waited = first.iter().filter_map(|&at| self.rows[at].waited).max();
        let mut seen = HashSet::from([pid]);
        let mut next: VecDeque<usize> = first.iter().copied().collect();
        let mut held = None;
        while let Some(request) = next.pop_front() {
            if let Some(ddl) = self.first_ddl(request) {
                return Some((Cause::Waiting(ddl), waited));
            }
            for blocker in self.blockers(request) {
                let row = &self.rows[blocker];
                // Whoever waits in turn is passed over for what it waits for.
                if row.granted && !self.requests.contains_key(&row.backend.leader) {
                    held = held.or(Some(blocker));
                }
                if seen.insert(row.backend.leader) {
                    next.extend(self.requests.get(&row.backend.leader).into_iter().flatten());
                }
            }
        }
        held.map(|at| (Cause::Held(at), waited))
    }

    /// Of the DDL that waits before a request, the one that has waited longest.
    fn first_ddl(&self, request: usize) -> Option<usize> {
        let is_ddl = |row: &LockRow| !row.granted && row.is_relation && row.mode.is_ddl();
        self.blockers(request).filter(|&at| is_ddl(&self.rows[at])).max_by_key(|&at| self.rows[at].waited)
    }

    /// Locks and earlier requests that exclude a request.
    fn blockers(&self, request: usize) -> impl Iterator<Item = usize> {
        let asked = &self.rows[request];
        self.objects.get(&asked.object).into_iter().flatten().copied().filter(move |&at| {
            let row = &self.rows[at];
            row.backend.leader != asked.backend.leader
                && row.mode.conflicts_with(asked.mode)
                && (row.granted || is_before(row, asked))
        })
    }

    /// Who excludes a request by what it holds.
    fn holders(&self, request: usize) -> Vec<usize> {
        self.blockers(request).filter(|&at| self.rows[at].granted).collect()
    }

    fn party(&self, at: usize, all: &HashSet<i32>) -> Party {
        let row = &self.rows[at];
        let Backend { pid, leader, state, user, application, statement } = &row.backend;
        Party {
            pid: *leader,
            mode: row.mode,
            is_relation: row.is_relation,
            state: state.clone(),
            user: user.clone(),
            application: application.clone(),
            statement: shown(statement),
            is_ours: all.contains(pid) || all.contains(leader),
        }
    }
}

/// Whether one request stands before another in the queue of an object. Where the server does not tell, what DDL asks for
/// comes first: nothing else keeps a weak request waiting that no lock excludes.
fn is_before(one: &LockRow, other: &LockRow) -> bool {
    match (one.waited, other.waited) {
        (Some(one), Some(other)) => one > other,
        _ => one.mode.is_ddl() && !other.mode.is_ddl(),
    }
}

#[cfg(test)]
mod tests;
