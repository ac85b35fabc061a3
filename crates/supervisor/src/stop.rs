//! Stopping a network from another terminal, and removing one.

use crate::data::DataFolder;
use crate::error::UpError;
use crate::state::{Lock, Status, status};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a network may take to stop: each of its children has a limit of its own below this.
const LIMIT: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What stands in a data folder. Nothing else is removed.
const OURS: [&str; 25] = [
    "api",
    "api.crt",
    "api.key",
    "api.toml",
    "curl-login",
    "log",
    "pgpass",
    "pooler.toml",
    "postgres",
    "provider",
    "proxy",
    "proxy.crt",
    "proxy.key",
    "proxy.toml",
    "relay",
    "relay.crt",
    "relay.key",
    "relay.toml",
    "root.crt",
    "root.key",
    "secrets.toml",
    "token.key",
    "up.json",
    "up.toml",
    "userlist.txt",
];

/// Asks a running network to stop and waits until it has.
///
/// # Errors
/// None is running, or it does not stop in time.
pub async fn stop(data: &DataFolder) -> Result<(), UpError> {
    let Status::Running(state) = status(data)? else { return Err(UpError::NotUp(data.path().to_owned())) };
    let pid = state.pid;
    let target = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let target = target.ok_or_else(|| data.damaged(crate::state::STATE, "no process id"))?;
    // It may have ended just now.
    let _ = kill_process(target, Signal::TERM);
    let end = Instant::now() + LIMIT;
    while matches!(status(data)?, Status::Running(_)) {
        if Instant::now() >= end {
            return Err(UpError::StillUp { pid, limit_s: LIMIT.as_secs(), log: data.file("log") });
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Removes a network for good: its database, keys and name. What is not ours stays. Says what was removed.
///
/// # Errors
/// It is up, or the disk refuses.
pub fn reset(data: &DataFolder) -> Result<Vec<PathBuf>, UpError> {
    let _lock = Lock::take(data)?;
    let mut removed = Vec::new();
    for name in OURS.iter().chain(&["worker.toml", "second", "up.lock"]) {
        let path = data.file(name);
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let gone = if found.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        gone.map_err(|source| UpError::Disk { what: "remove", path: path.clone(), source })?;
        removed.push(path);
    }
    // Stays if something of others is in it.
    let _ = fs::remove_dir(data.path());
    Ok(removed)
}
