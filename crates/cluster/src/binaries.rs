//! Where the server's programs are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// Names the folder of the server's programs, before anything else is looked at.
const FOLDER_VARIABLE: &str = "PG_BIN";
/// Where Debian and Ubuntu put each major version.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// No PostgreSQL server is installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "no PostgreSQL server programs found (looked at PG_BIN, {DEBIAN_FOLDER}/*/bin and PATH); \
     install them: apt-get install --no-install-recommends postgresql"
)]
pub struct MissingServer;

/// The programs of one installed server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
    version: String,
}

impl Binaries {
    /// Finds them: `PG_BIN`, else the newest of `/usr/lib/postgresql/*/bin`, else the folder of `postgres` on `PATH`.
    ///
    /// # Errors
    /// [`MissingServer`], or the program does not run.
    pub fn find() -> anyhow::Result<Self> {
        let folder = candidates().into_iter().find(|folder| is_complete(folder)).ok_or(MissingServer)?;
        let program = folder.join("postgres");
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().nth(2).context("`postgres --version` names no version")?;
        Ok(Self { version: version.to_owned(), folder })
    }

    /// Full version, such as `15.18`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Major version, such as 15.
    #[must_use]
    pub fn major_version(&self) -> u32 {
        let digits: String = self.version.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    /// Path of one of the programs (`postgres`, `initdb`, `psql`, `pgbench`).
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn is_complete(folder: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|name| folder.join(name).is_file())
}

fn candidates() -> Vec<PathBuf> {
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let mut installed: Vec<(u32, PathBuf)> = fs::read_dir(DEBIAN_FOLDER)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let major = entry.file_name().to_str()?.parse().ok()?;
            Some((major, entry.path().join("bin")))
        })
        .collect();
    installed.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    let path = std::env::var_os("PATH").unwrap_or_default();
    named
        .into_iter()
        .chain(installed.into_iter().map(|(_, folder)| folder))
        // A link on PATH leads to the folder where the server's other programs are.
        .chain(std::env::split_paths(&path).filter_map(|folder| {
            fs::canonicalize(folder.join("postgres")).ok()?.parent().map(Path::to_path_buf)
        }))
        .collect()
}
