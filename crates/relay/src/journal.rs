//! What was used, on this disk until the database has it.
//!
//! A file for each start of the relay: `usage-EPOCH.journal`, records of [`RECORD_BYTES`], synced with every batch. Beside it
//! `usage-EPOCH.sent`, how many of them the database has confirmed. What a `kill -9` loses is what was used since the last
//! batch. Records are idempotent on (contract, relay, epoch, sequence), so that sending one twice charges nothing twice.

use crate::contracts::Usage;
use aws_lc_rs::digest::{SHA256, digest};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use trust::ContractId;

/// Contract, sequence, bytes, and the first eight bytes of their SHA-256.
const RECORD_BYTES: usize = 40;
const CHECKED_BYTES: usize = 32;
/// Records that are read at once.
const BATCH: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    epoch: u64,
    file: File,
    records: u64,
    sent: u64,
    /// Beyond this it takes no more: then the relay takes no more opens.
    most_bytes: u64,
    /// A write was not finished: what stands behind the last whole record is to be cut off.
    torn: bool,
    /// Held for as long as this start runs: another one would send, and remove, the journal that is being written.
    _lock: File,
}

/// What is to be sent of one start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsent {
    pub epoch: u64,
    pub records: Vec<Usage>,
    /// Confirmed once these are.
    up_to: u64,
}

impl Journal {
    /// Opens the folder, and begins a journal for a start whose number is above all before.
    pub(crate) fn open(folder: &Path, now_ms: u64, most_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let lock = OpenOptions::new().create(true).append(true).open(folder.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another relay uses this folder")
            }
            TryLockError::Error(error) => error,
        })?;
        let last = epochs(folder)?.into_iter().max().unwrap_or(0);
        let epoch = now_ms.max(last + 1);
        let file = OpenOptions::new().create_new(true).append(true).read(true).open(path(folder, epoch))?;
        Ok(Self {
            folder: folder.to_owned(),
            epoch,
            file,
            records: 0,
            sent: 0,
            most_bytes,
            torn: false,
            _lock: lock,
        })
    }

    /// The number of this start.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Adds records, and waits until the disk has them. After an error, none of them counts as added.
    pub(crate) fn append(&mut self, usage: &[Usage]) -> io::Result<()> {
        if usage.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(usage.len() * RECORD_BYTES);
        for record in usage {
            bytes.extend_from_slice(&encode(record));
        }
        // A disk that is full may have taken a part: what comes next must not stand behind it.
        if self.torn {
            self.file.set_len(self.records * RECORD_BYTES as u64)?;
        }
        self.torn = true;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.torn = false;
        self.records += usage.len() as u64;
        Ok(())
    }

    /// No more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.records * RECORD_BYTES as u64 >= self.most_bytes
    }

    /// The next batch that the database has not confirmed: of earlier starts first, whose journals go once they are sent.
    pub(crate) fn unsent(&mut self) -> io::Result<Option<Unsent>> {
        for epoch in epochs(&self.folder)?.into_iter().filter(|&epoch| epoch < self.epoch) {
            let sent = read_sent(&self.folder, epoch)?;
            let mut file = File::open(path(&self.folder, epoch))?;
            match read_batch(&mut file, sent)? {
                records if records.is_empty() => self.forget(epoch)?,
                records => {
                    let up_to = sent + records.len() as u64;
                    return Ok(Some(Unsent { epoch, records, up_to }));
                }
            }
        }
        let mut records = read_batch(&mut self.file, self.sent)?;
        // What was not finished is written again.
        records.truncate(usize::try_from(self.records - self.sent).unwrap_or(usize::MAX));
        let up_to = self.sent + records.len() as u64;
        Ok((!records.is_empty()).then_some(Unsent { epoch: self.epoch, records, up_to }))
    }

    /// The database has them. A journal of this start that is sent to its end begins anew.
    pub(crate) fn confirm(&mut self, unsent: &Unsent) -> io::Result<()> {
        if unsent.epoch == self.epoch {
            if unsent.up_to == self.records {
                // In this order: what is left by a crash in between is sent again, never left out. A disk that is full
                // can still be cleared.
                if self.sent > 0 {
                    write_sent(&self.folder, self.epoch, 0)?;
                    File::open(&self.folder)?.sync_all()?;
                }
                self.file.set_len(0)?;
                (self.records, self.sent) = (0, 0);
                return Ok(());
            }
            self.sent = unsent.up_to;
            return write_sent(&self.folder, self.epoch, self.sent);
        }
        write_sent(&self.folder, unsent.epoch, unsent.up_to)
    }

    fn forget(&self, epoch: u64) -> io::Result<()> {
        fs::remove_file(path(&self.folder, epoch))?;
        match fs::remove_file(sent_path(&self.folder, epoch)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn encode(usage: &Usage) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..16].copy_from_slice(usage.contract.0.as_bytes());
    record[16..24].copy_from_slice(&usage.sequence.to_be_bytes());
    record[24..32].copy_from_slice(&usage.bytes.to_be_bytes());
    let check = digest(&SHA256, &record[..CHECKED_BYTES]);
    record[CHECKED_BYTES..].copy_from_slice(&check.as_ref()[..8]);
    record
}

/// `None` for a record that was not written whole.
fn decode(record: &[u8; RECORD_BYTES]) -> Option<Usage> {
    let check = digest(&SHA256, &record[..CHECKED_BYTES]);
    if check.as_ref()[..8] != record[CHECKED_BYTES..] {
        return None;
    }
    let number = |at: usize| record[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    let contract: [u8; 16] = record[..16].try_into().ok()?;
    Some(Usage { contract: ContractId::from_bytes(contract), sequence: number(16)?, bytes: number(24)? })
}

/// Reads on from a record; a torn end, and what is behind it, is left out.
fn read_batch(file: &mut File, from: u64) -> io::Result<Vec<Usage>> {
    file.seek(SeekFrom::Start(from * RECORD_BYTES as u64))?;
    let mut bytes = Vec::new();
    file.take((BATCH * RECORD_BYTES) as u64).read_to_end(&mut bytes)?;
    let (records, _torn) = bytes.as_chunks::<RECORD_BYTES>();
    Ok(records.iter().map_while(decode).collect())
}

fn path(folder: &Path, epoch: u64) -> PathBuf {
    folder.join(format!("usage-{epoch}.journal"))
}

fn sent_path(folder: &Path, epoch: u64) -> PathBuf {
    folder.join(format!("usage-{epoch}.sent"))
}

fn epochs(folder: &Path) -> io::Result<Vec<u64>> {
    let mut epochs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let epoch: Option<u64> = name
            .to_str()
            .and_then(|name| name.strip_prefix("usage-")?.strip_suffix(".journal")?.parse().ok());
        epochs.extend(epoch);
    }
    epochs.sort_unstable();
    Ok(epochs)
}

/// A file that is not there, or torn, says that nothing was confirmed: then it is sent again, which charges nothing twice.
fn read_sent(folder: &Path, epoch: u64) -> io::Result<u64> {
    match fs::read_to_string(sent_path(folder, epoch)) {
        Ok(text) => Ok(text.trim().parse().unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn write_sent(folder: &Path, epoch: u64, sent: u64) -> io::Result<()> {
    let whole = sent_path(folder, epoch);
    let part = whole.with_extension("part");
    let mut file = File::create(&part)?;
    file.write_all(sent.to_string().as_bytes())?;
    file.sync_data()?;
    fs::rename(part, whole)
}

#[cfg(test)]
mod tests;
