//! What a proxy needs to start while the api is gone: logins, providers and blocks, as they were last known, in one file that only its
//! own user can read.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trust::api::{Candidate, ContractAnswer, ProxyLogin};

/// What is older is not believed any more.
const BELIEVED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The largest file that is read, bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The form of the file. Another one is as if there were none.
const FORM: u32 = 1;

/// All of it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct LastKnown {
    form: u32,
    saved_at_ms: u64,
    pub(crate) logins: Vec<ProxyLogin>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) blocks: Vec<SavedBlock>,
}

/// A block that was not given back.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct SavedBlock {
    pub(crate) account: String,
    pub(crate) contract: ContractAnswer,
    pub(crate) used: u64,
}

/// Where it is kept.
#[derive(Debug)]
pub(crate) struct Keeper {
    path: PathBuf,
    failed: bool,
}

impl Keeper {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, failed: false }
    }

    /// What was kept, if it can be used. A file that cannot is no reason not to start.
    pub(crate) fn read(&self, now_ms: u64) -> Option<LastKnown> {
        match read(&self.path, now_ms) {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%error, file = %self.path.display(), "what was last known cannot be read");
                None
            }
        }
    }

    /// Keeps it, in place of what was kept before.
    pub(crate) fn keep(&mut self, known: LastKnown, now_ms: u64) {
        let known = LastKnown { form: FORM, saved_at_ms: now_ms, ..known };
        let result = write(&self.path, &known);
        if let Err(error) = &result
            && !self.failed
        {
            tracing::error!(%error, file = %self.path.display(), "what is known cannot be kept");
        }
        self.failed = result.is_err();
    }
}

fn read(path: &Path, now_ms: u64) -> io::Result<Option<LastKnown>> {
    let Some(text) = disk::read(path, MAX_FILE_BYTES)? else { return Ok(None) };
    let known: LastKnown = serde_json::from_slice(&text)?;
    let age_ms = u128::from(now_ms.saturating_sub(known.saved_at_ms));
    Ok(Some(known).filter(|known| known.form == FORM && age_ms <= BELIEVED_FOR.as_millis()))
}

fn write(path: &Path, known: &LastKnown) -> io::Result<()> {
    disk::replace(path, &serde_json::to_vec(known)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_was_kept_is_believed_for_a_week_and_only_its_user_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = std::env::temp_dir().join(format!("holdfast-last-{}.json", Uuid::now_v7().simple()));
        let mut keeper = Keeper::new(path.clone());
        assert!(keeper.read(0).is_none());
        let block = SavedBlock {
            account: "acme".into(),
            contract: ContractAnswer {
                contract: Uuid::nil(),
                signed: "x".into(),
                bytes: 5,
                expires_at_ms: 9,
            },
            used: 3,
        };
        keeper.keep(LastKnown { blocks: vec![block], ..LastKnown::default() }, 1_000);
        keeper.keep(LastKnown::default(), 1_000);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let week_ms = u64::try_from(BELIEVED_FOR.as_millis()).unwrap();
        assert!(keeper.read(1_000 + week_ms).is_some() && keeper.read(1_001 + week_ms).is_none());
        fs::write(&path, "{").unwrap();
        assert!(keeper.read(1_000).is_none());
        fs::remove_file(path).unwrap();
    }
}
