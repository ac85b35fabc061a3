//! Who used which exit when: for complaints, and for nothing else.
//!
//! A record names the account, the provider, the port and the times. The target stands in it only if the operator says so. Records
//! go to the api, which keeps them for a bounded time; and, if a folder is named, to files of one day each, which are bounded in
//! size and deleted after their time.

mod files;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use trust::api::{Exit, ExitsRequest, MOST_EXITS};

use crate::control::{Control, ControlError};
use files::Files;

/// Records that wait; beyond, the newest are lost, and counted.
pub(crate) const MAX_WAITING: usize = 65_536;

/// Records are sent together if they come within this time.
const GATHER: Duration = Duration::from_secs(1);

/// The pause after a report that was not answered.
const PAUSE: Duration = Duration::from_secs(5);

/// Where records are kept besides the api.
#[derive(Clone, Debug)]
pub(crate) struct Keeping {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// Whole days after which a day's file is deleted.
    pub(crate) days: u32,
    /// The most bytes of one day's file; beyond, the day's records go to the api only.
    pub(crate) bytes_a_day: u64,
}

/// One stream that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) exit: Exit,
    /// Only if the operator says so.
    pub(crate) target: Option<String>,
}

/// Where records are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    sender: mpsc::Sender<Record>,
    lost: Arc<AtomicU64>,
}

impl Records {
    /// A place to hand in, and where they come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Record>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self { sender, lost: Arc::default() }, receiver)
    }

    pub(crate) fn hand_in(&self, record: Record) {
        if self.sender.try_send(record).is_err() && self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!("exit records are lost: the api takes none, and {MAX_WAITING} wait");
        }
    }

    /// Records that were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Keeps and reports records until nobody hands any in.
pub(crate) async fn keep<C: Control>(
    mut records: mpsc::Receiver<Record>,
    control: Arc<C>,
    keeping: Option<Keeping>,
) {
    let mut files = keeping.map(Files::new);
    while let Some(batch) = gather(&mut records).await {
        if let Some(files) = &mut files {
            files.write(&batch);
        }
        let report = ExitsRequest { exits: batch.into_iter().map(|record| record.exit).collect() };
        while let Err(error) = control.report_exits(&report).await {
            match error {
                ControlError::Refused(answer) => {
                    let count = report.exits.len();
                    tracing::error!(cause = answer.cause, count, "the api refused exit records");
                    break;
                }
                ControlError::Silent(_) | ControlError::Unable(_) if records.is_closed() => {
                    let count = report.exits.len() + records.len();
                    tracing::error!(count, "exit records are lost: the api takes none, and this proxy stops");
                    return;
                }
                ControlError::Silent(_) | ControlError::Unable(_) => sleep(PAUSE).await,
            }
        }
    }
}

/// The next records; `None` if none will come.
async fn gather(records: &mut mpsc::Receiver<Record>) -> Option<Vec<Record>> {
    let mut batch = vec![records.recv().await?];
    let until = Instant::now() + GATHER;
    while batch.len() < MOST_EXITS {
        match timeout_at(until, records.recv()).await {
            Ok(Some(record)) => batch.push(record),
            Ok(None) | Err(_) => break,
        }
    }
    Some(batch)
}

#[cfg(test)]
mod tests;
