//! The Unix socket in the state folder: one line of JSON in, one line of JSON out.
//!
//! Whoever may open the folder may ask: its mode is 0700.

use crate::state::StateFolder;
use crate::status::Status;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The longest question and answer, bytes.
const LINE_MAX: u64 = 64 * 1024;
/// A question, and its answer, take no longer.
const TALK_TIME_MAX: Duration = Duration::from_secs(5);
/// Questions at once.
const TALKS_MAX: usize = 16;
/// The longest path of a Unix socket, bytes (unix(7)).
const PATH_MAX: usize = 107;

/// What can be asked of a provider that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do", deny_unknown_fields)]
pub enum Command {
    /// How it stands.
    Status,
    /// No new streams; those that stand may end.
    Pause,
    /// Streams again.
    Resume,
    /// Bytes a month, until the next such command.
    Cap {
        /// The limit; absent: no limit.
        bytes: Option<u64>,
    },
    /// Bytes a month as the file says.
    CapAsConfigured,
    /// Dial again with a credential that was refused for good.
    Retry,
    /// Read `provider.toml` again.
    Reload,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// How it stands after the command.
    Status(Box<Status>),
    /// It did not work; what stands is what stood before.
    Error(String),
}

/// Why a provider could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// None runs with this folder.
    #[error("no provider runs with {}", .0.display())]
    NotRunning(PathBuf),
    /// It runs, and does not answer.
    #[error("the provider does not answer: {0}")]
    Broken(#[from] io::Error),
    /// It answered, and refused.
    #[error("{0}")]
    Refused(String),
    /// The socket cannot be there.
    #[error("the path of {} is longer than {PATH_MAX} bytes, too long for a socket: take a shorter state folder", .0.display())]
    PathTooLong(PathBuf),
}

/// Whoever answers.
pub(crate) trait Answering: Send + Sync + 'static {
    /// Does it, and says how things stand.
    fn answer(&self, command: Command) -> Reply;
}

/// Asks the provider that runs with this folder.
///
/// # Errors
///
/// None runs, or it does not answer or refuses.
pub async fn ask(state: &StateFolder, command: Command) -> Result<Status, ControlError> {
    let talk = async {
        let mut stream = match UnixStream::connect(state.socket_path()).await {
            Ok(stream) => stream,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                return Err(ControlError::NotRunning(state.path().to_owned()));
            }
            Err(error) => return Err(error.into()),
        };
        write_line(&mut stream, &command).await?;
        match read_line(&mut stream).await? {
            Reply::Status(status) => Ok(*status),
            Reply::Error(cause) => Err(ControlError::Refused(cause)),
        }
    };
    timeout(TALK_TIME_MAX, talk).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// The socket; it goes with this.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    listener: UnixListener,
}

impl Control {
    /// Makes the socket. The folder is locked by this process: one that is there belongs to nobody.
    pub(crate) fn bind(state: &StateFolder) -> Result<Self, ControlError> {
        let path = state.socket_path();
        if path.as_os_str().len() > PATH_MAX {
            return Err(ControlError::PathTooLong(path));
        }
        remove_socket(&path)?;
        let listener = UnixListener::bind(&path)?;
        Ok(Self { path, listener })
    }

    /// Answers until the task is dropped.
    pub(crate) async fn serve(self, answering: Arc<impl Answering>) {
        let talks = Arc::new(Semaphore::new(TALKS_MAX));
        loop {
            let Ok(permit) = Arc::clone(&talks).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let answering = Arc::clone(&answering);
                    tokio::spawn(async move {
                        if let Ok(Err(error)) = timeout(TALK_TIME_MAX, answer(stream, &*answering)).await {
                            tracing::debug!("a question over the control socket broke off: {error}");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!("the control socket takes nobody: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // One that is gone already is as good.
        let _ = remove_socket(&self.path);
    }
}

fn remove_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        _ => Ok(()),
    }
}

async fn answer(mut stream: UnixStream, answering: &impl Answering) -> io::Result<()> {
    let command: Command = read_line(&mut stream).await?;
    write_line(&mut stream, &answering.answer(command)).await
}

async fn read_line<T: for<'de> Deserialize<'de>>(stream: &mut UnixStream) -> io::Result<T> {
    let mut line = Vec::new();
    BufReader::new(stream.take(LINE_MAX)).read_until(b'\n', &mut line).await?;
    serde_json::from_slice(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

async fn write_line(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Answering for Echo {
        fn answer(&self, command: Command) -> Reply {
            match command {
                Command::Cap { bytes } => {
                    Reply::Status(Box::new(Status { now_ms: bytes.unwrap_or(0), ..Status::default() }))
                }
                other => Reply::Error(format!("{other:?}")),
            }
        }
    }

    fn folder() -> (tempfile::TempDir, StateFolder) {
        let base = tempfile::tempdir().unwrap();
        let state = StateFolder::open(&base.path().join("s")).unwrap();
        (base, state)
    }

    #[tokio::test]
    async fn questions_are_answered_and_nonsense_harms_nobody() {
        let (_base, state) = folder();
        assert!(matches!(ask(&state, Command::Status).await, Err(ControlError::NotRunning(_))));
        let serving = tokio::spawn(Control::bind(&state).unwrap().serve(Arc::new(Echo)));
        for nonsense in [&b"\n"[..], b"{}\n", b"\xff\xfe\n", b"{\"do\":\"fly\"}\n", &[b'x'; 100_000]] {
            let mut stream = UnixStream::connect(state.socket_path()).await.unwrap();
            // It may be closed before all of it was taken.
            let _ = stream.write_all(nonsense).await;
            let mut rest = Vec::new();
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut rest).await;
            assert_eq!(rest, b"");
        }
        // Some that say nothing do not keep others from being answered.
        let mut silent = Vec::new();
        for _ in 0..TALKS_MAX / 2 {
            silent.push(UnixStream::connect(state.socket_path()).await.unwrap());
        }
        assert_eq!(ask(&state, Command::Cap { bytes: Some(7) }).await.unwrap().now_ms, 7);
        assert!(matches!(ask(&state, Command::Pause).await, Err(ControlError::Refused(_))));
        serving.abort();
        let _ = serving.await;
        assert!(!state.socket_path().exists(), "the socket goes with the provider");
    }

    #[tokio::test]
    async fn a_socket_that_was_left_behind_is_replaced_and_a_file_is_not() {
        let (_base, state) = folder();
        drop(std::os::unix::net::UnixListener::bind(state.socket_path()).unwrap());
        assert!(Control::bind(&state).is_ok());
        fs::write(state.socket_path(), "mine").unwrap();
        assert!(Control::bind(&state).is_err());
        assert_eq!(fs::read(state.socket_path()).unwrap(), b"mine");
    }
}
