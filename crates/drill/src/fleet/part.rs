//! The processes of the bench: each is told what it is by a line on standard input, and tells how it stands by lines on standard
//! output. It ends with its standard input, so that none outlives the bench.

use super::{FleetOptions, Seeds, providers, relays};
use crate::clock;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const READY_LIMIT: Duration = Duration::from_secs(30);

/// What a process is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Part {
    Relay { seeds: Seeds, address: SocketAddr, state: PathBuf, admissions_per_second: u32 },
    Providers { seeds: Seeds, address: SocketAddr, first: usize, count: usize },
}

/// How it stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Standing {
    pub connected: usize,
    pub dials: u64,
    /// Why dials failed and links ended, by [`client::LinkError::label`].
    pub causes: BTreeMap<String, u64>,
}

/// Becomes what standard input says.
pub(super) fn run() -> anyhow::Result<()> {
    crate::process::raise_descriptor_limit();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("standard input")?;
    let part: Part = serde_json::from_str(&line).context("standard input holds no part of the bench")?;
    thread::spawn(end_with_input);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match part {
        Part::Relay { seeds, address, state, admissions_per_second } => {
            runtime.block_on(relays::run(seeds, address, state, admissions_per_second))
        }
        Part::Providers { seeds, address, first, count } => {
            runtime.block_on(providers::run(seeds, address, first, count))
        }
    }
}

/// Nobody is left to tell anything to.
#[expect(clippy::exit, reason = "a process of its own, whose other threads are kept by their runtimes")]
fn end_with_input() {
    let mut rest = String::new();
    while matches!(std::io::stdin().lock().read_line(&mut rest), Ok(count) if count > 0) {}
    std::process::exit(0);
}

pub(super) fn tell(standing: Standing) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(&standing)?)?;
    Ok(out.flush()?)
}

/// One of them, from outside.
pub(super) struct Process {
    child: Child,
    last: Arc<Mutex<Option<Standing>>>,
    /// Its end is the end of the process.
    _stdin: ChildStdin,
}

impl Process {
    pub(super) fn start(options: &FleetOptions, part: &Part) -> anyhow::Result<Self> {
        Self::of(&options.program, &options.arguments, part)
    }

    /// `program`, called with `arguments`, becomes `part`.
    pub(super) fn of(program: &Path, arguments: &[String], part: &Part) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("a process without pipes");
        };
        writeln!(stdin, "{}", serde_json::to_string(part)?)?;
        let last = Arc::new(Mutex::new(None));
        let to = Arc::clone(&last);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(standing) = serde_json::from_str(&line) {
                    *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(standing);
                }
            }
        });
        Ok(Self { child, last, _stdin: stdin })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn wait_until_ready(&self) -> anyhow::Result<()> {
        if clock::wait_for(READY_LIMIT, || self.standing().is_some()) {
            return Ok(());
        }
        bail!("a relay does not listen within {} s", READY_LIMIT.as_secs());
    }

    /// It still runs.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("a process of the bench has ended: {status}"),
            None => Ok(()),
        }
    }

    pub(super) fn connected(&mut self) -> anyhow::Result<usize> {
        Ok(self.last()?.connected)
    }

    pub(super) fn last(&mut self) -> anyhow::Result<Standing> {
        self.check()?;
        Ok(self.standing().unwrap_or_default())
    }

    /// What it has told so far may not be true any more.
    pub(super) fn forget(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn standing(&self) -> Option<Standing> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
