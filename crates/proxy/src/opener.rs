//! From a request to a stream: policy, limits, a block that pays, one candidate after the other.

mod lease;
mod paying;
mod resolve;

use std::sync::Arc;
use std::time::Duration;

use client::Family;
use egress::{Policy, Refusal as PolicyRefusal, Target};
use selection::{Fault, NoCandidate, Options, Pick, RetryRefused, Search};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::abuse::Records;
use crate::accounts::Account;
use crate::control::Control;
use crate::directory::Directory;
use crate::exits::{ExitError, ExitStream, Exits, Wanted};
use crate::refusal::{Reason, Refusal};
use clock::Clock;

pub(crate) use lease::Lease;
use lease::{Admission, StreamCounter};
pub(crate) use paying::KEPT_UNUSED;

/// Accounts that may wait for their next block to be asked for. More are served at their next open.
pub(crate) const MAX_TOP_UPS: usize = 1_024;

/// The way to a provider has a bound of its own; this one holds whatever that does.
const PATIENCE_GRACE: Duration = Duration::from_secs(1);

/// When to come back if no provider is known.
const COME_BACK: Duration = Duration::from_secs(5);
/// The same after providers that failed: others may work, and these are asked again soon.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A contract that its relay does not take is replaced once in an open.
const MAX_CONTRACTS_PER_OPEN: u32 = 2;

/// What opens streams, for all customers.
pub(crate) struct Opener<E, C> {
    pub(crate) exits: Arc<E>,
    pub(crate) control: Arc<C>,
    pub(crate) directory: Arc<Directory<C>>,
    pub(crate) policy: Policy,
    pub(crate) clock: Clock,
    pub(crate) records: Records,
    pub(crate) writes_targets: bool,
    pub(crate) top_ups: mpsc::Sender<Arc<Account>>,
}

/// A stream, and what ends with it.
pub(crate) struct Opened<S> {
    pub(crate) stream: S,
    pub(crate) lease: Lease,
}

impl<E: Exits, C: Control> Opener<E, C> {
    /// Opens a stream for an account. Dropping the future gives it up.
    pub(crate) async fn open(
        self: &Arc<Self>,
        account: &Arc<Account>,
        options: &Arc<Options>,
        target: &Target,
    ) -> Result<Opened<E::Stream>, Refusal> {
        self.policy.admit(target).map_err(|refusal| not_there(&refusal))?;
        let asked = target.to_string();
        let admission = Admission::new(account, &asked, self.clock.now())?;
        let resolved = resolve::at_proxy(target, options, &self.policy).await?;
        let target = resolved.as_ref().unwrap_or(target);
        let mut search = self.directory.search(&account.name, options, &asked).await;
        let mut last = None;
        let mut contracts = 0;
        loop {
            let block = self.block(account).await?;
            let (pick, provider) = match self.directory.pick(&mut search).await {
                Ok(picked) => picked,
                Err(none) => return Err(last.unwrap_or_else(|| nobody(none))),
            };
            let mut attempt = Attempt { opener: self, pick: Some(pick) };
            let wanted = Wanted {
                provider: &provider,
                target,
                family: family(options),
                contract: &block.contract,
                patience: attempt.patience(),
            };
            let patience = attempt.patience() + PATIENCE_GRACE;
            let asked_provider = timeout(patience, self.exits.open(wanted)).await;
            let late = || Err(ExitError::Provider(Fault::TimedOut, "no answer in time".into()));
            match asked_provider.unwrap_or_else(|_| late()) {
                Ok(mut stream) => {
                    let Some(pick) = attempt.pick.take() else { continue };
                    self.directory.opened(&search, &pick);
                    let counter =
                        Arc::new(StreamCounter::new(Arc::clone(&block), account, self.top_ups.clone()));
                    stream.set_counter(counter);
                    let name = self.writes_targets.then_some(asked);
                    let opener = Arc::clone(self);
                    let lease = Lease::new(opener, admission, pick, block, (target.port, name));
                    return Ok(Opened { stream, lease });
                }
                Err(ExitError::Provider(fault, cause)) => {
                    attempt.failed(&search, fault);
                    last = Some(by_fault(fault, cause));
                }
                Err(ExitError::Target(reason, cause)) => {
                    attempt.refused_by_target();
                    let refusal = Refusal::new(reason, cause);
                    // Another provider may have a way, or the other address family.
                    if reason != Reason::TargetUnreachable {
                        return Err(refusal);
                    }
                    last = Some(refusal);
                }
                Err(ExitError::Contract(cause)) => {
                    block.set_spent();
                    attempt.give_back(&mut search);
                    contracts += 1;
                    if contracts >= MAX_CONTRACTS_PER_OPEN {
                        return Err(Refusal::new(Reason::Unavailable, cause));
                    }
                }
            }
        }
    }
}

/// A candidate that is being asked. Whoever drops it has lost interest, which says nothing about the candidate.
struct Attempt<'open, E: Exits, C: Control> {
    opener: &'open Opener<E, C>,
    pick: Option<Pick>,
}

impl<E: Exits, C: Control> Attempt<'_, E, C> {
    fn patience(&self) -> Duration {
        self.pick.as_ref().map_or(selection::patience::LEAST, |pick| pick.patience)
    }

    fn failed(&mut self, search: &Search, fault: Fault) {
        if let Some(pick) = self.pick.take() {
            self.opener.directory.failed(search, &pick, fault);
        }
    }

    fn refused_by_target(&mut self) {
        if let Some(pick) = self.pick.take() {
            self.opener.directory.refused_by_target(&pick);
        }
    }

    fn give_back(&mut self, search: &mut Search) {
        if let Some(pick) = self.pick.take() {
            self.opener.directory.give_back(search, &pick);
        }
    }
}

impl<E: Exits, C: Control> Drop for Attempt<'_, E, C> {
    fn drop(&mut self) {
        if let Some(pick) = self.pick.take() {
            self.opener.directory.abandoned(&pick);
        }
    }
}

fn family(options: &Options) -> Family {
    match options.family {
        selection::Family::Any => Family::Any,
        selection::Family::V4 => Family::V4,
        selection::Family::V6 => Family::V6,
    }
}

fn not_there(refusal: &PolicyRefusal) -> Refusal {
    let cause = match refusal {
        PolicyRefusal::Port(_) => "no provider reaches that port",
        PolicyRefusal::SpecialName => "the name is not one of the open internet",
        _ => "the address is not one of the open internet",
    };
    Refusal::new(Reason::Policy, cause)
}

fn by_fault(fault: Fault, cause: String) -> Refusal {
    match fault {
        Fault::Gone => Refusal::new(Reason::ProviderFailed, "the provider is gone").after(TRY_AGAIN),
        Fault::TimedOut => {
            Refusal::new(Reason::ProviderTimeout, "no provider has answered in time").after(TRY_AGAIN)
        }
        Fault::Failed => Refusal::new(Reason::ProviderFailed, cause).after(TRY_AGAIN),
        Fault::Full(after) => {
            let refusal = Refusal::new(Reason::ProvidersResting, cause);
            refusal.after(after.unwrap_or(TRY_AGAIN))
        }
        Fault::Policy => Refusal::new(Reason::Policy, "no provider that was asked goes there"),
    }
}

fn nobody(none: NoCandidate) -> Refusal {
    let cause = none.to_string();
    match none {
        NoCandidate::NoneKnown => Refusal::new(Reason::NoProvider, cause).after(COME_BACK),
        NoCandidate::Resting { retry_after } => {
            Refusal::new(Reason::ProvidersResting, cause).after(retry_after)
        }
        NoCandidate::SessionLost => Refusal::new(Reason::SessionLost, cause),
        NoCandidate::RetryRefused(RetryRefused::Time) => {
            Refusal::new(Reason::ProviderTimeout, cause).after(TRY_AGAIN)
        }
        NoCandidate::AllTried | NoCandidate::RetryRefused(_) => {
            Refusal::new(Reason::ProviderFailed, cause).after(TRY_AGAIN)
        }
    }
}
