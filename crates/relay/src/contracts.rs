//! Contracts that openers have shown, and how much of each is used.
//!
//! The count here is the bill: it goes to the usage journal as what was added since the last time.

use link::Code;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use trust::{AccountId, ClientId, ContractId};

/// Contracts that are known at once; the oldest of those that are over make room. More than this many live ones are
/// refused.
pub(crate) const MAX_CONTRACTS: usize = 1 << 18;

#[derive(Debug)]
pub(crate) struct Contract {
    pub id: ContractId,
    pub payer: AccountId,
    pub opener: ClientId,
    bytes: u64,
    expires_at_s: u64,
    used: Cell<u64>,
    journalled: Cell<u64>,
    sequence: Cell<u64>,
    /// The block that goes on for it.
    next: RefCell<Option<Rc<Self>>>,
    dirty: Cell<bool>,
}

/// So many bytes more were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Of which contract.
    pub contract: ContractId,
    /// The how-manieth record of this contract at this start of the relay, from 1.
    pub sequence: u64,
    /// Bytes in both directions since the last record.
    pub bytes: u64,
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct Contracts {
    known: RefCell<HashMap<ContractId, Rc<Contract>>>,
    dirty: RefCell<Vec<Rc<Contract>>>,
}

impl Contract {
    /// Uses `bytes` of it, or of what follows it. The contract that is counted on from now on is put in `at`.
    pub(crate) fn spend(
        at: &mut Rc<Self>,
        bytes: u64,
        contracts: &Contracts,
        now_ms: u64,
    ) -> Result<(), Code> {
        let mut rest = bytes;
        loop {
            let room = at.room(now_ms);
            let part = rest.min(room);
            if part > 0 {
                at.used.set(at.used.get() + part);
                if !at.dirty.replace(true) {
                    contracts.dirty.borrow_mut().push(Rc::clone(at));
                }
                rest -= part;
            }
            if rest == 0 {
                return Ok(());
            }
            let next = at.next.borrow().clone().ok_or(Code::ContractSpent)?;
            *at = next;
        }
    }

    /// It, or what follows it, still pays.
    pub(crate) fn pays(&self, now_ms: u64) -> bool {
        self.room(now_ms) > 0 || self.next.borrow().as_ref().is_some_and(|next| next.pays(now_ms))
    }

    fn room(&self, now_ms: u64) -> u64 {
        if now_ms / 1_000 >= self.expires_at_s { 0 } else { self.bytes - self.used.get().min(self.bytes) }
    }
}

impl Contracts {
    /// Takes in a contract that was verified. One that is known already stays as it is.
    pub(crate) fn show(
        &self,
        claims: &trust::ContractClaims,
        follows: Option<ContractId>,
        now_ms: u64,
    ) -> Result<(), Code> {
        let mut known = self.known.borrow_mut();
        if known.contains_key(&claims.contract) {
            return Ok(());
        }
        if known.len() >= MAX_CONTRACTS {
            // Streams hold what they use; what has expired is nobody's.
            known.retain(|_, contract| contract.expires_at_s > now_ms / 1_000 || contract.dirty.get());
            if known.len() >= MAX_CONTRACTS {
                return Err(Code::Busy);
            }
        }
        let contract = Rc::new(Contract {
            id: claims.contract,
            payer: claims.payer,
            opener: claims.opener,
            bytes: claims.bytes,
            expires_at_s: claims.expires_at_s,
            used: Cell::new(0),
            journalled: Cell::new(0),
            sequence: Cell::new(0),
            next: RefCell::new(None),
            dirty: Cell::new(false),
        });
        if let Some(before) = follows.and_then(|before| known.get(&before)) {
            // Only of the same payer and opener, and only once: chains have no forks and no circles.
            let fits = before.payer == contract.payer && before.opener == contract.opener;
            let mut next = before.next.borrow_mut();
            if !fits || next.is_some() {
                return Err(Code::ContractInvalid);
            }
            *next = Some(Rc::clone(&contract));
        }
        known.insert(contract.id, contract);
        Ok(())
    }

    /// A contract by its name, if `opener` may use it.
    pub(crate) fn find(&self, id: ContractId, opener: ClientId) -> Option<Rc<Contract>> {
        self.known.borrow().get(&id).filter(|contract| contract.opener == opener).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.known.borrow().len()
    }

    /// What was used since the last time, for the journal.
    pub(crate) fn take_usage(&self) -> Vec<Usage> {
        let dirty = std::mem::take(&mut *self.dirty.borrow_mut());
        let mut records = Vec::with_capacity(dirty.len());
        for contract in dirty {
            contract.dirty.set(false);
            let bytes = contract.used.get() - contract.journalled.get();
            contract.journalled.set(contract.used.get());
            contract.sequence.set(contract.sequence.get() + 1);
            records.push(Usage { contract: contract.id, sequence: contract.sequence.get(), bytes });
        }
        records
    }

    /// Forgets what is over: expired, or used up with nothing behind it and no stream on it.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.known.borrow_mut().retain(|_, contract| {
            contract.dirty.get() || Rc::strong_count(contract) > 1 || contract.expires_at_s > now_ms / 1_000
        });
    }
}

#[cfg(test)]
mod tests;
