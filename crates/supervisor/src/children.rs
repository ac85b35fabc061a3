//! The children: started, watched, started again with back-off when they die, stopped in order.

use crate::data::DataFolder;
use crate::error::UpError;
use crate::state::Board;
use clock::unix_ms;
use overload::Backoff;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep, timeout};

/// The first and the greatest wait before a child that died is started again.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const GREATEST_WAIT: Duration = Duration::from_secs(30);
/// A child that has run for so long has worked: its next death is a first one.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// A log beyond this is moved aside, one generation of it.
const MAX_LOG_LEN: u64 = 16 * 1_024 * 1_024;
const LOG_LOOK: Duration = Duration::from_secs(60);
/// How much of a log is shown when a child does not come up.
const TAIL_LEN: u64 = 2_048;
const READY_LOOK: Duration = Duration::from_millis(50);

/// The program that the children run: this one, under its hidden verb.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Called as `PROGRAM up-child PARENT NAME FOLDER`; NAME is `postgres`, `pooler` or `roles`.
    pub holdfast: PathBuf,
    /// How people call this program: it stands in the lines that are printed.
    pub typed: String,
}

impl Default for Programs {
    /// The program of this process, also where its path may not be entered any more.
    fn default() -> Self {
        let typed =
            std::env::current_exe().map_or_else(|_| "holdfast".to_owned(), |path| path.display().to_string());
        Self { holdfast: PathBuf::from("/proc/self/exe"), typed }
    }
}

/// What one child is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// What asks it to stop.
    pub(crate) stop: Signal,
    /// How long it may take for that, before it is killed.
    pub(crate) stop_limit: Duration,
    /// How long it may take to come up.
    pub(crate) start_limit: Duration,
}

/// A child that is kept running until it is told to stop.
#[derive(Debug)]
pub(crate) struct Kept {
    kind: Kind,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Kept {
    pub(crate) fn start(kind: Kind, programs: &Programs, data: &DataFolder, board: &Board) -> Self {
        let (stop, stopped) = watch::channel(false);
        let keeper =
            Keeper { kind, programs: programs.clone(), data: data.clone(), board: board.clone(), stopped };
        Self { kind, stop, task: tokio::spawn(keeper.keep()) }
    }

    /// Waits until it is ready: `look` is given the process that runs now. A child that dies before is a failure here, although
    /// it would be started again.
    pub(crate) async fn ready(
        &self,
        data: &DataFolder,
        board: &Board,
        mut look: impl AsyncFnMut(u32) -> bool,
    ) -> Result<(), UpError> {
        let name = self.kind.name;
        let failed = |cause: String| {
            let log = data.log(name);
            let tail = tail(&log).unwrap_or_default();
            Err(UpError::Child { name, cause, log, tail })
        };
        let end = Instant::now() + self.kind.start_limit;
        loop {
            let mut last_end = None;
            board.child(name, |child| last_end.clone_from(&child.last_end));
            if let Some(last_end) = last_end {
                return failed(format!("ended while it started ({last_end})"));
            }
            if let Some(pid) = board.pid_of(name)
                && look(pid).await
            {
                return Ok(());
            }
            if Instant::now() >= end {
                return failed(format!("was not ready within {} s", self.kind.start_limit.as_secs()));
            }
            sleep(READY_LOOK).await;
        }
    }

    /// Stops it, and returns when it has ended.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!(name = self.kind.name, %error, "the keeper of a child ended by itself");
        }
    }
}

struct Keeper {
    kind: Kind,
    programs: Programs,
    data: DataFolder,
    board: Board,
    stopped: watch::Receiver<bool>,
}

impl Keeper {
    async fn keep(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let started = Instant::now();
            let ended = match self.spawn() {
                Ok(child) => match self.watch(child).await {
                    Some(ended) => ended,
                    None => return,
                },
                Err(error) => format!("did not start: {error}"),
            };
            if started.elapsed() >= STABLE_AFTER {
                backoff.reset();
            }
            let wait = backoff.failed(FIRST_WAIT, GREATEST_WAIT, fastrand::u64(..));
            let name = self.kind.name;
            tracing::error!(
                name,
                ended,
                wait_ms = wait.as_millis(),
                "a child ended by itself and is started again"
            );
            self.board.child(name, |child| {
                child.pid = None;
                child.since_ms = unix_ms();
                child.restarts = child.restarts.saturating_add(1);
                child.last_end = Some(ended);
            });
            tokio::select! {
                () = sleep(wait) => {}
                () = told(&mut self.stopped) => return,
            }
        }
    }

    /// How it ended by itself; `None` if it was stopped.
    async fn watch(&mut self, mut child: Child) -> Option<String> {
        let mut log_look = interval(LOG_LOOK);
        loop {
            tokio::select! {
                ended = child.wait() => return Some(describe(ended)),
                _ = log_look.tick() => shorten(&self.data.log(self.kind.name)),
                () = told(&mut self.stopped) => {
                    self.end(&mut child).await;
                    return None;
                }
            }
        }
    }

    async fn end(&self, child: &mut Child) {
        let Kind { name, stop, stop_limit, .. } = self.kind;
        if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) {
            // It may have ended just now.
            let _ = kill_process(pid, stop);
        }
        if timeout(stop_limit, child.wait()).await.is_err() {
            tracing::error!(
                name,
                limit_s = stop_limit.as_secs(),
                "a child did not stop in time and is killed"
            );
            if let Err(error) = child.kill().await {
                tracing::error!(name, %error, "it cannot be killed");
            }
        }
        self.board.child(name, |child| {
            child.pid = None;
            child.since_ms = unix_ms();
        });
    }

    fn spawn(&self) -> io::Result<Child> {
        let log = self.data.log(self.kind.name);
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
        let mut command = Command::new(&self.programs.holdfast);
        command
            .arg0("holdfast")
            .arg("up-child")
            .arg(std::process::id().to_string())
            .arg(self.kind.name)
            .arg(self.data.path())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A Ctrl-C at the terminal is for the parent, who stops the children in order.
            .process_group(0);
        let child = command.spawn()?;
        let pid = child.id();
        self.board.child(self.kind.name, |state| {
            state.pid = pid;
            state.since_ms = unix_ms();
        });
        Ok(child)
    }
}

/// Told to stop, or nobody is left who could tell.
async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

fn describe(ended: io::Result<ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// The child appends, wherever the file ends: so it may be cut while it writes. What is written between the two steps is lost.
fn shorten(log: &Path) {
    let cut = || {
        if fs::metadata(log)?.len() > MAX_LOG_LEN {
            fs::copy(log, log.with_extension("log.1"))?;
            OpenOptions::new().write(true).open(log)?.set_len(0)?;
        }
        io::Result::Ok(())
    };
    if let Err(error) = cut() {
        tracing::warn!(log = %log.display(), %error, "a log was not shortened");
    }
}

fn tail(log: &Path) -> io::Result<String> {
    let mut file = fs::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_LEN)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_LEN).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The first line may have been cut.
    Ok(match text.split_once('\n') {
        Some((_, rest)) if length > TAIL_LEN => rest.to_owned(),
        _ => text,
    })
}

#[cfg(test)]
mod tests;
