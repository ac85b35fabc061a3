//! Shared caps: `max_db_connections` and `max_user_connections` bound several pools together, and those take turns.

use super::Engine;
use crate::close_cause::CloseCause;
use crate::connection::PoolId;
use crate::pool::{AddressIndex, CapIndex};
use crate::seam::Transport;
use overload::fair::Rotation;
use std::collections::{BTreeSet, HashMap};
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::Duration;

/// With shares that cannot be equal (four, three and three of ten), the extra place moves on after this.
const EXTRA_PLACE_TURN: Duration = Duration::from_secs(1);

/// What a cap is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CapScope {
    Database(Arc<str>),
    User(Arc<str>),
    /// The budget of the server at this address; how much is left of it, its lease says.
    Server(AddressIndex),
}

/// One shared cap.
#[derive(Debug)]
pub(super) struct Cap {
    scope: CapScope,
    /// Zero: no limit.
    limit: usize,
    /// Servers that count: logging in, in use, idle, and closed but not gone.
    used: usize,
    rotation: Rotation,
    members: BTreeSet<PoolId>,
}

/// All caps, by index; those of a scope without pools are forgotten.
#[derive(Debug, Default)]
pub(super) struct Caps {
    list: Vec<Cap>,
    index: HashMap<CapScope, CapIndex>,
    free: Vec<CapIndex>,
}

impl Caps {
    /// Those that have pools.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    fn add(&mut self, scope: CapScope, limit: usize) -> CapIndex {
        let cap =
            Cap { scope: scope.clone(), limit, used: 0, rotation: Rotation::new(), members: BTreeSet::new() };
        let index = match self.free.pop() {
            Some(index) => {
                self.list[index] = cap;
                index
            }
            None => {
                self.list.push(cap);
                self.list.len() - 1
            }
        };
        self.index.insert(scope, index);
        index
    }
}

impl Index<CapIndex> for Caps {
    type Output = Cap;

    fn index(&self, index: CapIndex) -> &Cap {
        &self.list[index]
    }
}

impl IndexMut<CapIndex> for Caps {
    fn index_mut(&mut self, index: CapIndex) -> &mut Cap {
        &mut self.list[index]
    }
}

impl Cap {
    fn room(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit.saturating_sub(self.used) }
    }
}

impl Engine {
    /// Enters a new pool under its caps.
    pub(super) fn join_caps(&mut self, id: PoolId) {
        let pool = self.pool(id);
        let scopes = [
            (CapScope::Database(pool.database.clone()), pool.settings.max_db_connections),
            (CapScope::User(pool.user.clone()), pool.settings.max_user_connections),
            (CapScope::Server(pool.address), usize::from(self.has_budget(pool.address))),
        ];
        self.leave_moved_cap(id);
        for (place, (scope, limit)) in scopes.into_iter().enumerate() {
            let index = match self.caps.index.get(&scope) {
                Some(&index) => index,
                // Without a limit nothing has to be counted, until a reload brings one.
                None if limit == 0 => continue,
                None => self.caps.add(scope, limit),
            };
            self.caps[index].limit = limit;
            if self.pool(id).caps[place] == Some(index) {
                continue;
            }
            let total = self.pool(id).total();
            let cap = &mut self.caps[index];
            cap.rotation.register(id.0);
            cap.members.insert(id);
            cap.used += total;
            self.pool_mut(id).caps[place] = Some(index);
        }
    }

    /// Takes a pool that is forgotten out of its caps.
    pub(super) fn leave_all_caps(&mut self, id: PoolId) {
        for index in std::mem::take(&mut self.pool_mut(id).caps).into_iter().flatten() {
            self.leave_cap(id, index);
        }
    }

    fn leave_cap(&mut self, id: PoolId, index: CapIndex) {
        let cap = &mut self.caps[index];
        cap.rotation.forget(id.0);
        cap.members.remove(&id);
        // Databases that clients have made up come and go.
        if cap.members.is_empty() {
            let scope = cap.scope.clone();
            self.caps.index.remove(&scope);
            self.caps.free.push(index);
        }
    }

    /// Places left for this pool under its caps.
    pub(super) fn cap_room(&self, id: PoolId) -> usize {
        self.pool(id).caps.iter().flatten().map(|&cap| self.places_of(cap)).min().unwrap_or(usize::MAX)
    }

    /// Places left under one cap.
    fn places_of(&self, index: CapIndex) -> usize {
        match self.caps[index].scope {
            CapScope::Server(address) => self.budget_places(address),
            CapScope::Database(_) | CapScope::User(_) => self.caps[index].room(),
        }
    }

    /// Nothing is left under it, and nothing is to come but by somebody else's leaving.
    fn is_exhausted(&self, index: CapIndex) -> bool {
        match self.caps[index].scope {
            CapScope::Server(address) => self.is_budget_exhausted(address),
            CapScope::Database(_) | CapScope::User(_) => self.caps[index].room() == 0,
        }
    }

    /// The pools of the server at this address, if it has a budget.
    pub(super) fn pools_of_server(&self, address: AddressIndex) -> impl Iterator<Item = PoolId> + '_ {
        let cap = self.caps.index.get(&CapScope::Server(address)).map(|&cap| &self.caps[cap]);
        cap.into_iter().flat_map(|cap| cap.members.iter().copied())
    }

    /// A reload has moved the pool to another server.
    fn leave_moved_cap(&mut self, id: PoolId) {
        let pool = self.pool(id);
        if let Some(cap) = pool.caps[2]
            && self.caps[cap].scope != CapScope::Server(pool.address)
        {
            self.pool_mut(id).caps[2] = None;
            self.leave_cap(id, cap);
        }
    }

    /// One more server counts.
    pub(super) fn enter_caps(&mut self, id: PoolId) {
        let now = self.now;
        for cap in self.pool(id).caps.into_iter().flatten() {
            self.caps[cap].used += 1;
            self.caps[cap].rotation.served(id.0);
            self.pool_mut(id).turn_at = now;
        }
    }

    /// One server less counts.
    pub(super) fn leave_caps(&mut self, id: PoolId) {
        for cap in self.pool(id).caps.into_iter().flatten() {
            self.caps[cap].used = self.caps[cap].used.saturating_sub(1);
        }
    }

    /// Tells the caps whether the pool has waiters that a server would help.
    pub(super) fn update_need(&mut self, id: PoolId) {
        let pool = self.pool(id);
        if pool.caps == [None; 3] {
            return;
        }
        let needs = pool.is_needy();
        for cap in pool.caps.into_iter().flatten() {
            self.caps[cap].rotation.set_need(id.0, needs);
        }
    }

    /// True if a free server of this pool should go so that another pool under the same exhausted cap gets its share.
    ///
    /// Every needy pool is looked at, not only the one whose turn it is: that one may have its share already. The look
    /// ends at the first that is worse off, so at most as many are passed as the cap has places.
    pub(super) fn should_yield(&self, id: PoolId) -> bool {
        let pool = self.pool(id);
        let mine = pool.live() + pool.logins;
        let patient = pool.line.is_empty() || self.now.since(pool.turn_at) >= EXTRA_PLACE_TURN;
        // How many more than the other a pool may keep.
        let lead = usize::from(!patient);
        if mine <= lead {
            return false;
        }
        pool.caps.iter().flatten().any(|&cap| {
            if !self.is_exhausted(cap) {
                return false;
            }
            let cap = &self.caps[cap];
            let mut needy =
                cap.rotation.needy().filter(|&other| other != id.0).map(|other| self.pool(PoolId(other)));
            let Some(other) = needy.find(|other| other.is_needy() && mine > other.total() + lead) else {
                return false;
            };
            // Places that others are giving up already are on their way to those who need them.
            let coming: usize = cap.members.iter().map(|&member| self.pool(member).closing).sum();
            mine > other.total() + coming + lead
        })
    }

    /// The caps are exhausted: another pool's idle server makes room.
    pub(super) fn make_room(&mut self, transport: &mut impl Transport, id: PoolId) {
        for cap in self.pool(id).caps.into_iter().flatten() {
            if !self.is_exhausted(cap) {
                continue;
            }
            let is_budget = matches!(self.caps[cap].scope, CapScope::Server(_));
            if is_budget && self.is_room_coming(cap, id) {
                continue;
            }
            // Under a budget a minimum is guaranteed, but to one who has nothing it gives way.
            let takes_minima = !is_budget || self.pool(id).live() + self.pool(id).logins == 0;
            let victim = self.caps[cap]
                .members
                .iter()
                .filter(|&&member| member != id)
                .map(|&member| self.pool(member))
                .filter(|pool| pool.line.is_empty())
                .filter_map(|pool| {
                    let spare = pool.live() > pool.minimum();
                    pool.idle.front().map(|&server| (spare, pool.total(), server))
                })
                .filter(|(spare, ..)| *spare || takes_minima)
                // A minimum that rests comes last, but it does not keep those out who wait.
                .max_by_key(|(spare, total, _)| (*spare, *total));
            if let Some((_, _, server)) = victim {
                self.close_server(transport, server, CloseCause::Evicted);
            }
        }
    }

    /// Servers that are on their way out will do for this pool.
    fn is_room_coming(&self, cap: CapIndex, id: PoolId) -> bool {
        let coming: usize = self.caps[cap].members.iter().map(|&member| self.pool(member).closing).sum();
        coming >= self.pool(id).wanted()
    }

    /// A place has become free in this pool: the needy pool with the fewest servers under its caps may open one; of
    /// several, the one whose turn is longest ago.
    pub(super) fn fill_freed_place(&mut self, transport: &mut impl Transport, id: PoolId) {
        for cap in self.pool(id).caps.into_iter().flatten() {
            let mut needy: Vec<u32> = self.caps[cap].rotation.needy().take(super::MAX_POOLS).collect();
            let is_budget = matches!(self.caps[cap].scope, CapScope::Server(_));
            needy.sort_by_key(|&other| {
                let pool = self.pool(PoolId(other));
                (!is_budget || pool.total() >= pool.minimum(), pool.total())
            });
            for other in needy {
                if self.places_of(cap) == 0 {
                    break;
                }
                self.refill(transport, PoolId(other));
            }
        }
        self.refill(transport, id);
        // Only now, since it leaves its caps with that.
        self.settle_pool(id);
    }

    /// The same without a driver at hand: they are looked at in this turn still.
    pub(super) fn fill_freed_place_soon(&mut self, id: PoolId) {
        for cap in self.pool(id).caps.into_iter().flatten() {
            let needy: Vec<u32> = self.caps[cap].rotation.needy().take(super::MAX_POOLS).collect();
            for other in needy {
                self.arm_pool_at(PoolId(other), self.now);
            }
        }
        self.arm_pool_at(id, self.now);
        self.settle_pool(id);
    }
}
