//! Files of one day each.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::json;

use super::{Keeping, Record};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// How the name of each file begins, and ends.
const NAME: (&str, &str) = ("exits-", ".jsonl");

pub(super) struct Files {
    keeping: Keeping,
    today: Option<(u64, File, u64)>,
    failed: bool,
}

impl Files {
    pub(super) const fn new(keeping: Keeping) -> Self {
        Self { keeping, today: None, failed: false }
    }

    /// Adds records; each goes to the file of the day on which its stream ended.
    pub(super) fn write(&mut self, records: &[Record]) {
        let result = records.iter().try_for_each(|record| self.add(record));
        if let Err(error) = &result
            && !self.failed
        {
            tracing::error!(%error, folder = %self.keeping.folder.display(), "exit records cannot be written");
        }
        self.failed = result.is_err();
    }

    fn add(&mut self, record: &Record) -> io::Result<()> {
        let exit = &record.exit;
        let day = exit.closed_at_ms / DAY_MS;
        // A stream of yesterday that comes late goes to today's file: the name is a bound, not a promise.
        if self.today.as_ref().is_none_or(|(today, ..)| *today < day) {
            self.begin(day)?;
        }
        let Some((_, file, written)) = &mut self.today else { return Ok(()) };
        let mut line = serde_json::to_string(&match &record.target {
            Some(target) => json!({ "exit": exit, "target": target }),
            None => json!({ "exit": exit }),
        })?;
        line.push('\n');
        if *written + line.len() as u64 > self.keeping.bytes_a_day {
            return Ok(());
        }
        file.write_all(line.as_bytes())?;
        *written += line.len() as u64;
        Ok(())
    }

    /// Begins the file of a day, and deletes those whose time is over.
    fn begin(&mut self, day: u64) -> io::Result<()> {
        let folder = &self.keeping.folder;
        fs::create_dir_all(folder)?;
        let oldest = day.saturating_sub(u64::from(self.keeping.days));
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if day_of(&entry.path()).is_some_and(|day| day < oldest) {
                fs::remove_file(entry.path())?;
            }
        }
        let path = folder.join(format!("{}{day}{}", NAME.0, NAME.1));
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let written = file.metadata()?.len();
        self.today = Some((day, file, written));
        Ok(())
    }
}

/// The day, since 1970, that a file of ours is about.
fn day_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(NAME.0)?.strip_suffix(NAME.1)?.parse().ok()
}
