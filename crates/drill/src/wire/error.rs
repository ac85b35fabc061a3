//! What can go wrong on the client's side.

use std::fmt;
use std::io;

/// The fields of an ErrorResponse or NoticeResponse that tests ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, … (field `V`, else `S`).
    pub severity: String,
    /// SQLSTATE (field `C`).
    pub code: String,
    /// Field `M`.
    pub message: String,
    /// Field `D`, empty if absent.
    pub detail: String,
    /// Field `H`, empty if absent.
    pub hint: String,
    /// All fields as sent: letter and text.
    pub fields: Vec<(char, String)>,
}

impl ServerError {
    /// Whether the session ends with it.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// Reads the body of an ErrorResponse: (letter, text, NUL)*, NUL.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        let mut localized = String::new();
        for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
            let letter = char::from(field[0]);
            let text = String::from_utf8_lossy(&field[1..]).into_owned();
            match letter {
                'S' => localized.clone_from(&text),
                'V' => error.severity.clone_from(&text),
                'C' => error.code.clone_from(&text),
                'M' => error.message.clone_from(&text),
                'D' => error.detail.clone_from(&text),
                'H' => error.hint.clone_from(&text),
                _ => {}
            }
            error.fields.push((letter, text));
        }
        if error.severity.is_empty() {
            error.severity = localized;
        }
        error
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.severity, self.code, self.message)
    }
}

/// Why the client stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other side said so.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The other side ended the connection. `after` holds an error that it sent just before, if it did.
    #[error("the other side closed the connection{}", .after.as_ref().map(|error| format!(" after {error}")).unwrap_or_default())]
    Closed {
        /// The error sent before.
        after: Option<Box<ServerError>>,
    },
    /// The socket failed; a reset shows as [`io::ErrorKind::ConnectionReset`].
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side broke the protocol, or asks for something that this client lacks.
    #[error("protocol: {0}")]
    Protocol(String),
}

impl Error {
    /// The server's error, whether it stands alone or came before a close.
    #[must_use]
    pub fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            Self::Closed { after } => after.as_deref(),
            Self::Io(_) | Self::Protocol(_) => None,
        }
    }

    /// Whether the connection ended, by FIN or reset.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Closed { .. } => true,
            Self::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
            ),
            Self::Server(_) | Self::Protocol(_) => false,
        }
    }
}
