//! Programs that belong to the server, run as whoever owns its data folder: PostgreSQL refuses root.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::Error;

/// What is kept of a program's words.
const MOST_WORDS_BYTES: u64 = 64 << 10;
/// A check of settings has so long.
const CHECK_LIMIT: Duration = Duration::from_secs(20);

/// The owner of a data folder, and the programs of its server.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    /// None: we are that account.
    owner: Option<(u32, u32)>,
}

impl Programs {
    pub(crate) fn of(data: &Path, folder: PathBuf) -> Result<Self, Error> {
        let about = fs::metadata(data).map_err(Error::file(data))?;
        let owner = rustix::process::geteuid().is_root().then_some((about.uid(), about.gid()));
        Ok(Self { folder, owner })
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join(program));
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command
    }
}

/// What a program has said, and how it has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program that ends soon by itself.
pub(crate) async fn ask(command: Command) -> Result<Ended, Error> {
    match run(command, CHECK_LIMIT, true).await? {
        Some(ended) => Ok(ended),
        None => Err(Error::Server(format!("no answer within {CHECK_LIMIT:?}"))),
    }
}

/// Runs a program for at most `limit`, then kills it; none if it came to that. Where its words are not wanted, what it
/// leaves behind (a server) may keep the descriptors.
pub(crate) async fn run(mut command: Command, limit: Duration, listen: bool) -> Result<Option<Ended>, Error> {
    // Ctrl-C at a terminal is for us: a restart is brought to its end.
    command.process_group(0).current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    let to = || if listen { Stdio::piped() } else { Stdio::null() };
    command.stdout(to()).stderr(to());
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|source| Error::Program { program: program.clone(), source })?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let whole = async {
        let (out, err, status) = tokio::join!(words(out), words(err), child.wait());
        status.map(|status| Ended { status, out, err })
    };
    match timeout(limit, whole).await {
        Ok(Ok(ended)) => Ok(Some(ended)),
        Ok(Err(source)) => Err(Error::Program { program, source }),
        Err(_) => Ok(None),
    }
}

async fn words(from: Option<impl tokio::io::AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // What cannot be read is not quoted.
        let _ = (&mut from).take(MOST_WORDS_BYTES).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
