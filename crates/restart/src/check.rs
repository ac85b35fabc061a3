//! Would the server start with these settings, and what would they change? Asked of the server's own program
//! (`postgres -C NAME`, PostgreSQL documentation, "postgres"), which reads the file and all that it includes, and starts nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Error;
use crate::files::{self, Settings};
use crate::process::{Programs, ask};

/// Settings of a file whose effect is looked up.
const MOST_NAMES: usize = 300;
/// What is quoted of a server's complaint, in characters.
const MOST_QUOTED: usize = 2_000;

/// A setting that will be another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// What the server runs with, in the setting's own unit.
    pub now: String,
    /// What it would run with.
    pub then: String,
}

/// What the running server says of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) value: String,
    /// Given on its command line, which files do not change.
    pub(crate) is_fixed: bool,
}

/// The values that would be in force, by name, of all that the old or the new file names.
///
/// # Errors
/// [`Error::Settings`] with the server's own words.
pub(crate) async fn values(
    programs: &Programs,
    data: &Path,
    settings: &Settings,
) -> Result<BTreeMap<String, String>, Error> {
    let draft = Draft::write(settings)?;
    let fresh = settings.fresh.as_ref().map_or_else(|| draft.text.clone(), Clone::clone);
    // One that every server has: it finds what is wrong with the whole file.
    let mut wanted = BTreeSet::from(["max_connections".to_owned()]);
    wanted.extend(names(&fresh));
    wanted.extend(names(&settings.former));
    let mut values = BTreeMap::new();
    for name in wanted.into_iter().take(MOST_NAMES) {
        let mut command = programs.command("postgres");
        command.arg("-D").arg(data).arg("-c").arg(format!("config_file={}", draft.path.display()));
        command.arg("-C").arg(&name).env("LC_ALL", "C");
        let ended = ask(command).await?;
        if !ended.status.success() {
            let said = ended.err.replace(&*draft.path.to_string_lossy(), &settings.file.to_string_lossy());
            let said: String = said.trim().chars().take(MOST_QUOTED).collect();
            let missing = said.contains("unrecognized configuration parameter") && !fresh.contains(&name);
            if missing {
                // The old file named what no longer exists.
                continue;
            }
            return Err(Error::Settings { file: settings.file.clone(), said });
        }
        values.insert(name, ended.out.trim_end_matches('\n').to_owned());
    }
    Ok(values)
}

/// What differs from the running server.
pub(crate) fn changes(values: &BTreeMap<String, String>, live: &BTreeMap<String, Live>) -> Vec<Change> {
    let change = |(name, then): (&String, &String)| {
        let now = live.get(name)?;
        let differs = !now.is_fixed && now.value != *then;
        differs.then(|| Change { name: name.clone(), now: now.value.clone(), then: then.clone() })
    };
    values.iter().filter_map(change).collect()
}

/// Names that a settings file sets (PostgreSQL documentation, "Setting Parameters": `name = value`, the sign may be left
/// out, `#` begins a comment). What it includes is not followed.
fn names(text: &str) -> impl Iterator<Item = String> {
    let name = |line: &str| {
        let line = line.trim_start();
        let end = line.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_.".contains(letter)));
        let name = line.get(..end.unwrap_or(line.len())).unwrap_or_default().to_ascii_lowercase();
        let is_directive = matches!(name.as_str(), "include" | "include_dir" | "include_if_exists");
        (!name.is_empty() && !is_directive).then_some(name)
    };
    text.lines().filter_map(name)
}

/// The new settings beside the old ones, so that what they include is found from there. Gone when dropped.
struct Draft {
    path: PathBuf,
    text: String,
    is_ours: bool,
}

impl Draft {
    fn write(settings: &Settings) -> Result<Self, Error> {
        let path = match &settings.fresh {
            None => {
                let text = files::read(&settings.file)?;
                return Ok(Self { path: settings.file.clone(), text, is_ours: false });
            }
            Some(_) => settings.file.with_extension("conf.check"),
        };
        let text = settings.fresh.clone().unwrap_or_default();
        files::replace(&path, &text, &settings.file)?;
        Ok(Self { path, text, is_ours: true })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.is_ours {
            // What is left would be written over by the next check.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_the_server_reads_them() {
        let text = "# comment\nwork_mem = 8MB # more\n  Shared_Buffers 1GB\n\ninclude_dir 'conf.d'\napp.flag='x'\n#port = 1\n";
        assert_eq!(names(text).collect::<Vec<_>>(), ["work_mem", "shared_buffers", "app.flag"]);
    }

    #[test]
    fn what_the_command_line_fixes_is_no_change() {
        let values = BTreeMap::from(
            [("port", "5433"), ("work_mem", "8192"), ("fsync", "on")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let live = |value: &str, is_fixed| Live { value: value.to_owned(), is_fixed };
        let now = BTreeMap::from([
            ("port".to_owned(), live("5432", true)),
            ("work_mem".to_owned(), live("4096", false)),
            ("fsync".to_owned(), live("on", false)),
        ]);
        let change = Change { name: "work_mem".to_owned(), now: "4096".to_owned(), then: "8192".to_owned() };
        assert_eq!(changes(&values, &now), [change]);
    }
}
