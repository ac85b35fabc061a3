//! A client's connection.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::address::{Address, Stream};
use super::error::{Error, ServerError};
use super::frame;
use super::login::{self, ConnectOptions, Encryption};
use super::message::{Body, Message, TransactionStatus};
use super::reply::Reply;

/// Longest message that is read: more is a broken peer.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Most messages in one reply.
const MAX_REPLY_MESSAGES: usize = 10_000_000;

/// Bytes asked for in one read.
const READ_BYTES: usize = 16 << 10;

/// Rest between pieces in [`Connection::send_in_pieces`], so that they arrive as separate reads.
const PIECE_REST: Duration = Duration::from_millis(2);

/// What BackendKeyData gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelKey {
    /// Process id (a pooler's own number, behind a pooler).
    pub process_id: u32,
    /// Secret.
    pub secret: Vec<u8>,
}

/// Answer to SSLRequest or GSSENCRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// `S` or `G`: willing.
    Willing,
    /// `N`.
    Unwilling,
}

/// A connection. It reads only when asked to: a client that stops reading is one whose methods are not called.
/// Dropping it closes the socket without Terminate (FIN; RST if unread bytes are left).
#[derive(Debug)]
pub struct Connection {
    pub(super) address: Address,
    pub(super) stream: Stream,
    unread: Vec<u8>,
    pub(super) cancel_key: Option<CancelKey>,
    pub(super) negotiated: Option<Message>,
    parameters: BTreeMap<String, String>,
    status: Option<TransactionStatus>,
    pub(super) last_error: Option<ServerError>,
}

impl Connection {
    /// Connects the socket and sends nothing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn open(address: &Address, receive_buffer_bytes: Option<u32>) -> Result<Self, Error> {
        let stream = Stream::connect(address, receive_buffer_bytes).await?;
        Ok(Self {
            address: address.clone(),
            stream,
            unread: Vec::new(),
            cancel_key: None,
            negotiated: None,
            parameters: BTreeMap::new(),
            status: None,
            last_error: None,
        })
    }

    /// Connects and logs in.
    ///
    /// # Errors
    /// [`Error::Server`] for a refused login.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, Error> {
        let mut connection = Self::open(&options.address, options.receive_buffer_bytes).await?;
        let probes: &[fn() -> Vec<u8>] = match options.encryption {
            Encryption::None => &[],
            Encryption::Ssl => &[frame::ssl_request],
            Encryption::Gss => &[frame::gss_request],
            Encryption::GssThenSsl => &[frame::gss_request, frame::ssl_request],
        };
        for probe in probes {
            if connection.probe(&probe()).await? == ProbeAnswer::Willing {
                return Err(Error::Protocol(
                    "the other side is willing to encrypt; this client is not".to_owned(),
                ));
            }
        }
        login::log_in(&mut connection, options).await?;
        Ok(connection)
    }

    /// Sends SSLRequest or GSSENCRequest and reads the one byte of the answer.
    ///
    /// # Errors
    /// Another answer, or the end of the connection.
    pub async fn probe(&mut self, request: &[u8]) -> Result<ProbeAnswer, Error> {
        self.send(request).await?;
        while self.unread.is_empty() {
            self.fill().await?;
        }
        match self.unread.remove(0) {
            b'S' | b'G' => Ok(ProbeAnswer::Willing),
            b'N' => Ok(ProbeAnswer::Unwilling),
            other => Err(Error::Protocol(format!("answer {other:#04x} to an encryption request"))),
        }
    }

    /// Sends the StartupMessage of `options` on an open connection and logs in.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn log_in(&mut self, options: &ConnectOptions) -> Result<(), Error> {
        login::log_in(self, options).await
    }

    /// Sends any bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Sends bytes in pieces of the given sizes (the last size repeats), with a short rest between them, so that the
    /// other side sees them in separate reads.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn send_in_pieces(&mut self, bytes: &[u8], sizes: &[usize]) -> Result<(), Error> {
        let mut rest = bytes;
        let mut sizes = sizes.iter().copied().chain(std::iter::repeat(sizes.last().copied().unwrap_or(1)));
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(1).clamp(1, rest.len());
            let (piece, later) = rest.split_at(size);
            self.send(piece).await?;
            rest = later;
            if !rest.is_empty() {
                tokio::time::sleep(PIECE_REST).await;
            }
        }
        Ok(())
    }

    /// Reads one message. ParameterStatus, ReadyForQuery and errors are also remembered. Safe to drop half way
    /// (in a timeout): what was read stays.
    ///
    /// # Errors
    /// [`Error::Closed`] at the end of the connection; it names an error that came just before.
    pub async fn read_message(&mut self) -> Result<Message, Error> {
        let message = loop {
            if let Some(message) = self.take_message()? {
                break message;
            }
            self.fill().await?;
        };
        self.last_error = None;
        match message.kind {
            b'S' => {
                let mut body = Body(&message.body);
                if let (Some(name), Some(value)) = (body.text(), body.text()) {
                    self.parameters.insert(name, value);
                }
            }
            b'Z' => self.status = TransactionStatus::parse(&message.body),
            b'E' => self.last_error = Some(ServerError::parse(&message.body)),
            _ => {}
        }
        Ok(message)
    }

    /// Reads up to ReadyForQuery (or CopyInResponse, where the client has to go on). Errors are part of the reply.
    ///
    /// # Errors
    /// The connection ended or broke; a FATAL just before the end is in [`Error::Closed`].
    pub async fn read_reply(&mut self) -> Result<Reply, Error> {
        let mut reply = Reply::default();
        for _ in 0..MAX_REPLY_MESSAGES {
            let message = self.read_message().await?;
            if reply.take(&message)? {
                return Ok(reply);
            }
        }
        Err(Error::Protocol(format!("no ReadyForQuery within {MAX_REPLY_MESSAGES} messages")))
    }

    /// Runs SQL in the simple protocol.
    ///
    /// # Errors
    /// As [`Self::read_reply`].
    pub async fn query(&mut self, sql: &str) -> Result<Reply, Error> {
        self.send(&frame::query(sql)).await?;
        self.read_reply().await
    }

    /// Runs SQL in the extended protocol, with the unnamed statement.
    ///
    /// # Errors
    /// As [`Self::read_reply`].
    pub async fn extended_query(&mut self, sql: &str, parameters: &[Option<&str>]) -> Result<Reply, Error> {
        self.send(&frame::extended_query(sql, parameters)).await?;
        self.read_reply().await
    }

    /// `pg_backend_pid()`: the process that serves this client now.
    ///
    /// # Errors
    /// As [`Self::query`], and the server's error.
    pub async fn server_pid(&mut self) -> Result<u32, Error> {
        let reply = self.query("select pg_backend_pid()").await?.into_result()?;
        let pid = reply.value().and_then(|value| value.parse().ok());
        pid.ok_or_else(|| Error::Protocol("pg_backend_pid() is not a number".to_owned()))
    }

    /// The key of BackendKeyData, if one was given.
    #[must_use]
    pub fn cancel_key(&self) -> Option<&CancelKey> {
        self.cancel_key.as_ref()
    }

    /// NegotiateProtocolVersion, if the server sent one.
    #[must_use]
    pub fn negotiated(&self) -> Option<&Message> {
        self.negotiated.as_ref()
    }

    /// The last value of a reported parameter (ParameterStatus).
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// All reported parameters.
    #[must_use]
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// The state of the last ReadyForQuery.
    #[must_use]
    pub fn status(&self) -> Option<TransactionStatus> {
        self.status
    }

    /// The socket.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    fn take_message(&mut self) -> Result<Option<Message>, Error> {
        let Some((head, rest)) = self.unread.split_first_chunk::<5>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let length =
            usize::try_from(i32::from_be_bytes(length)).ok().and_then(|length| length.checked_sub(4));
        let Some(length) = length.filter(|length| *length <= MAX_MESSAGE_BYTES) else {
            return Err(Error::Protocol(format!(
                "message {:?} with a length out of bounds",
                char::from(kind)
            )));
        };
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = Message { kind, body: body.to_vec() };
        self.unread.drain(..5 + length);
        Ok(Some(message))
    }

    /// Reads what is there, at least one byte.
    pub(super) async fn fill(&mut self) -> Result<(), Error> {
        self.unread.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(Error::Closed { after: self.last_error.take().map(Box::new) }),
            _ => Ok(()),
        }
    }
}
