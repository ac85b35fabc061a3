//! A server process that this room started: its log, its end, and a watchdog for the case that nobody is left to end it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::clock;
use crate::process::{self, Signal};

/// Lines of the log that an error quotes.
const QUOTED_LOG_LINES: usize = 12;

/// How long a killed process may take to be gone.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// The watchdog waits for the end of its standard input, which is the end of our process, and then ends the server
/// (only if it is still the same process), its children, and its folder.
/// Arguments: process id, start ticks, first signal, folder to remove.
const WATCHDOG: &str = r#"
read -r _
same() { [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20)" = "$2" ]; }
children() { grep -ls "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status | sed 's|/proc/||; s|/status||'; }
if same "$1" "$2"; then
  family=$(children "$1")
  kill -CONT $family "$1"
  kill -"$3" "$1"
  for _ in 1 2 3 4 5 6 7 8 9 10; do same "$1" "$2" || break; sleep 0.2; done
  same "$1" "$2" && kill -KILL "$1" $(children "$1")
fi
rm -rf "$4"
"#;

#[derive(Debug)]
pub(crate) struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
    watchdog: Option<Child>,
}

impl Daemon {
    /// Starts `command` with its output appended to `log`. `scratch` is removed by the watchdog if we are killed.
    pub(crate) fn spawn(
        mut command: Command,
        name: &str,
        log: &Path,
        orphan_signal: Signal,
        scratch: &Path,
    ) -> anyhow::Result<Self> {
        let open = || File::options().create(true).append(true).open(log);
        let output = open().with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {name} ({})", command.get_program().display()))?;
        let watchdog = match watch(child.id(), orphan_signal, scratch) {
            Ok(watchdog) => watchdog,
            Err(error) => {
                // Without a watchdog it must not run.
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        Ok(Self { name: name.to_owned(), child, log: log.to_owned(), watchdog: Some(watchdog) })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        process::signal(self.id(), signal).with_context(|| format!("cannot signal {}", self.name))
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until `ready`; an early end or a passed limit is an error that quotes the log.
    pub(crate) fn wait_ready(
        &mut self,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        let mut ended = None;
        let in_time = clock::wait_for(limit, || {
            ended = self.ended();
            ended.is_some() || ready()
        });
        match ended {
            Some(status) => bail!("{} ended at start ({status}):\n{}", self.name, self.quote_log()),
            None if in_time => Ok(()),
            None => bail!("{} was not ready after {limit:?}:\n{}", self.name, self.quote_log()),
        }
    }

    /// Waits for its end.
    pub(crate) fn wait_end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let mut status = None;
        clock::wait_for(limit, || {
            status = self.ended();
            status.is_some()
        });
        status
    }

    /// Kills it and its children, if it still runs.
    pub(crate) fn kill(&mut self) {
        if self.ended().is_none() {
            let family = process::children(self.id());
            let _ = self.child.kill();
            for pid in family {
                let _ = process::signal(pid, Signal::KILL);
            }
            self.wait_end(KILL_WAIT);
        }
        self.release_watchdog();
    }

    fn quote_log(&self) -> String {
        let text =
            fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(QUOTED_LOG_LINES)..].join("\n")
    }

    fn release_watchdog(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            // Killed before its standard input is closed, so that it does nothing.
            let _ = watchdog.kill();
            let _ = watchdog.wait();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

fn watch(pid: u32, orphan_signal: Signal, scratch: &Path) -> anyhow::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let start = process::start_ticks(pid).unwrap_or(0);
    let name = match orphan_signal {
        Signal::QUIT => "QUIT",
        Signal::TERM => "TERM",
        _ => "KILL",
    };
    Command::new("/bin/sh")
        .args(["-c", WATCHDOG, "watchdog", &pid.to_string(), &start.to_string(), name])
        .arg(scratch)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the watchdog (/bin/sh)")
}
