//! What is done about pile-ups, and when: nothing before the grace is over, and nothing over and over.

use crate::judge::{Party, PileUp};
use crate::policy::Policy;
use overload::Moment;
use std::collections::HashMap;
use std::time::Duration;

/// A process that has been told to stop, and stands there still, is told again after this.
pub const ACT_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// So often a process is told to stop, and not again.
pub const MAX_ACTS: u32 = 3;

/// What has been seen of pile-ups so far at one server. Bounded by what one look brings: who is seen no more is forgotten.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    piles: HashMap<i32, Moment>,
    told: HashMap<i32, (Moment, u32)>,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// To whom.
    pub party: Party,
    /// What.
    pub verb: Verb,
}

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Cancel the statement that waits.
    CancelWaiter,
    /// Cancel the statement that runs.
    CancelBlocker,
    /// End a session that idles in its transaction: it runs nothing that could be cancelled.
    TerminateBlocker,
}

impl Verb {
    /// A word for logs and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::CancelWaiter => "cancel waiter",
            Self::CancelBlocker => "cancel blocker",
            Self::TerminateBlocker => "terminate blocker",
        }
    }
}

impl Memory {
    /// What is to be done now, each process at most once.
    pub fn decide<K>(
        &mut self,
        now: Moment,
        piles: &[PileUp<K>],
        policy: Policy,
        grace: Duration,
    ) -> Vec<Action> {
        self.piles.retain(|cause, _| piles.iter().any(|pile| cause_of(pile) == Some(*cause)));
        let mut actions: Vec<Action> = Vec::new();
        for pile in piles {
            let Some(cause) = cause_of(pile) else { continue };
            let since = *self.piles.entry(cause).or_insert(now);
            let age = pile.longest.unwrap_or_default().max(now.since(since));
            if age < grace {
                continue;
            }
            for action in wanted(pile, policy) {
                if actions.iter().all(|other| other.party.pid != action.party.pid) {
                    actions.push(action);
                }
            }
        }
        let named = |pid: &i32| piles.iter().any(|pile| parties(pile).any(|party| party.pid == *pid));
        self.told.retain(|pid, _| named(pid));
        actions.retain(|action| {
            let (at, times) = self.told.entry(action.party.pid).or_insert((now, 0));
            let is_due = *times == 0 || *times < MAX_ACTS && now.since(*at) >= ACT_AGAIN_AFTER;
            if is_due {
                (*at, *times) = (now, *times + 1);
            }
            is_due
        });
        actions
    }
}

fn parties<K>(pile: &PileUp<K>) -> impl Iterator<Item = &Party> {
    pile.waiter.iter().chain(&pile.blockers)
}

/// Whose doing it is: the DDL that waits, or who holds the lock.
fn cause_of<K>(pile: &PileUp<K>) -> Option<i32> {
    parties(pile).next().map(|party| party.pid)
}

fn wanted<K>(pile: &PileUp<K>, policy: Policy) -> Vec<Action> {
    match (policy, &pile.waiter) {
        (Policy::CancelWaitingDdl, Some(waiter)) => {
            vec![Action { party: waiter.clone(), verb: Verb::CancelWaiter }]
        }
        // Whoever keeps a DDL waiting; or whose DDL has got its lock and keeps all others waiting. Locks of rows are the
        // daily business of transactions: nobody is ended for one.
        (Policy::CancelBlocker, waiter) => pile
            .blockers
            .iter()
            .filter(|blocker| blocker.pid > 0 && blocker.is_relation)
            .filter(|blocker| waiter.is_some() || blocker.mode.is_ddl())
            .map(|blocker| {
                let idles = blocker.state.starts_with("idle in transaction");
                let verb = if idles { Verb::TerminateBlocker } else { Verb::CancelBlocker };
                Action { party: blocker.clone(), verb }
            })
            .collect(),
        (Policy::CancelWaitingDdl | Policy::Warn, _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
