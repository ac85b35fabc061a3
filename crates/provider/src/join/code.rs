//! Where the join code comes from: never from the command line, which every user of a machine can read.

use rustix::termios::{LocalModes, OptionalActions, isatty, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use trust::{JoinCode, ParseError};

/// The environment variable that may hold the code.
pub const CODE_VARIABLE: &str = "HOLDFAST_JOIN_CODE";
/// The longest line that is read, bytes.
const LINE_MAX: u64 = 256;

/// Where to look.
#[derive(Clone, Debug)]
pub enum CodeSource {
    /// The first line of a file.
    File(PathBuf),
    /// What the environment variable holds.
    Environment(String),
    /// A line of standard input; asked for without an echo if a person sits there.
    Input,
}

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// It cannot be read.
    #[error("the join code cannot be read from {from}: {error}")]
    Read {
        /// From where.
        from: String,
        /// Why not.
        error: io::Error,
    },
    /// It is none.
    #[error("{from} holds no join code: {error}")]
    Wrong {
        /// From where.
        from: String,
        /// What is wrong with it. It does not show the text.
        error: ParseError,
    },
}

/// Reads the code.
///
/// # Errors
///
/// It cannot be read, or is none.
pub fn read_code(source: CodeSource) -> Result<JoinCode, CodeError> {
    let (from, line) = match source {
        CodeSource::File(path) => (path.display().to_string(), first_line_of(&path)),
        CodeSource::Environment(text) => (CODE_VARIABLE.to_owned(), Ok(text)),
        CodeSource::Input => ("standard input".to_owned(), from_input()),
    };
    let line = line.map_err(|error| CodeError::Read { from: from.clone(), error })?;
    line.trim().parse().map_err(|error| CodeError::Wrong { from, error })
}

fn first_line_of(path: &Path) -> io::Result<String> {
    first_line(File::open(path)?)
}

fn first_line(from: impl Read) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(from.take(LINE_MAX)).read_line(&mut line)?;
    Ok(line)
}

fn from_input() -> io::Result<String> {
    let input = io::stdin();
    if !isatty(&input) {
        return first_line(input.lock());
    }
    let before = tcgetattr(&input)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &silent)?;
    let line = ask();
    tcsetattr(&input, OptionalActions::Flush, &before)?;
    line
}

fn ask() -> io::Result<String> {
    let mut out = io::stderr().lock();
    out.write_all(b"Join code: ")?;
    out.flush()?;
    let line = first_line(io::stdin().lock());
    out.write_all(b"\n")?;
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_from_a_file_or_the_environment_and_never_shown() {
        let code = JoinCode::generate().unwrap();
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("code");
        std::fs::write(&path, format!("  {}\nmore\n", code.reveal())).unwrap();
        assert!(read_code(CodeSource::File(path)).unwrap() == code);
        assert!(read_code(CodeSource::Environment(code.reveal())).unwrap() == code);
        let wrong = read_code(CodeSource::Environment("SECRET-but-wrong".to_owned())).unwrap_err();
        assert!(!format!("{wrong} {wrong:?}").contains("SECRET"), "{wrong}");
        assert!(read_code(CodeSource::File(base.path().join("none"))).is_err());
    }

    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        assert_eq!(first_line(io::repeat(b'x')).unwrap().len() as u64, LINE_MAX);
    }
}
