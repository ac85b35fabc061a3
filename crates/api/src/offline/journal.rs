//! Blocks that were given without the database, on this disk until they are in the ledger.
//!
//! One line each: eight bytes of the SHA-256 of what follows, in hex, and the block as JSON. A line that was not written whole was
//! never given out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::OfflineContract;
use trust::{AccountId, ClientId, ContractId, NetworkId, RequestId};

use crate::passwords::sha256;

/// The most blocks that wait; beyond, none are given.
pub(super) const MOST_WAITING: usize = 10_000;
const FILE: &str = "offline-blocks.journal";
const LOCK_FILE: &str = "offline-blocks.lock";

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    network: NetworkId,
    file: File,
    waiting: Vec<OfflineContract>,
    /// A line was not written whole: what comes next must not stand behind it.
    torn: bool,
    /// Two apis that used one folder would each clear what the other has written.
    _lock: File,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The block, now or by the same request before.
    Block(OfflineContract),
    /// The opener has had one for this login, or the account as much as it gets in an outage.
    HadIt,
    /// As many are waiting as may.
    Full,
}

#[derive(Serialize, Deserialize)]
struct Line {
    network: NetworkId,
    contract: ContractId,
    account: AccountId,
    proxy_account: Option<String>,
    opener: ClientId,
    request: RequestId,
    bytes: u64,
    given_at_ms: u64,
    expires_at_ms: u64,
}

impl Journal {
    pub(super) fn open(folder: &Path, network: NetworkId) -> io::Result<Self> {
        let lock = append(&folder.join(LOCK_FILE))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another api uses this folder")
            }
            TryLockError::Error(error) => error,
        })?;
        let path = folder.join(FILE);
        let mut file = append(&path)?;
        // Its name is on the disk, too.
        File::open(folder)?.sync_all()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let waiting = text.split(|byte| *byte == b'\n').filter_map(|line| read(line, network)).collect();
        // What is behind the last whole line is not read again once there is another behind it.
        let torn = text.last().is_some_and(|byte| *byte != b'\n');
        Ok(Self { path, network, file, waiting, torn, _lock: lock })
    }

    /// Gives a block, and waits until the disk has it.
    pub(super) fn give(&mut self, wanted: OfflineContract) -> io::Result<Given> {
        let same =
            |given: &&OfflineContract| given.opener == wanted.opener && given.request == wanted.request;
        if let Some(given) = self.waiting.iter().find(same) {
            return Ok(Given::Block(given.clone()));
        }
        // One that is over and that the ledger has not taken counts for its bill, and for no later outage.
        let of_account = self
            .waiting
            .iter()
            .filter(|given| given.account == wanted.account && given.expires_at_ms > wanted.given_at_ms);
        let (mut given_bytes, mut had_it) = (0_u64, false);
        for given in of_account {
            given_bytes = given_bytes.saturating_add(given.bytes);
            had_it |= given.opener == wanted.opener && given.proxy_account == wanted.proxy_account;
        }
        let left = ledger::ACCOUNT_OFFLINE_BYTES.saturating_sub(given_bytes);
        if had_it || left < wanted.bytes {
            return Ok(Given::HadIt);
        }
        if self.waiting.len() >= MOST_WAITING {
            return Ok(Given::Full);
        }
        if self.torn {
            self.rewrite()?;
        }
        self.torn = true;
        self.file.write_all(&line(self.network, &wanted)?)?;
        self.file.sync_data()?;
        self.torn = false;
        self.waiting.push(wanted.clone());
        Ok(Given::Block(wanted))
    }

    pub(super) fn waiting(&self) -> Vec<OfflineContract> {
        self.waiting.clone()
    }

    /// These are in the ledger.
    pub(super) fn forget(&mut self, done: &[ContractId]) -> io::Result<()> {
        self.waiting.retain(|given| !done.contains(&given.contract));
        self.rewrite()
    }

    fn rewrite(&mut self) -> io::Result<()> {
        // If it cannot be opened again, nothing is added to a file that is gone.
        self.torn = true;
        let mut bytes = Vec::new();
        for given in &self.waiting {
            bytes.extend(line(self.network, given)?);
        }
        disk::replace(&self.path, &bytes)?;
        self.file = append(&self.path)?;
        self.torn = false;
        Ok(())
    }
}

/// To add to it; nobody else can read it.
fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)
}

fn line(network: NetworkId, given: &OfflineContract) -> io::Result<Vec<u8>> {
    let OfflineContract {
        contract,
        account,
        proxy_account,
        opener,
        request,
        bytes,
        given_at_ms,
        expires_at_ms,
    } = given.clone();
    let line = Line {
        network,
        contract,
        account,
        proxy_account,
        opener,
        request,
        bytes,
        given_at_ms,
        expires_at_ms,
    };
    let json = serde_json::to_string(&line)?;
    Ok(format!("{} {json}\n", check(json.as_bytes())).into_bytes())
}

fn read(line: &[u8], network: NetworkId) -> Option<OfflineContract> {
    let (sum, json) = line.split_at_checked(17)?;
    if sum != format!("{} ", check(json)).as_bytes() {
        return None;
    }
    let line: Line = serde_json::from_slice(json).ok()?;
    (line.network == network).then_some(OfflineContract {
        contract: line.contract,
        account: line.account,
        proxy_account: line.proxy_account,
        opener: line.opener,
        request: line.request,
        bytes: line.bytes,
        given_at_ms: line.given_at_ms,
        expires_at_ms: line.expires_at_ms,
    })
}

fn check(json: &[u8]) -> String {
    sha256(json)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
