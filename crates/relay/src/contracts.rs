//! Contracts that openers have shown, and how much of each is used.
//!
//! The count here is the bill: it goes to the usage journal as what was added since the last time.

use clock::Clock;
use ledger::Allowances;
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
    /// Of the block.
    used: Cell<u64>,
    /// What was carried on the allowance, and what is left of that; `None` before there is one.
    beyond: Cell<u64>,
    allowance: Cell<Option<u64>>,
    /// The api gave it without its database: nothing is allowed on top of it.
    offline: bool,
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
#[derive(Debug)]
pub(crate) struct Contracts {
    known: RefCell<HashMap<ContractId, Rc<Contract>>>,
    dirty: RefCell<Vec<Rc<Contract>>>,
    /// What may be carried while the database gives no answer.
    allowances: RefCell<Allowances<AccountId>>,
    /// The time that [`Self::allowances`] goes by, ms.
    clock: Clock,
    /// Allowances that were begun, and what was carried on them.
    pub allowed: Cell<u64>,
    pub allowed_bytes: Cell<u64>,
}

impl Contract {
    /// Uses `bytes` of it, or of what follows it. The contract that is counted on from now on is put in `at`. What cannot be
    /// paid whole is not counted: it is not carried either.
    pub(crate) fn spend(
        at: &mut Rc<Self>,
        bytes: u64,
        contracts: &Contracts,
        now_ms: u64,
    ) -> Result<(), Code> {
        if at.room(now_ms) < bytes {
            return Self::spend_across(at, bytes, contracts, now_ms);
        }
        at.add(bytes, at.goes_beyond(), contracts);
        Ok(())
    }

    /// [`Self::spend`] where one block does not hold them all.
    fn spend_across(at: &mut Rc<Self>, bytes: u64, contracts: &Contracts, now_ms: u64) -> Result<(), Code> {
        let mut parts = Vec::new();
        let (mut rest, mut here) = (bytes, Rc::clone(at));
        loop {
            let part = rest.min(here.room(now_ms));
            rest -= part;
            parts.push((Rc::clone(&here), part, here.goes_beyond()));
            if rest == 0 {
                break;
            }
            if let Some(next) = here.payer_after(now_ms) {
                here = next;
            } else {
                here = here.last();
                // Once for a contract; then it has room, and there is another round.
                if !contracts.allow(&here) {
                    return Err(Code::ContractSpent);
                }
            }
        }
        for (contract, part, goes_beyond) in parts {
            contract.add(part, goes_beyond, contracts);
        }
        *at = here;
        Ok(())
    }

    fn add(self: &Rc<Self>, bytes: u64, goes_beyond: bool, contracts: &Contracts) {
        if goes_beyond {
            self.beyond.set(self.beyond.get() + bytes);
            self.allowance.set(self.allowance.get().map(|left| left.saturating_sub(bytes)));
            contracts.allowed_bytes.set(contracts.allowed_bytes.get() + bytes);
        } else {
            self.used.set(self.used.get() + bytes);
        }
        if bytes > 0 && !self.dirty.replace(true) {
            contracts.dirty.borrow_mut().push(Rc::clone(self));
        }
    }

    /// The last of those that follow, or itself.
    pub(crate) fn last(self: &Rc<Self>) -> Rc<Self> {
        let mut last = Rc::clone(self);
        loop {
            let Some(next) = last.next.borrow().clone() else { return last };
            last = next;
        }
    }

    pub(crate) const fn has_expired(&self, now_ms: u64) -> bool {
        now_ms / 1_000 >= self.expires_at_s
    }

    /// It, or what follows it, still pays.
    pub(crate) fn pays(&self, now_ms: u64) -> bool {
        self.room(now_ms) > 0 || self.payer_after(now_ms).is_some()
    }

    /// The first that still pays of those that follow. A chain grows with the bytes of its stream, so what is used up in
    /// between is left out from then on.
    fn payer_after(&self, now_ms: u64) -> Option<Rc<Self>> {
        let mut next = self.next.borrow().clone()?;
        while next.room(now_ms) == 0 {
            let Some(further) = next.next.borrow().clone() else {
                self.next.replace(Some(next));
                return None;
            };
            next = further;
        }
        self.next.replace(Some(Rc::clone(&next)));
        Some(next)
    }

    /// It has this much left itself.
    pub(crate) fn affords(&self, bytes: u64, now_ms: u64) -> bool {
        self.room(now_ms) >= bytes
    }

    fn room(&self, now_ms: u64) -> u64 {
        match self.allowance.get() {
            Some(left) => left,
            None if self.has_expired(now_ms) => 0,
            None => self.bytes - self.used.get().min(self.bytes),
        }
    }

    /// It is paid from its allowance: what is left of a block that has expired is not used besides.
    fn goes_beyond(&self) -> bool {
        self.allowance.get().is_some()
    }

    fn all_used(&self) -> u64 {
        self.used.get() + self.beyond.get()
    }
}

impl Drop for Contract {
    /// One after the other: a chain may be longer than the stack is deep.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(contract) = next.and_then(Rc::into_inner) {
            next = contract.next.take();
        }
    }
}

impl Contracts {
    /// The database counts as gone when it has owed an answer for so many ms.
    pub(crate) fn new(clock: Clock, offline_after_ms: u64) -> Self {
        let allowances = Allowances::new(offline_after_ms);
        Self {
            known: RefCell::default(),
            dirty: RefCell::default(),
            allowances: RefCell::new(allowances),
            clock,
            allowed: Cell::new(0),
            allowed_bytes: Cell::new(0),
        }
    }

    /// The database is asked to take a record.
    pub(crate) fn database_asked(&self) {
        self.allowances.borrow_mut().asked(ms(self.clock));
    }

    /// It has taken one.
    pub(crate) fn database_answered(&self) {
        self.allowances.borrow_mut().answered(ms(self.clock));
    }

    /// The database has owed an answer for so long that this is an outage.
    pub(crate) fn is_offline(&self) -> bool {
        self.allowances.borrow().is_silent(ms(self.clock))
    }

    /// Whether contracts may go on beyond their blocks now.
    pub(crate) fn allows(&self) -> bool {
        self.allowances.borrow().is_open(ms(self.clock))
    }

    /// Lets a contract, which has nothing left and nothing behind it, go on for its allowance; `false`: it may not, or had it already.
    pub(crate) fn allow(&self, contract: &Contract) -> bool {
        if contract.offline || contract.allowance.get().is_some() {
            return false;
        }
        let begun = self.allowances.borrow_mut().begin(contract.payer, contract.bytes, ms(self.clock));
        if let Some(bytes) = begun {
            contract.allowance.set(Some(bytes));
            self.allowed.set(self.allowed.get() + 1);
            tracing::info!(contract = %contract.id, payer = %contract.payer, bytes,
                "a contract goes on beyond its block: the database gives no answer");
        }
        begun.is_some()
    }

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
            beyond: Cell::new(0),
            allowance: Cell::new(None),
            offline: claims.offline,
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
            // What is held pays from now on.
            before.allowance.set(before.allowance.get().map(|_| 0));
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
            let used = contract.all_used();
            let bytes = used - contract.journalled.get();
            contract.journalled.set(used);
            contract.sequence.set(contract.sequence.get() + 1);
            records.push(Usage { contract: contract.id, sequence: contract.sequence.get(), bytes });
        }
        records
    }

    /// Forgets what is over: expired, or used up with nothing behind it and no stream on it.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.allowances.borrow_mut().sweep(ms(self.clock));
        self.known.borrow_mut().retain(|_, contract| {
            contract.dirty.get() || Rc::strong_count(contract) > 1 || contract.expires_at_s > now_ms / 1_000
        });
    }
}

fn ms(clock: Clock) -> u64 {
    clock.now().as_micros() / 1_000
}

#[cfg(test)]
mod tests;
