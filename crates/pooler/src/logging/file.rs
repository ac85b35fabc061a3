//! The log file, which may be renamed under us.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An open log file.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    first: Mutex<Option<File>>,
    is_stale: AtomicBool,
}

impl LogFile {
    /// Opens it at its end.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = append(path)?;
        Ok(Self { path: path.to_owned(), first: Mutex::new(Some(file)), is_stale: AtomicBool::new(false) })
    }

    /// Opens the path anew before the next line.
    pub(super) fn reopen(&self) {
        self.is_stale.store(true, Ordering::Release);
    }
}

/// Writes to a [`LogFile`], on the thread that does so.
#[derive(Debug)]
pub(super) struct Writer {
    log: Arc<LogFile>,
    file: Option<File>,
}

impl Writer {
    pub(super) fn new(log: Arc<LogFile>) -> Self {
        let file = log.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        Self { log, file }
    }

    /// The file as it is to be now. One that cannot be opened anew is written on under its old name.
    fn current(&mut self) -> io::Result<&mut File> {
        if self.log.is_stale.swap(false, Ordering::Acquire)
            && let Ok(file) = append(&self.log.path)
        {
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.current()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
