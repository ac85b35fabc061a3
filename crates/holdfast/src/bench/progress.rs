//! Progress on standard error: one line that is written over on a terminal, few lines elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// Shows where a bench is.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    last_step: Mutex<String>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), last_step: Mutex::default() }
    }

    /// `step` changes seldom, `detail` often.
    pub(crate) fn show(&self, step: &str, detail: &str) {
        let mut last_step = self.last_step.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *last_step != step;
        step.clone_into(&mut last_step);
        let mut to = io::stderr().lock();
        let written = match (self.terminal, is_new) {
            (true, true) => write!(to, "\r\x1b[K{step}\n\r\x1b[K  {detail}"),
            (true, false) => write!(to, "\r\x1b[K  {detail}"),
            (false, true) => writeln!(to, "{step}"),
            (false, false) => Ok(()),
        };
        // Nobody has to watch.
        drop(written.and_then(|()| to.flush()));
    }

    /// Leaves the line free for what follows.
    pub(crate) fn end(&self) {
        if self.terminal {
            drop(write!(io::stderr().lock(), "\r\x1b[K"));
        }
    }
}
