//! Blocks of bytes: asked for beside the streams, waited for only if there is nothing left.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use trust::ContractId;
use trust::api::ContractRequest;

use super::Opener;
use crate::accounts::Account;
use crate::control::{Control, ControlError};
use crate::exits::Exits;
use crate::purse::{Block, Outcome, Take};
use crate::refusal::{Reason, Refusal};
use clock::unix_ms;

/// The longest that an open waits for an account's first block, or for the next after the last byte.
const BLOCK_WAIT: Duration = Duration::from_secs(5);

/// The longest that one question takes.
const QUESTION_WAIT: Duration = Duration::from_secs(5);

/// An account without streams keeps its block for so long.
pub(crate) const KEPT_UNUSED: Duration = Duration::from_secs(60);

impl<E: Exits, C: Control> Opener<E, C> {
    /// What pays for the account's next stream.
    pub(super) async fn block(self: &Arc<Self>, account: &Arc<Account>) -> Result<Arc<Block>, Refusal> {
        let until = Instant::now() + BLOCK_WAIT;
        loop {
            let mut answered = pin!(account.answered.notified());
            answered.as_mut().enable();
            let take = account.purse().take(self.clock.now(), unix_ms());
            self.top_up(account);
            match take {
                Take::Block(block) => return Ok(block),
                Take::Refused(refusal) => return Err(refusal),
                Take::Wait => {}
            }
            if timeout_at(until, answered).await.is_err() {
                let cause = "the network's api gives no answer, and this account has no bytes left here";
                return Err(Refusal::new(Reason::Unavailable, cause).after(BLOCK_WAIT));
            }
        }
    }

    /// Asks for the account's next block if it is time to; whoever wanted it need not wait for the answer.
    pub(crate) fn top_up(self: &Arc<Self>, account: &Arc<Account>) {
        let question = account.purse().question(&account.name, self.clock.now(), unix_ms());
        if let Some(question) = question {
            tokio::spawn(Arc::clone(self).ask(Arc::clone(account), question));
        }
    }

    async fn ask(self: Arc<Self>, account: Arc<Account>, question: ContractRequest) {
        let outcome = match timeout(QUESTION_WAIT, self.control.contract(&question)).await {
            Ok(Ok(answer)) => {
                let contract = ContractId(answer.contract);
                let outcome = Outcome::of(answer, unix_ms());
                if matches!(outcome, Outcome::Refused(_)) {
                    self.close(contract);
                }
                outcome
            }
            Ok(Err(ControlError::Refused(answer))) => Outcome::Refused(answer),
            Ok(Err(ControlError::Unable(answer))) => {
                tracing::debug!(cause = answer.cause, account = %account.name, "no contract");
                Outcome::Unable(answer)
            }
            Ok(Err(ControlError::Silent(error))) => {
                tracing::debug!(%error, account = %account.name, "no contract");
                Outcome::Silent
            }
            Err(_) => Outcome::Silent,
        };
        let now = self.clock.now();
        let (previous, block) = {
            let mut purse = account.purse();
            let previous = purse.current().cloned();
            (previous, purse.answered(&outcome, now, fastrand::u64(..)))
        };
        account.answered.notify_waiters();
        let (Some(previous), Some(block)) = (previous, block) else { return };
        if previous.in_use() {
            self.exits.show(&block.contract);
        }
        // What is used up has moved its streams on already.
        let mut behind = Some(previous);
        while let Some(block) = behind {
            if block.is_spent() || !block.in_use() {
                self.give_back(&block);
            }
            behind = block.previous();
        }
    }

    /// A block's last stream has ended: it, and those that went on for it, are given back, up to the one that the next stream is paid
    /// from.
    pub(super) fn retire(self: &Arc<Self>, account: &Account, block: &Arc<Block>) {
        let current = account.purse().current().cloned();
        let mut retired = Some(Arc::clone(block));
        while let Some(block) = retired {
            if block.in_use() || current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &block)) {
                return;
            }
            self.give_back(&block);
            retired = block.next().cloned();
        }
    }

    /// Blocks of accounts that do not use them are given back.
    pub(crate) fn sweep(self: &Arc<Self>, accounts: &[Arc<Account>], kept_unused: Duration) {
        let now = self.clock.now();
        for account in accounts {
            if account.unused_for(now) >= kept_unused
                && let Some(block) = account.purse().give_back()
            {
                self.give_back(&block);
            }
        }
    }

    fn give_back(self: &Arc<Self>, block: &Block) {
        if block.give_back() {
            self.close(block.contract.id);
        }
    }

    /// If nobody answers, the contract is given back when its time is over.
    fn close(self: &Arc<Self>, contract: ContractId) {
        let opener = Arc::clone(self);
        tokio::spawn(async move {
            let closed = timeout(QUESTION_WAIT, opener.control.close_contract(contract)).await;
            if let Ok(Err(error)) = closed {
                tracing::debug!(%error, "a contract could not be closed");
            }
        });
    }
}
