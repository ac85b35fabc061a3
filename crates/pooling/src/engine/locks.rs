//! Pile-ups behind locks: when a look at a server's locks is worth it, and what a pool does about what is seen.
//!
//! Nobody looks while no queue stands, nor while the servers of its pool are all busy with short queries.

use super::Engine;
use crate::connection::PoolId;
use crate::pool::AddressIndex;
use crate::seam::{ActOutcome, Acted, LocksSeen, LookAtLocks, LookId, Target, Transport};
use crate::server::ServerState;
use crate::snapshot::LockRow;
use locks::{Ours, Party, PileUp, Policy};
use overload::Moment;
use settings::pooler::LockPileup;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::{error, info, warn};

/// A client has waited so long for a server, and servers have worked so long at one query: then it is worth a look.
const LOOK_AFTER: Duration = Duration::from_millis(100);
/// Looks at one server are at least so far apart.
const LEAST_INTERVAL: Duration = Duration::from_millis(250);
/// And as many times as far as the answer took.
const INTERVAL_FACTOR: u32 = 10;
/// After a look that failed.
const FAILED_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time for a look, its login included.
const LOOK_LIMIT: Duration = Duration::from_secs(3);
/// What was seen is believed so long beyond the time of the next look.
const BELIEVED_BEYOND: Duration = Duration::from_secs(1);
/// A pool's pile-up is said again after this, if its cause has changed or it lasts.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The looks at all servers, by their address. Bounded by the addresses.
#[derive(Debug, Default)]
pub(super) struct LockWatches {
    watches: HashMap<AddressIndex, Watch>,
    looks: u64,
}

#[derive(Debug)]
struct Watch {
    target: Arc<Target>,
    under_way: Option<LookId>,
    next_at: Moment,
    /// What was seen is not believed after this.
    believed_until: Moment,
    piles: Vec<Seen>,
}

#[derive(Debug)]
struct Seen {
    pile: PileUp<PoolId>,
    since: Moment,
    said_at: Moment,
}

impl Engine {
    /// When a look at the locks of a pool's server is due; none while nobody waits, or while one is under way.
    pub(super) fn next_look(&self, id: PoolId) -> Option<Moment> {
        self.lock_policy()?;
        let pool = self.pool(id);
        let due = pool.line.next_deadline(LOOK_AFTER)?;
        match self.lock_watches.watches.get(&pool.address) {
            Some(Watch { under_way: Some(_), .. }) => None,
            Some(watch) => Some(due.max(watch.next_at)),
            None => Some(due),
        }
    }

    /// The same for the pool's timer; none if that is due before in any case, which costs the least where many wait.
    pub(super) fn look_to_arm(&self, id: PoolId) -> Option<Moment> {
        let pool = self.pool(id);
        let due = pool.line.next_deadline(LOOK_AFTER)?;
        if due >= pool.armed_at { None } else { self.next_look(id) }
    }

    fn lock_policy(&self) -> Option<Policy> {
        match self.config.general.lock_pileup {
            LockPileup::CancelBlocker => Some(Policy::CancelBlocker),
            LockPileup::CancelWaitingDdl => Some(Policy::CancelWaitingDdl),
            LockPileup::Off => None,
            LockPileup::Warn => Some(Policy::Warn),
        }
    }

    /// Looks, if it is time and some pool's servers do not get on.
    pub(super) fn look_at_locks_if_due(&mut self, transport: &mut impl Transport, id: PoolId) {
        let now = self.now;
        if self.next_look(id).is_none_or(|at| at > now) {
            return;
        }
        let Some(policy) = self.lock_policy() else { return };
        let address = self.pool(id).address;
        let (pools, is_worth_it) = self.busy_pools(address);
        let target = self.pool(id).target.clone();
        let watch = self.lock_watches.watches.entry(address).or_insert_with(|| Watch {
            target: target.clone(),
            under_way: None,
            next_at: now,
            believed_until: now,
            piles: Vec::new(),
        });
        watch.next_at = now + LEAST_INTERVAL;
        if !is_worth_it {
            return self.set_piles(transport, address, Vec::new());
        }
        // Another pool's way in costs a login; the same one is kept while looks follow one another.
        if now >= watch.believed_until {
            watch.target = target;
        }
        let look = LookId { address, number: self.lock_watches.looks };
        self.lock_watches.looks += 1;
        watch.under_way = Some(look);
        let request = LookAtLocks {
            look,
            target: watch.target.clone(),
            pools,
            policy,
            grace: self.config.general.lock_pileup_grace,
            limit: LOOK_LIMIT,
        };
        transport.look_at_locks(request);
    }

    /// The pools at an address that have servers at work, and whether some pool with a queue has enough of them that have
    /// been so for long.
    fn busy_pools(&self, address: AddressIndex) -> (Vec<Ours<PoolId>>, bool) {
        let mut busy: HashMap<PoolId, (Vec<i32>, usize)> = HashMap::new();
        for (_, server) in self.servers.iter() {
            if matches!(server.state, ServerState::Active(_)) && self.pool(server.pool).address == address {
                let (pids, slow) = busy.entry(server.pool).or_default();
                pids.push(server.process_id);
                let is_slow = !server.replies.is_empty() && self.now.since(server.query_at) >= LOOK_AFTER;
                *slow += usize::from(is_slow);
            }
        }
        let is_worth_it = busy.iter().any(|(id, (_, slow))| {
            let pool = self.pool(*id);
            !pool.line.is_empty() && locks::is_pile(*slow, pool.live())
        });
        let mut pools: Vec<Ours<PoolId>> = busy
            .into_iter()
            .map(|(pool, (pids, _))| Ours { pool, live: self.pool(pool).live(), pids })
            .collect();
        pools.sort_by_key(|ours| ours.pool);
        (pools, is_worth_it)
    }

    /// A look has ended.
    pub fn on_locks_seen(&mut self, transport: &mut impl Transport, seen: LocksSeen) {
        let now = self.now;
        let LocksSeen { look, piles, acted, took } = seen;
        let address = look.address;
        let Some(watch) = self.lock_watches.watches.get_mut(&address) else { return };
        if watch.under_way != Some(look) {
            return;
        }
        watch.under_way = None;
        let interval = match piles {
            Some(_) => LEAST_INTERVAL.max(took * INTERVAL_FACTOR),
            None => FAILED_INTERVAL,
        };
        watch.next_at = now + interval;
        watch.believed_until = watch.next_at + BELIEVED_BEYOND;
        // What can be seen no more holds nobody up.
        self.set_piles(transport, address, piles.unwrap_or_default());
        for acted in &acted {
            self.note_action(address, acted);
        }
        let here: Vec<PoolId> =
            self.pool_index.values().copied().filter(|id| self.pool(*id).address == address).collect();
        for id in here {
            if !self.pool(id).line.is_empty() {
                self.arm_pool(id);
            }
        }
    }

    /// These pools of an address pile up, and no others.
    fn set_piles(
        &mut self,
        transport: &mut impl Transport,
        address: AddressIndex,
        piles: Vec<PileUp<PoolId>>,
    ) {
        let now = self.now;
        let Some(watch) = self.lock_watches.watches.get_mut(&address) else { return };
        let mut before = std::mem::take(&mut watch.piles);
        let mut after = Vec::with_capacity(piles.len());
        for pile in piles {
            let at = before.iter().position(|seen| seen.pile.pool == pile.pool);
            let known = at.map(|at| before.swap_remove(at));
            // A pool of that number may be another one meanwhile.
            let pool = &mut self.pools[pile.pool.0 as usize];
            if pool.is_free || pool.address != address {
                continue;
            }
            let is_new =
                known.as_ref().is_none_or(|known| known.pile.waiter.is_none() && pile.waiter.is_some());
            let since = known.as_ref().map_or(now, |known| known.since);
            let mut said_at = known.as_ref().map_or(now, |known| known.said_at);
            pool.counters.lock_pileups += u64::from(is_new);
            pool.is_piled_up = is_ddl(&pile);
            if is_new || now.since(said_at) >= SAY_AGAIN_AFTER {
                said_at = now;
                say(pool, &pile);
            }
            after.push(Seen { pile, since, said_at });
        }
        watch.piles = after;
        for over in before {
            let id = over.pile.pool;
            let pool = &mut self.pools[id.0 as usize];
            if pool.is_free || pool.address != address {
                continue;
            }
            pool.is_piled_up = false;
            info!(
                database = %pool.database, user = %pool.user, lasted_ms = now.since(over.since).as_millis(),
                "lock pile-up: over"
            );
            self.refill(transport, id);
        }
    }

    /// Nobody has looked for long: what was seen then counts no more.
    pub(super) fn forget_old_pile(&mut self, id: PoolId) {
        if !self.pool(id).is_piled_up {
            return;
        }
        let until = self.lock_watches.watches.get(&self.pool(id).address).map(|watch| watch.believed_until);
        match until {
            Some(until) if until > self.now => self.arm_pool_at(id, until),
            _ => self.pool_mut(id).is_piled_up = false,
        }
    }

    fn note_action(&mut self, address: AddressIndex, acted: &Acted) {
        let Some(watch) = self.lock_watches.watches.get(&address) else { return };
        let party = &acted.action.party;
        let is_named = |pile: &PileUp<PoolId>| {
            pile.waiter.iter().chain(&pile.blockers).any(|other| other.pid == party.pid)
        };
        let Some(seen) = watch.piles.iter().find(|seen| is_named(&seen.pile)) else { return };
        let pool = &mut self.pools[seen.pile.pool.0 as usize];
        let label = acted.outcome.label();
        match pool.counters.lock_actions.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += 1,
            None => pool.counters.lock_actions.push((label, 1)),
        }
        let (action, role) = (acted.action.verb.label(), &watch.target.user);
        let database = &pool.database;
        match acted.outcome {
            ActOutcome::Done => warn!(
                %database, action, process_id = party.pid, user = party.user,
                application_name = party.application, statement = party.statement, "lock pile-up: told to stop"
            ),
            ActOutcome::NotPermitted => error!(
                %database, action, process_id = party.pid, user = party.user, role,
                "lock pile-up: not permitted; GRANT pg_signal_backend, or the other's role, to the role that looks"
            ),
            ActOutcome::Gone | ActOutcome::Failed => {
                info!(%database, action, process_id = party.pid, outcome = label, "lock pile-up: nothing done");
            }
        }
    }

    pub(super) fn servers_behind_lock(&self, id: PoolId) -> usize {
        self.believed_piles(self.pool(id).address)
            .find(|seen| seen.pile.pool == id)
            .map_or(0, |seen| seen.pile.behind)
    }

    fn believed_piles(&self, address: AddressIndex) -> impl Iterator<Item = &Seen> {
        let watch = self.lock_watches.watches.get(&address).filter(|watch| watch.believed_until > self.now);
        watch.into_iter().flat_map(|watch| &watch.piles)
    }

    /// Pools whose servers pile up behind a lock.
    #[must_use]
    pub fn lock_rows(&self) -> Vec<LockRow> {
        let mut rows: Vec<LockRow> = self
            .lock_watches
            .watches
            .keys()
            .flat_map(|&address| self.believed_piles(address).map(move |seen| (address, seen)))
            .filter(|(address, seen)| {
                let pool = self.pool(seen.pile.pool);
                !pool.is_free && pool.address == *address
            })
            .map(|(_, seen)| {
                let pool = self.pool(seen.pile.pool);
                LockRow {
                    database: pool.database.clone(),
                    user: pool.user.clone(),
                    pile: seen.pile.clone(),
                    seen: self.now.since(seen.since),
                    waiting: pool.line.len(),
                }
            })
            .collect();
        rows.sort_by(|a, b| (&a.database, &a.user).cmp(&(&b.database, &b.user)));
        rows
    }
}

/// Behind DDL another server would only stand there too; a row's lock concerns those who want that row.
fn is_ddl(pile: &PileUp<PoolId>) -> bool {
    pile.waiter.is_some() || pile.blockers.iter().any(|blocker| blocker.is_relation && blocker.mode.is_ddl())
}

fn say(pool: &crate::pool::Pool, pile: &PileUp<PoolId>) {
    let parties = |parties: &[Party]| {
        let named = parties.iter().map(|party| {
            let (pid, state, statement) = (party.pid, &party.state, &party.statement);
            format!("{pid} ({state}, {}): {statement}", party.application)
        });
        named.collect::<Vec<_>>().join("; ")
    };
    warn!(
        database = %pool.database, user = %pool.user, behind = pile.behind, servers = pile.live,
        clients_waiting = pool.line.len(), relation = pile.relation.as_deref().unwrap_or_default(),
        waiting_ddl = parties(pile.waiter.as_slice()), blockers = parties(&pile.blockers),
        "lock pile-up: servers wait behind a lock"
    );
}
