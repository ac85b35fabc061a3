//! Config truth: whether what runs is what the file says (`SHOW CONFIG_TRUTH`, `SHOW CONFIG_HASH`, two metrics).
//!
//! Nobody watches the file: whoever asks makes a look at it, so that an idle process stays idle. A look costs a `stat` for
//! each file; only what has changed since the last look is read, parsed and hashed.

use aws_lc_rs::digest::{SHA256, digest};
use settings::pooler::{PoolerConfig, TruthRow, TruthState, canonical, load, truth};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longest description of what is wrong with a file, in characters.
const MAX_ERROR_CHARACTERS: usize = 500;

/// What of a file tells that it has changed: device and inode, size, time of the last change of its content and of itself.
type Mark = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

/// What is known of the configuration.
#[derive(Debug)]
pub struct ConfigTruth {
    path: PathBuf,
    started: Arc<PoolerConfig>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    loaded: Arc<PoolerConfig>,
    loaded_hash: String,
    seen: Seen,
}

/// The file at the last look.
#[derive(Clone, Debug)]
struct Seen {
    /// It, and all that it names.
    files: Vec<PathBuf>,
    marks: Vec<Mark>,
    hash: String,
    config: Result<Arc<PoolerConfig>, String>,
}

/// One look at file, loaded and live configuration.
#[derive(Clone, Debug)]
pub struct TruthReport {
    /// The file that RELOAD reads.
    pub path: PathBuf,
    /// SHA-256 of the file and all that it names, as they stand; of a single file as `sha256sum` has it.
    pub file_hash: String,
    /// The same of what was loaded last.
    pub loaded_hash: String,
    /// SHA-256 of all values in force: the same for two poolers that run the same. Without secrets.
    pub live_hash: String,
    /// What is wrong with the file, if it cannot be loaded.
    pub error: Option<String>,
    /// Every setting.
    pub rows: Vec<TruthRow>,
}

impl TruthReport {
    /// Settings in a state.
    #[must_use]
    pub fn count(&self, state: TruthState) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }

    /// `same`, `not_reloaded`, `pending_restart`, or `broken` for a file that cannot be loaded.
    #[must_use]
    pub fn state(&self) -> &'static str {
        if self.error.is_some() {
            "broken"
        } else if self.count(TruthState::NotReloaded) > 0 {
            TruthState::NotReloaded.label()
        } else if self.count(TruthState::PendingRestart) > 0 {
            TruthState::PendingRestart.label()
        } else {
            TruthState::Same.label()
        }
    }
}

impl ConfigTruth {
    /// `config` is what the process was started with, from `path` and the other `files`.
    #[must_use]
    pub fn new(path: PathBuf, files: Vec<PathBuf>, config: Arc<PoolerConfig>) -> Self {
        let hash = hash_of(&files);
        let marks = marks_of(&files);
        let seen = Seen { files, marks, hash: hash.clone(), config: Ok(Arc::clone(&config)) };
        let state = State { loaded: Arc::clone(&config), loaded_hash: hash, seen };
        Self { path, started: config, state: Mutex::new(state) }
    }

    /// A reload has put this in force.
    pub(crate) fn reloaded(&self, files: Vec<PathBuf>, config: Arc<PoolerConfig>) {
        let hash = hash_of(&files);
        let mut state = self.lock();
        state.loaded = Arc::clone(&config);
        state.loaded_hash.clone_from(&hash);
        // Looked at anew: it may have changed since it was read.
        state.seen = Seen { files, marks: Vec::new(), hash, config: Ok(config) };
    }

    /// Looks at the file. Blocks on the disk.
    #[must_use]
    pub fn look(&self) -> TruthReport {
        let before = self.lock().seen.clone();
        let marks = marks_of(&before.files);
        let seen = if marks == before.marks { before } else { self.read(before.files) };
        let mut state = self.lock();
        state.seen = seen.clone();
        let (loaded, loaded_hash) = (Arc::clone(&state.loaded), state.loaded_hash.clone());
        drop(state);
        let rows = truth(seen.config.as_deref().ok(), &loaded, &self.started);
        let live = rows.iter().map(|row| (row.key.clone(), row.live.clone()));
        TruthReport {
            path: self.path.clone(),
            file_hash: seen.hash,
            loaded_hash,
            live_hash: hex(canonical(live).as_bytes()),
            error: seen.config.err(),
            rows,
        }
    }

    /// [`Self::look`] beside the runtime; none if the process is about to end.
    pub async fn report(self: &Arc<Self>) -> Option<TruthReport> {
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || this.look()).await.ok()
    }

    fn read(&self, files_before: Vec<PathBuf>) -> Seen {
        match load(&self.path) {
            Ok(loaded) => {
                let marks = marks_of(&loaded.files);
                let hash = hash_of(&loaded.files);
                Seen { files: loaded.files, marks, hash, config: Ok(Arc::new(loaded.config)) }
            }
            Err(diagnostics) => {
                let text: Vec<String> = diagnostics.iter().map(crate::run::line_of).collect();
                let text: String = text.join("; ").chars().take(MAX_ERROR_CHARACTERS).collect();
                let (marks, hash) = (marks_of(&files_before), hash_of(&files_before));
                Seen { files: files_before, marks, hash, config: Err(text) }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn marks_of(files: &[PathBuf]) -> Vec<Mark> {
    files.iter().map(|file| mark_of(file)).collect()
}

fn mark_of(file: &Path) -> Mark {
    let found = std::fs::metadata(file).ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.size(),
        (found.mtime(), found.mtime_nsec()),
        (found.ctime(), found.ctime_nsec()),
    ))
}

/// Of several files, the hash of their hashes, a line each. One that cannot be read counts as empty.
fn hash_of(files: &[PathBuf]) -> String {
    use settings::source::{Disk, Sources as _};
    let hashes: Vec<String> = files.iter().map(|file| hex(&Disk.read(file).unwrap_or_default())).collect();
    match hashes.as_slice() {
        [one] => one.clone(),
        several => hex(several.join("\n").as_bytes()),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;
