//! The log file in the state folder: two files of a bounded size, so that the last days are there when something went wrong.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file that has grown beyond this becomes the older one of the two, bytes.
pub const FILE_MAX: u64 = 1 << 20;

/// A writer that never holds more than twice [`FILE_MAX`] on the disk. A disk that takes nothing costs log lines, nothing else.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl LogFile {
    /// Goes on behind what is there.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = append(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }

    fn turn_over(&mut self) -> io::Result<()> {
        fs::rename(&self.path, older(&self.path))?;
        self.file = append(&self.path)?;
        self.length = 0;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length > 0 && self.length.saturating_add(bytes.len() as u64) > FILE_MAX {
            self.turn_over()?;
        }
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The last `lines` of both files.
///
/// # Errors
///
/// They cannot be read.
pub fn last_lines(path: &Path, lines: usize) -> io::Result<String> {
    let mut text = String::new();
    for path in [older(path), path.to_owned()] {
        match fs::read(&path) {
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let all: Vec<&str> = text.lines().collect();
    Ok(all[all.len().saturating_sub(lines)..].join("\n"))
}

fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_hold_the_last_lines_and_no_more() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("provider.log");
        let mut log = LogFile::open(&path).unwrap();
        let line = "x".repeat(1_000);
        for number in 0..5_000 {
            writeln!(log, "{number} {line}").unwrap();
        }
        drop(log);
        writeln!(LogFile::open(&path).unwrap(), "the end").unwrap();
        let sizes = [&path, &older(&path)].map(|path| fs::metadata(path).unwrap().len());
        assert!(sizes.iter().all(|size| *size <= FILE_MAX), "{sizes:?}");
        let last = last_lines(&path, 2).unwrap();
        assert!(last.starts_with("4999 ") && last.ends_with("the end"));
        assert!(last_lines(&path, 1_500).unwrap().lines().count() == 1_500, "over both files");
        assert_eq!(last_lines(&base.path().join("none"), 5).unwrap(), "");
    }
}
