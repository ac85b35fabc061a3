//! Whole messages from a client, within bounds of bytes and time.

use pgwire::frame::{self, FrameError, HEADER_BYTES};
use pgwire::message::{Severity, error_response, parse, tag};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Greatest length of a message. The longest command is a line.
pub const MAX_MESSAGE_BYTES: u32 = 16 * 1024;

/// Longest time for the rest of a message once it has begun.
const MESSAGE_LIMIT: Duration = Duration::from_secs(30);

const CHUNK_BYTES: usize = 4096;

/// What a client sent, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Statements.
    Query(String),
    /// A message of the extended protocol.
    Extended,
    /// FunctionCall, which has a cycle of its own.
    FunctionCall,
    /// The end of a batch of the extended protocol.
    Sync,
    /// Flush, and stray messages of COPY, to be ignored as PostgreSQL does.
    Ignored,
    /// The client leaves.
    Terminate,
}

/// Why no more messages come. The session is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Malformed(#[from] parse::MalformedMessage),
    #[error("the query is not valid UTF-8")]
    Encoding,
    #[error("the rest of a message did not come within {} s", MESSAGE_LIMIT.as_secs())]
    TooSlow,
    #[error("unsupported packet type for admin console: {}", .0.escape_ascii())]
    Unknown(u8),
}

impl InputError {
    /// The last words to the client, if it may still hear them.
    pub(super) fn for_client(&self) -> Option<Vec<u8>> {
        let sqlstate = match self {
            Self::Io(_) => return None,
            Self::Encoding => "22021",
            Self::Frame(FrameError::TooLong { .. }) => "54000",
            Self::Frame(FrameError::TooShort { .. })
            | Self::Malformed(_)
            | Self::TooSlow
            | Self::Unknown(_) => "08P01",
        };
        Some(error_response(Severity::Fatal, sqlstate, &self.to_string(), None, None))
    }
}

/// Reads messages; holds at most one message and a chunk.
#[derive(Debug)]
pub(super) struct Input<R> {
    reader: R,
    bytes: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Input<R> {
    /// `pending` has been read already.
    pub(super) const fn new(reader: R, pending: Vec<u8>) -> Self {
        Self { reader, bytes: pending }
    }

    /// The next message; the end of the stream is [`Message::Terminate`].
    pub(super) async fn next(&mut self) -> Result<Message, InputError> {
        if self.bytes.is_empty() && !self.read().await? {
            return Ok(Message::Terminate);
        }
        tokio::time::timeout(MESSAGE_LIMIT, self.rest()).await.map_err(|_| InputError::TooSlow)?
    }

    async fn rest(&mut self) -> Result<Message, InputError> {
        loop {
            if let Some(head) = frame::head(&self.bytes, MAX_MESSAGE_BYTES)?
                && self.bytes.len() >= head.total
            {
                let message = read_message(head.tag, &self.bytes[HEADER_BYTES..head.total]);
                self.bytes.drain(..head.total);
                return message;
            }
            if !self.read().await? {
                return Ok(Message::Terminate);
            }
        }
    }

    /// False at the end of the stream.
    async fn read(&mut self) -> io::Result<bool> {
        let mut chunk = [0; CHUNK_BYTES];
        let count = self.reader.read(&mut chunk).await?;
        self.bytes.extend_from_slice(&chunk[..count]);
        Ok(count > 0)
    }
}

fn read_message(tag: u8, body: &[u8]) -> Result<Message, InputError> {
    Ok(match tag {
        tag::QUERY => {
            let text = std::str::from_utf8(parse::query(body)?).map_err(|_| InputError::Encoding)?;
            Message::Query(text.to_owned())
        }
        tag::TERMINATE => Message::Terminate,
        tag::SYNC => Message::Sync,
        // Parse, Bind, Describe, Execute, Close.
        b'P' | b'B' | b'D' | b'E' | b'C' => Message::Extended,
        b'F' => Message::FunctionCall,
        // Flush, CopyData, CopyDone, CopyFail.
        b'H' | b'd' | b'c' | b'f' => Message::Ignored,
        unknown => return Err(InputError::Unknown(unknown)),
    })
}
