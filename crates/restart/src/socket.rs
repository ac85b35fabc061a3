//! What a running server has written into its data folder.

use std::path::{Path, PathBuf};

use crate::Error;

/// Longest file of those.
const MOST_BYTES: u64 = 64 << 10;

/// A running server, by its own words (`postmaster.pid` and `postmaster.opts`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Postmaster {
    pub(crate) socket_folder: PathBuf,
    pub(crate) port: u16,
    /// Where its programs are.
    pub(crate) programs: PathBuf,
    /// The file that it writes its log into, if that is a file.
    pub(crate) log: Option<PathBuf>,
}

impl Postmaster {
    pub(crate) fn read(data: &Path) -> Result<Self, Error> {
        let read = |name: &str| {
            let path = data.join(name);
            let text = disk::read_text(&path, MOST_BYTES).map_err(Error::file(&path))?;
            text.ok_or_else(|| not_running(data, &format!("it has no {name}")))
        };
        let pid = read("postmaster.pid")?;
        let mut seen = Self::parse(&pid, &read("postmaster.opts")?)
            .ok_or_else(|| not_running(data, "what it has written there cannot be read"))?;
        let number = pid.lines().next().unwrap_or_default().trim();
        let log = std::fs::read_link(format!("/proc/{number}/fd/2")).ok();
        seen.log = log.filter(|log| log.is_file());
        Ok(seen)
    }

    /// Lines of `postmaster.pid`: process, data folder, start, port, socket folder. The first word of `postmaster.opts`
    /// is the program.
    fn parse(pid: &str, opts: &str) -> Option<Self> {
        let mut lines = pid.lines().map(str::trim);
        let port = lines.nth(3)?.parse().ok()?;
        let socket_folder = PathBuf::from(lines.next()?);
        let program = opts.trim_start().split(" \"").next()?.trim_matches(['"', '\n']);
        let programs = Path::new(program.split_whitespace().next()?).parent()?.to_owned();
        Some(Self { socket_folder, port, programs, log: None })
    }
}

fn not_running(data: &Path, why: &str) -> Error {
    Error::NotRunning { folder: data.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_server_says_where_it_is() {
        let pid = "4711\n/var/lib/data\n1764547200\n5433\n/run/postgresql\nlocalhost\n  1 2\nready   \n";
        let opts = "/usr/lib/postgresql/15/bin/postgres \"-D\" \"/var/lib/data\" \"-p\" \"5433\"\n";
        let seen = Postmaster::parse(pid, opts).unwrap();
        assert_eq!((seen.port, seen.socket_folder.as_path()), (5433, Path::new("/run/postgresql")));
        assert_eq!(seen.programs, Path::new("/usr/lib/postgresql/15/bin"));
    }

    #[test]
    fn half_a_file_is_no_server() {
        assert_eq!(Postmaster::parse("4711\n/data\n1\n", "/x/postgres\n"), None);
        assert_eq!(Postmaster::parse("4711\n/data\n1\nport\n/run\n", "/x/postgres\n"), None);
    }

    #[test]
    fn a_folder_without_a_server_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = Postmaster::read(folder.path()).unwrap_err();
        assert!(error.to_string().contains("postmaster.pid"), "{error}");
    }
}
