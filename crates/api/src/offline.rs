//! Without the database: one block for each opener that is known.
//!
//! While the database gives no answer, a client that was given a block before gets one more, once an outage, as far as its account
//! has not had as much as an outage gives. It is written to this disk, and synced, before it is given out; once the database is back, it is brought into the ledger by its name: once,
//! however often that is tried. Each api knows its own outage: with several, an opener may get one block from each.

mod journal;
mod known;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clock::{Clock, unix_ms};
use overload::Moment;
use store::{OfflineContract, Store};
use trust::api::ErrorCode;
use trust::{AccountId, ClientId, ContractId, NetworkId, RequestId};

use crate::answer::Refusal;
use crate::known::KnownClients;

use journal::{Given, Journal};
pub(crate) use known::Payer;
use known::{Known, LOOKED_AT_ONCE};

/// When to come back without the database, ms: about as long as a restart takes.
pub(crate) const RETRY_MS: u64 = 10_000;
/// Rest after a sign of life that found no database.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A block that the ledger does not take (its client is gone from a restored database, or a grant is missing) is tried so seldom.
const REFUSED_REST: Duration = Duration::from_secs(3_600);
/// How often the standing of some of those who are known is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How often what is known goes to the disk, if nobody is new.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// What one api knows for the time without the database.
pub(crate) struct Offline {
    clock: Clock,
    after: Duration,
    heard: Mutex<Heard>,
    known: Mutex<Known>,
    network: NetworkId,
    folder: Option<PathBuf>,
    /// `None`: it has no folder, or the folder cannot be used now; then nothing is given without the database.
    journal: Mutex<Option<Arc<Mutex<Journal>>>>,
}

/// The last that was heard of the database.
#[derive(Clone, Copy)]
struct Heard {
    answered_at: Moment,
    /// It was asked since, and gave no answer.
    is_silent: bool,
}

impl Offline {
    /// With what an earlier start has left. The database counts as gone after so many ms without an answer.
    pub(crate) fn open(network: NetworkId, folder: Option<&Path>, after_ms: u64) -> Self {
        let clock = Clock::start();
        let offline = Self {
            clock,
            after: Duration::from_millis(after_ms),
            heard: Mutex::new(Heard { answered_at: clock.now(), is_silent: false }),
            known: Mutex::new(Known::open(network, folder)),
            network,
            folder: folder.map(Path::to_owned),
            journal: Mutex::new(None),
        };
        offline.open_journal(true);
        offline
    }

    /// The database has answered, if only to refuse.
    pub(crate) fn answered(&self) {
        *lock(&self.heard) = Heard { answered_at: self.clock.now(), is_silent: false };
    }

    /// It was asked, and has not.
    fn was_silent(&self) {
        lock(&self.heard).is_silent = true;
    }

    /// The database has given no answer for so long that it is not waited for.
    pub(crate) fn is_on(&self) -> bool {
        let Heard { answered_at, is_silent } = *lock(&self.heard);
        is_silent && self.clock.now().since(answered_at) > self.after
    }

    /// An earlier start may still be about to end, and have the journal.
    fn open_journal(&self, says_why_not: bool) {
        let Some(folder) = &self.folder else { return };
        let mut journal = lock(&self.journal);
        if journal.is_some() {
            return;
        }
        match Journal::open(folder, self.network) {
            Ok(opened) => *journal = Some(Arc::new(Mutex::new(opened))),
            Err(error) if says_why_not => {
                tracing::error!(%error, folder = %folder.display(),
                    "until there is a journal for them, no blocks are given while the database is gone");
            }
            Err(_) => {}
        }
    }

    /// A block was admitted: whoever got it is known from now on.
    pub(crate) fn admitted(&self, client: ClientId, login: Option<&str>, account: AccountId) {
        let payer = Payer::new(client, login, account, unix_ms());
        lock(&self.known).keep(payer);
    }

    /// A block was refused for good: nothing is given to them without the database either.
    pub(crate) fn refused(&self, client: ClientId, login: Option<&str>) {
        lock(&self.known).forget(client, login);
    }

    /// One block, if this opener has not had one in this outage; the same request gets the same block.
    pub(crate) async fn give(
        &self,
        opener: ClientId,
        login: Option<&str>,
        request: RequestId,
        now_ms: u64,
    ) -> Result<OfflineContract, Refusal> {
        let Some(payer) = lock(&self.known).payer(opener, login, now_ms) else {
            return Err(gone(
                "the network's database gives no answer, and this account is not known without it",
            ));
        };
        let Some(journal) = lock(&self.journal).clone() else {
            return Err(gone("the network's database gives no answer"));
        };
        let wanted = OfflineContract {
            contract: ContractId::at(now_ms),
            account: payer.account,
            proxy_account: login.map(str::to_owned),
            opener,
            request,
            bytes: ledger::OFFLINE_BLOCK_BYTES,
            given_at_ms: now_ms,
            expires_at_ms: now_ms + ledger::CONTRACT_LIFETIME_MS,
        };
        let given = tokio::task::spawn_blocking(move || lock(&journal).give(wanted)).await;
        match given {
            Ok(Ok(Given::Block(given))) => {
                tracing::warn!(contract = %given.contract, account = %given.account, bytes = given.bytes,
                    "a block was given without the database");
                Ok(given)
            }
            Ok(Ok(Given::HadIt)) => Err(gone(
                "the network's database gives no answer, and what is given for that time has been given",
            )),
            Ok(Ok(Given::Full)) => {
                Err(gone("the network's database gives no answer, and no more blocks are given"))
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "a block could not be written down, and was not given");
                Err(gone("the network's database gives no answer"))
            }
            Err(_) => Err(Refusal::busy()),
        }
    }

    /// Keeps the ledger's sign of life, brings in what was given without it, and keeps what is known up to date. Never ends.
    pub(crate) async fn keep(&self, store: &Store, clients: &KnownClients) {
        let mut failing = false;
        let mut refused = HashMap::new();
        let (mut looked_at, mut saved_at) = (Moment::ORIGIN, self.clock.now());
        loop {
            self.open_journal(false);
            if lock(&self.known).has_new() || self.clock.now().since(saved_at) >= SAVE_EVERY {
                saved_at = self.clock.now();
                self.save().await;
            }
            let beat = store.beat_ledger().await;
            match &beat {
                Err(error) if error.is_silence() => self.was_silent(),
                _ => self.answered(),
            }
            let rest = match beat {
                Ok(()) => {
                    failing = false;
                    self.bring_in(store, &mut refused).await;
                    if self.clock.now().since(looked_at) >= LOOK_EVERY {
                        looked_at = self.clock.now();
                        self.look(store, clients).await;
                    }
                    Duration::from_millis(ledger::PULSE_MS)
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(kind = error.kind().label(), %error, "the ledger cannot be reached");
                    }
                    RETRY_AFTER
                }
            };
            tokio::time::sleep(rest).await;
        }
    }

    /// What is known goes to the disk, if it has changed.
    pub(crate) async fn save(&self) {
        let Some(snapshot) = lock(&self.known).unsaved() else { return };
        let saved = tokio::task::spawn_blocking(move || snapshot.save()).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(%error, "who is known could not be kept on disk");
            lock(&self.known).set_unsaved();
        }
    }

    /// Blocks that were given without the database go into the ledger. What cannot be brought in now is tried again.
    async fn bring_in(&self, store: &Store, refused: &mut HashMap<ContractId, Moment>) {
        let Some(journal) = lock(&self.journal).clone() else { return };
        let waiting = lock(&journal).waiting();
        let mut done = Vec::new();
        refused.retain(|_, at| self.clock.now().since(*at) < REFUSED_REST);
        for given in waiting {
            let (contract, bytes) = (given.contract, given.bytes);
            if refused.contains_key(&contract) {
                continue;
            }
            match store.bring_in_contract(given, unix_ms()).await {
                Ok(is_new) => {
                    tracing::info!(%contract, bytes, is_new, "a block that was given without the database is in the ledger");
                    done.push(contract);
                }
                Err(error) if error.retry_after_ms().is_some() => {
                    tracing::warn!(kind = error.kind().label(), %error, "blocks wait to be brought into the ledger");
                    break;
                }
                Err(error) => {
                    tracing::error!(%contract, kind = error.kind().label(), %error, "the ledger does not take a block");
                    refused.insert(contract, self.clock.now());
                }
            }
        }
        if done.is_empty() {
            return;
        }
        let forgotten = tokio::task::spawn_blocking(move || lock(&journal).forget(&done)).await;
        if let Ok(Err(error)) = forgotten {
            // They are brought in again, which changes nothing.
            tracing::warn!(%error, "the journal of blocks could not be cleared");
        }
    }

    /// Whoever would not be admitted any more is not known any more; some are looked at in each turn.
    async fn look(&self, store: &Store, known: &KnownClients) {
        let some = lock(&self.known).least_recently_looked_at(LOOKED_AT_ONCE);
        if some.is_empty() {
            return;
        }
        let now_ms = unix_ms();
        let clients = some.iter().map(|payer| payer.client).collect();
        let accounts = some.iter().map(|payer| payer.account).collect();
        let logins = some.iter().filter_map(|payer| payer.login.clone()).collect();
        match store.unfit_payers(clients, accounts, logins, now_ms).await {
            Ok(unfit) => {
                unfit.clients.iter().for_each(|client| known.forget(*client));
                lock(&self.known).looked_at(&some, &unfit, now_ms);
            }
            Err(error) => tracing::debug!(%error, "those who are known could not be looked at"),
        }
    }
}

fn gone(cause: &'static str) -> Refusal {
    Refusal::later(ErrorCode::Unavailable, cause, RETRY_MS)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
