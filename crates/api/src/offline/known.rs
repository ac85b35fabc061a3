//! Who paid before: what is needed of clients and accounts to know them without the database.
//!
//! Whoever is admitted becomes known; nobody is looked for. While the database answers, the standing of those who are known is looked at,
//! some at a time, so that whoever was disabled, revoked or is out of bytes is soon not known any more.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::Unfit;
use trust::{AccountId, ClientId, NetworkId};

/// The most that are known; beyond, whoever was looked at longest ago makes room.
pub(super) const MOST_KNOWN: usize = 50_000;
/// Whoever was not looked at for so long is not known any more, ms.
pub(super) const KNOWN_FOR_MS: u64 = snapshot::BELIEVED_FOR_MS;
/// So many are looked at in one turn.
pub(super) const LOOKED_AT_ONCE: usize = 1_000;
const FILE: &str = "known-payers.json";

/// A client, and the account that pays for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payer {
    pub(super) client: ClientId,
    /// The hosted proxy's login.
    pub(super) login: Option<String>,
    /// Who pays.
    pub(super) account: AccountId,
    /// When it was last admitted, or found to be in good standing, ms since 1970.
    looked_at_ms: u64,
}

impl Payer {
    pub(super) fn new(client: ClientId, login: Option<&str>, account: AccountId, now_ms: u64) -> Self {
        Self { client, login: login.map(str::to_owned), account, looked_at_ms: now_ms }
    }

    fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.looked_at_ms) < KNOWN_FOR_MS
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Known {
    network: NetworkId,
    path: Option<PathBuf>,
    payers: HashMap<ClientId, Vec<Payer>>,
    count: usize,
    changed: bool,
    /// Somebody is known who is not on the disk.
    has_new: bool,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    network: NetworkId,
    payers: Vec<Payer>,
}

/// What goes to the disk.
pub(super) struct Snapshot {
    path: PathBuf,
    kept: Kept,
}

impl Snapshot {
    pub(super) fn save(&self) -> io::Result<()> {
        disk::replace(&self.path, &serde_json::to_vec(&self.kept)?)
    }
}

impl Known {
    /// With those whom an earlier start knew.
    pub(super) fn open(network: NetworkId, folder: Option<&Path>) -> Self {
        let path = folder.map(|folder| folder.join(FILE));
        let mut known =
            Self { network, path, payers: HashMap::new(), count: 0, changed: false, has_new: false };
        let read = known.path.as_ref().and_then(|path| fs::read(path).ok());
        let kept = read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        if let Some(kept) = kept.filter(|kept| kept.network == network) {
            kept.payers.into_iter().for_each(|payer| known.keep(payer));
        }
        (known.changed, known.has_new) = (false, false);
        known
    }

    pub(super) fn keep(&mut self, payer: Payer) {
        self.changed = true;
        let of_client = self.payers.entry(payer.client).or_default();
        match of_client.iter_mut().find(|kept| kept.login == payer.login) {
            Some(kept) => *kept = payer,
            None => {
                of_client.push(payer);
                self.has_new = true;
                self.count += 1;
                if self.count > MOST_KNOWN {
                    self.make_room();
                }
            }
        }
    }

    pub(super) fn forget(&mut self, client: ClientId, login: Option<&str>) {
        self.retain_of(client, |kept| kept.login.as_deref() != login);
    }

    pub(super) fn payer(&self, client: ClientId, login: Option<&str>, now_ms: u64) -> Option<Payer> {
        let found = self.payers.get(&client)?.iter().find(|kept| kept.login.as_deref() == login);
        found.filter(|kept| kept.is_fresh(now_ms)).cloned()
    }

    /// Those who were looked at longest ago.
    pub(super) fn least_recently_looked_at(&self, most: usize) -> Vec<Payer> {
        let mut all: Vec<&Payer> = self.payers.values().flatten().collect();
        if all.len() > most {
            all.select_nth_unstable_by_key(most, |payer| payer.looked_at_ms);
            all.truncate(most);
        }
        all.into_iter().cloned().collect()
    }

    /// These were looked at; those among them who are named would not be admitted.
    pub(super) fn looked_at(&mut self, some: &[Payer], unfit: &Unfit, now_ms: u64) {
        for payer in some {
            let no = unfit.clients.contains(&payer.client)
                || unfit.accounts.contains(&payer.account)
                || payer.login.as_ref().is_some_and(|login| unfit.logins.contains(login));
            if no {
                self.forget(payer.client, payer.login.as_deref());
            } else if let Some(kept) = self.payers.get_mut(&payer.client) {
                let same = kept.iter_mut().find(|kept| kept.login == payer.login);
                same.into_iter().for_each(|kept| kept.looked_at_ms = now_ms);
                self.changed = true;
            }
        }
    }

    /// What has changed since the last time.
    pub(super) fn unsaved(&mut self) -> Option<Snapshot> {
        self.has_new = false;
        let path = self.path.clone()?;
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let payers = self.payers.values().flatten().cloned().collect();
        Some(Snapshot { path, kept: Kept { network: self.network, payers } })
    }

    pub(super) const fn has_new(&self) -> bool {
        self.has_new
    }

    pub(super) fn set_unsaved(&mut self) {
        self.changed = true;
    }

    /// A tenth goes at once, so that this is seldom.
    fn make_room(&mut self) {
        for payer in self.least_recently_looked_at(MOST_KNOWN / 10) {
            self.forget(payer.client, payer.login.as_deref());
        }
    }

    fn retain_of(&mut self, client: ClientId, keep: impl Fn(&Payer) -> bool) {
        let Some(of_client) = self.payers.get_mut(&client) else { return };
        let before = of_client.len();
        of_client.retain(keep);
        self.count -= before - of_client.len();
        self.changed |= before != of_client.len();
        if of_client.is_empty() {
            self.payers.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests;
