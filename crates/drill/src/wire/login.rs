//! From a connected socket to the first ReadyForQuery.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::address::Address;
use super::connection::{CancelKey, Connection};
use super::error::{Error, ServerError};
use super::frame;
use super::message::{Body, Message};

/// Messages that a server may send before the first ReadyForQuery.
const MAX_LOGIN_MESSAGES: usize = 1000;

/// What is asked before the StartupMessage. A `N` is expected and the login goes on in clear text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Nothing.
    None,
    /// SSLRequest.
    Ssl,
    /// GSSENCRequest.
    Gss,
    /// GSSENCRequest, then SSLRequest, as libpq does.
    GssThenSsl,
}

/// How to connect and log in.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Where to.
    pub address: Address,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, for all methods that ask for one.
    pub password: Option<String>,
    /// Further startup parameters (`application_name`, `options`, …).
    pub parameters: Vec<(String, String)>,
    /// What is asked first.
    pub encryption: Encryption,
    /// Protocol version.
    pub version: (u16, u16),
    /// `SO_RCVBUF`, for clients that stop reading.
    pub receive_buffer_bytes: Option<u32>,
}

impl std::fmt::Debug for ConnectOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}@{}/{}", self.user, self.address, self.database)
    }
}

impl ConnectOptions {
    /// Protocol 3.0, no password, no encryption asked for.
    #[must_use]
    pub fn new(address: Address, user: &str, database: &str) -> Self {
        Self {
            address,
            user: user.to_owned(),
            database: database.to_owned(),
            password: None,
            parameters: Vec::new(),
            encryption: Encryption::None,
            version: (3, 0),
            receive_buffer_bytes: None,
        }
    }

    /// Sets the password.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds a startup parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets what is asked first.
    #[must_use]
    pub fn encryption(mut self, encryption: Encryption) -> Self {
        self.encryption = encryption;
        self
    }

    /// The StartupMessage.
    #[must_use]
    pub fn startup_frame(&self) -> Vec<u8> {
        let mut parameters = vec![("user", self.user.as_str()), ("database", self.database.as_str())];
        parameters.extend(self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        frame::startup(self.version, &parameters)
    }

    fn needed_password(&self) -> Result<&str, Error> {
        let missing = || Error::Protocol("the server asks for a password and none was given".to_owned());
        self.password.as_deref().ok_or_else(missing)
    }
}

/// Sends the StartupMessage and answers what the server asks, up to ReadyForQuery.
pub(super) async fn log_in(connection: &mut Connection, options: &ConnectOptions) -> Result<(), Error> {
    connection.send(&options.startup_frame()).await?;
    for _ in 0..MAX_LOGIN_MESSAGES {
        let message = connection.read_message().await?;
        match message.kind {
            b'R' => authenticate(connection, options, &message).await?,
            b'E' => return Err(Error::Server(Box::new(ServerError::parse(&message.body)))),
            b'K' => {
                let mut body = Body(&message.body);
                let process_id = body.i32().ok_or_else(|| unexpected(&message))?.cast_unsigned();
                connection.cancel_key = Some(CancelKey { process_id, secret: body.0.to_vec() });
            }
            b'Z' => return Ok(()),
            // ParameterStatus is kept by the connection itself; notices and NegotiateProtocolVersion may pass.
            b'S' | b'N' => {}
            b'v' => connection.negotiated = Some(message),
            _ => return Err(unexpected(&message)),
        }
    }
    Err(Error::Protocol(format!("no ReadyForQuery within {MAX_LOGIN_MESSAGES} messages")))
}

/// Answers one authentication request (AuthenticationOk needs none).
async fn authenticate(
    connection: &mut Connection,
    options: &ConnectOptions,
    request: &Message,
) -> Result<(), Error> {
    let mut body = Body(&request.body);
    match body.i32() {
        Some(0) => Ok(()),
        Some(3) => connection.send(&frame::password(options.needed_password()?)).await,
        Some(5) => {
            let salt = body.0.try_into().map_err(|_| unexpected(request))?;
            let hash = md5_hash(options.user.as_bytes(), options.needed_password()?.as_bytes(), salt);
            connection.send(&frame::password(&hash)).await
        }
        Some(10) => {
            if !body.0.split(|byte| *byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
                return Err(Error::Protocol("the server offers no SCRAM-SHA-256".to_owned()));
            }
            scram(connection, options.needed_password()?).await
        }
        _ => Err(Error::Protocol(format!("authentication request {request:?} is not supported here"))),
    }
}

/// The SASL exchange (RFC 5802), without channel binding.
async fn scram(connection: &mut Connection, password: &str) -> Result<(), Error> {
    let mut exchange = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    let first = exchange.message();
    let length = i32::try_from(first.len()).unwrap_or(i32::MAX).to_be_bytes();
    let body = [SCRAM_SHA_256.as_bytes(), &[0], &length, first].concat();
    connection.send(&frame::message(b'p', &body)).await?;
    exchange.update(&sasl_data(connection, 11).await?)?;
    connection.send(&frame::message(b'p', exchange.message())).await?;
    exchange.finish(&sasl_data(connection, 12).await?)?;
    Ok(())
}

async fn sasl_data(connection: &mut Connection, expected: i32) -> Result<Vec<u8>, Error> {
    let message = connection.read_message().await?;
    if message.kind == b'E' {
        return Err(Error::Server(Box::new(ServerError::parse(&message.body))));
    }
    let mut body = Body(&message.body);
    if message.kind == b'R' && body.i32() == Some(expected) {
        Ok(body.0.to_vec())
    } else {
        Err(unexpected(&message))
    }
}

fn unexpected(message: &Message) -> Error {
    Error::Protocol(format!("unexpected {message:?} during login"))
}
