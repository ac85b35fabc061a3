//! The addresses that servers are opened at. Pools of one address share the pace of its logins; an address that no pool
//! and no login has any more is forgotten.

use super::Engine;
use super::budget::Guard;
use crate::connection::PoolId;
use crate::pool::AddressIndex;
use crate::seam::Transport;
use overload::pacing::{LoginLimits, LoginPacer};
use settings::pooler::{PoolerConfig, ServerAddress};
use std::collections::HashMap;

/// All of them, by index.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    list: Vec<Address>,
    index: HashMap<ServerAddress, AddressIndex>,
    free: Vec<AddressIndex>,
    /// Forgotten, and their control connections still there.
    pub(super) left: Vec<ServerAddress>,
}

/// A server address and the pace at which logins to it may start.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) address: ServerAddress,
    pacer: LoginPacer,
    /// Pools that wait for the end of a login; each at most once.
    hungry: Vec<PoolId>,
    /// Pools, logins and servers that go there.
    holders: usize,
    /// Its part of the server's budget, if there is one.
    pub(super) guard: Option<Box<Guard>>,
}

impl Addresses {
    pub(super) fn get(&self, index: AddressIndex) -> Option<&Address> {
        self.list.get(index)
    }

    pub(super) fn get_mut(&mut self, index: AddressIndex) -> Option<&mut Address> {
        self.list.get_mut(index)
    }

    pub(super) fn find(&self, address: &ServerAddress) -> Option<AddressIndex> {
        self.index.get(address).copied()
    }

    /// Those in use, by index.
    pub(super) fn indices(&self) -> impl Iterator<Item = AddressIndex> + '_ {
        self.index.values().copied()
    }

    /// Those that are in use.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }
}

impl Engine {
    /// The index of an address, for one more pool.
    pub(super) fn hold_address(&mut self, address: &ServerAddress) -> AddressIndex {
        let addresses = &mut self.addresses;
        if let Some(&index) = addresses.index.get(address) {
            addresses.list[index].holders += 1;
            return index;
        }
        let pacer = LoginPacer::new(login_limits(&self.config));
        let guard = self.budget_terms.map(|terms| Box::new(Guard::new(terms, self.now)));
        let addresses = &mut self.addresses;
        let new = Address { address: address.clone(), pacer, hungry: Vec::new(), holders: 1, guard };
        let index = match addresses.free.pop() {
            Some(index) => {
                addresses.list[index] = new;
                index
            }
            None => {
                addresses.list.push(new);
                addresses.list.len() - 1
            }
        };
        addresses.index.insert(address.clone(), index);
        index
    }

    /// One more login goes to an address that is held already.
    pub(super) fn hold_again(&mut self, index: AddressIndex) {
        self.addresses.list[index].holders += 1;
    }

    /// A pool or a login does not go there any more.
    pub(super) fn release_address(&mut self, index: AddressIndex) {
        let address = &mut self.addresses.list[index];
        address.holders -= 1;
        if address.holders > 0 {
            return;
        }
        if address.guard.take().is_some() {
            let left = address.address.clone();
            self.addresses.left.push(left);
            self.arm_budget_leave();
        }
        let address = &self.addresses.list[index];
        self.addresses.index.remove(&address.address);
        self.addresses.free.push(index);
        // Nobody ends a login there any more.
        self.feed_hungry_soon(index);
    }

    pub(super) fn pacer(&mut self, index: AddressIndex) -> &mut LoginPacer {
        &mut self.addresses.list[index].pacer
    }

    /// Why logins to an address rest, if they do.
    pub(super) fn pacer_cause(&self, index: AddressIndex) -> Option<overload::Cause> {
        self.addresses.list[index].pacer.cause()
    }

    /// New limits for the pace of every address.
    pub(super) fn set_login_limits(&mut self) {
        let limits = login_limits(&self.config);
        let now = self.now;
        for address in &mut self.addresses.list {
            address.pacer.set_limits(now, limits);
        }
    }

    /// Room at the pool's address comes only with the end of a login, perhaps of another pool.
    pub(super) fn note_hungry(&mut self, id: PoolId) {
        let pool = &mut self.pools[id.0 as usize];
        if !std::mem::replace(&mut pool.hungry, true) {
            self.addresses.list[pool.address].hungry.push(id);
        }
    }

    /// Pools that wait for the end of a login of the same address.
    pub(super) fn feed_hungry(&mut self, transport: &mut impl Transport, index: AddressIndex) {
        for pool in std::mem::take(&mut self.addresses.list[index].hungry) {
            self.pool_mut(pool).hungry = false;
            self.refill(transport, pool);
        }
    }

    /// The same without a driver at hand: they are looked at in this turn still.
    pub(super) fn feed_hungry_soon(&mut self, index: AddressIndex) {
        for pool in std::mem::take(&mut self.addresses.list[index].hungry) {
            self.pool_mut(pool).hungry = false;
            self.arm_pool_at(pool, self.now);
        }
    }
}

fn login_limits(config: &PoolerConfig) -> LoginLimits {
    LoginLimits {
        concurrency: u32::try_from(config.general.server_login_concurrency).unwrap_or(u32::MAX),
        rate_per_second: config.general.server_login_rate,
    }
}
