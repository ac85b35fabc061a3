//! What a running `up` says about itself, in a file; and whether it runs, by a lock that lives as long as it does.

use crate::data::DataFolder;
use crate::error::UpError;
use crate::up::Lines;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use trust::NetworkId;

pub(crate) const STATE: &str = "up.json";
const LOCK: &str = "up.lock";

/// Where a network on this machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its children are coming up, one after the other.
    Starting,
    /// It has served.
    Up,
    /// Its children are being stopped.
    Stopping,
}

/// One child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildState {
    /// Which.
    pub name: String,
    /// Its process; absent while it waits to be started again.
    pub pid: Option<u32>,
    /// Since when it has been running or waiting, ms since 1970.
    pub since_ms: u64,
    /// How often it was started again.
    pub restarts: u32,
    /// How it ended the last time.
    pub last_end: Option<String>,
}

/// Everything in one page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// The process of `up`.
    pub pid: u32,
    /// The network; absent while its keys are being made.
    pub network: Option<NetworkId>,
    /// When it was started, ms since 1970.
    pub started_at_ms: u64,
    /// Where it is.
    pub phase: Phase,
    /// Its children.
    pub children: Vec<ChildState>,
    /// What can be done with it, once it is up.
    pub lines: Option<Lines>,
}

/// What `up status` sees.
#[derive(Clone, Debug)]
pub enum Status {
    /// Nothing runs.
    Down,
    /// It runs.
    Running(Box<State>),
}

/// Looks at a data folder.
///
/// # Errors
/// It cannot be read.
pub fn status(data: &DataFolder) -> Result<Status, UpError> {
    // Looking leaves nothing behind: whoever looks may be another user than the one who runs it.
    let path = data.file(LOCK);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Status::Down),
        Err(source) => return Err(UpError::Disk { what: "open", path, source }),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Status::Down),
        Err(TryLockError::WouldBlock) => {
            // What a killed one has left, in the moment before the next one has written its own.
            let state = read(data)?.filter(|state| is_alive(state.pid));
            Ok(state.map_or(Status::Down, |state| Status::Running(Box::new(state))))
        }
        Err(TryLockError::Error(source)) => Err(UpError::Disk { what: "lock", path, source }),
    }
}

/// Held by a running `up`.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(data: &DataFolder) -> Result<Self, UpError> {
        let path = data.file(LOCK);
        let disk = |what| {
            let path = path.clone();
            move |source| UpError::Disk { what, path, source }
        };
        let file =
            OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(disk("open"))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                let pid = read(data).ok().flatten().map_or(0, |state| state.pid);
                Err(UpError::AlreadyUp { path: data.path().to_owned(), pid })
            }
            Err(TryLockError::Error(source)) => Err(disk("lock")(source)),
        }
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Another user's process may not be signalled, but is there.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

fn read(data: &DataFolder) -> Result<Option<State>, UpError> {
    let text = data.read(STATE)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| data.damaged(STATE, error))).transpose()
}

/// The state of this `up`: each change is written at once.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    data: DataFolder,
    state: Arc<Mutex<State>>,
    // Its lock goes with the last of them.
    _lock: Arc<Lock>,
}

impl Board {
    pub(crate) fn new(data: DataFolder, lock: Lock, state: State) -> Self {
        let board = Self { data, state: Arc::new(Mutex::new(state)), _lock: Arc::new(lock) };
        board.change(|_| ());
        board
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let written = serde_json::to_string_pretty(&*state)
            .map_err(|error| self.data.damaged(STATE, error))
            .and_then(|text| self.data.write(STATE, &text));
        // The network runs on; only `up status` does not know.
        if let Err(error) = written {
            tracing::error!(%error, "the state of this network was not written");
        }
    }

    pub(crate) fn child(&self, name: &str, change: impl FnOnce(&mut ChildState)) {
        self.change(|state| {
            if let Some(child) = state.children.iter_mut().find(|child| child.name == name) {
                change(child);
            }
        });
    }

    pub(crate) fn pid_of(&self, name: &str) -> Option<u32> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.children.iter().find(|child| child.name == name)?.pid
    }
}
