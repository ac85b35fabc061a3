//! Parsers of message bodies. They borrow and allocate nothing.

use super::TransactionStatus;
use super::backend::authentication;
use crate::secret::{MAX_SECRET_KEY_BYTES, MIN_SECRET_KEY_BYTES};

/// A body that is not what its tag promises. The peer broke the protocol; the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {message} message: {reason}")]
pub struct MalformedMessage {
    /// The message's name in the manual.
    pub message: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// The Authentication message, from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// The login succeeded.
    Ok,
    /// The password itself is wanted.
    CleartextPassword,
    /// The answer salted with these bytes is wanted.
    Md5Password {
        /// Differs each time.
        salt: [u8; 4],
    },
    /// A SASL exchange is wanted.
    Sasl {
        /// The mechanisms offered, as sent; see [`sasl_mechanisms`].
        mechanisms: &'a [u8],
    },
    /// A challenge of the SASL mechanism.
    SaslContinue {
        /// The mechanism's own message.
        data: &'a [u8],
    },
    /// The last message of the SASL mechanism.
    SaslFinal {
        /// The mechanism's own message.
        data: &'a [u8],
    },
    /// A kind not spoken here (Kerberos, GSSAPI, SSPI).
    Other {
        /// The number on the wire.
        kind: u32,
    },
}

/// Reads an Authentication message.
///
/// # Errors
/// The body is too short or too long for its kind.
pub fn authentication(body: &[u8]) -> Result<Authentication<'_>, MalformedMessage> {
    let wrong = MalformedMessage { message: "Authentication", reason: "wrong length" };
    let (kind, data) = body.split_first_chunk::<4>().ok_or(wrong)?;
    Ok(match u32::from_be_bytes(*kind) {
        authentication::OK if data.is_empty() => Authentication::Ok,
        authentication::CLEARTEXT_PASSWORD if data.is_empty() => Authentication::CleartextPassword,
        authentication::OK | authentication::CLEARTEXT_PASSWORD => return Err(wrong),
        authentication::MD5_PASSWORD => {
            Authentication::Md5Password { salt: data.try_into().map_err(|_| wrong)? }
        }
        authentication::SASL => Authentication::Sasl { mechanisms: data },
        authentication::SASL_CONTINUE => Authentication::SaslContinue { data },
        authentication::SASL_FINAL => Authentication::SaslFinal { data },
        kind => Authentication::Other { kind },
    })
}

/// The mechanisms of AuthenticationSASL; ends at the empty name, or at the first that is cut off.
pub fn sasl_mechanisms(mechanisms: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = mechanisms;
    std::iter::from_fn(move || until_zero(&mut rest).filter(|name| !name.is_empty()))
}

/// Reads SASLInitialResponse: the mechanism, and its first message unless the client sent none.
///
/// # Errors
/// The mechanism has no end, or the length is not that of the data.
pub fn sasl_initial_response(body: &[u8]) -> Result<(&[u8], Option<&[u8]>), MalformedMessage> {
    let wrong = |reason| MalformedMessage { message: "SASLInitialResponse", reason };
    let mut rest = body;
    let mechanism = until_zero(&mut rest).ok_or_else(|| wrong("the mechanism has no end"))?;
    let (length, data) = rest.split_first_chunk::<4>().ok_or_else(|| wrong("no length"))?;
    match i32::from_be_bytes(*length) {
        -1 if data.is_empty() => Ok((mechanism, None)),
        length if usize::try_from(length) == Ok(data.len()) => Ok((mechanism, Some(data))),
        _ => Err(wrong("wrong length")),
    }
}

/// Reads PasswordMessage.
///
/// # Errors
/// The zero byte at the end is missing or is not the first.
pub fn password(body: &[u8]) -> Result<&[u8], MalformedMessage> {
    single_text("PasswordMessage", body)
}

/// Reads Query: the statements as they were sent.
///
/// # Errors
/// The zero byte at the end is missing or is not the first.
pub fn query(body: &[u8]) -> Result<&[u8], MalformedMessage> {
    single_text("Query", body)
}

/// Reads CommandComplete: the command tag.
///
/// # Errors
/// The zero byte at the end is missing or is not the first.
pub fn command_complete(body: &[u8]) -> Result<&[u8], MalformedMessage> {
    single_text("CommandComplete", body)
}

/// Reads ParameterStatus: name and value.
///
/// # Errors
/// The body is not two texts.
pub fn parameter_status(body: &[u8]) -> Result<(&[u8], &[u8]), MalformedMessage> {
    let wrong = MalformedMessage { message: "ParameterStatus", reason: "not a name and a value" };
    let mut rest = body;
    let name = until_zero(&mut rest).ok_or(wrong)?;
    let value = until_zero(&mut rest).ok_or(wrong)?;
    if rest.is_empty() { Ok((name, value)) } else { Err(wrong) }
}

/// Reads BackendKeyData: process id and secret, the latter 4 to 256 bytes.
///
/// # Errors
/// The body is shorter or longer.
pub fn backend_key_data(body: &[u8]) -> Result<(i32, &[u8]), MalformedMessage> {
    let wrong = MalformedMessage { message: "BackendKeyData", reason: "wrong length" };
    let (process_id, secret) = body.split_first_chunk::<4>().ok_or(wrong)?;
    if !(MIN_SECRET_KEY_BYTES..=MAX_SECRET_KEY_BYTES).contains(&secret.len()) {
        return Err(wrong);
    }
    Ok((i32::from_be_bytes(*process_id), secret))
}

/// Reads DataRow: values in the text format, none for NULL. A row that is cut short ends early.
pub fn data_row(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = behind;
            return Some(None);
        };
        let value = behind.get(..length)?;
        rest = &behind[length..];
        Some(Some(value))
    })
}

/// Reads ReadyForQuery.
///
/// # Errors
/// The body is not one byte, or one the protocol does not know.
pub fn ready_for_query(body: &[u8]) -> Result<TransactionStatus, MalformedMessage> {
    let wrong = |reason| MalformedMessage { message: "ReadyForQuery", reason };
    let &[status] = body else { return Err(wrong("wrong length")) };
    TransactionStatus::from_byte(status).ok_or_else(|| wrong("unknown transaction status"))
}

/// Reads NegotiateProtocolVersion: the newest minor version of the server, and the names it does not know.
///
/// # Errors
/// The body is too short, speaks of another major version, or its count is not that of the names.
pub fn negotiate_protocol_version(
    body: &[u8],
) -> Result<(u16, impl Iterator<Item = &[u8]>), MalformedMessage> {
    let wrong = |reason| MalformedMessage { message: "NegotiateProtocolVersion", reason };
    let (version, rest) = body.split_first_chunk::<4>().ok_or_else(|| wrong("no version"))?;
    let (count, names) = rest.split_first_chunk::<4>().ok_or_else(|| wrong("no count"))?;
    let version = u32::from_be_bytes(*version);
    // The manual says "minor version", PostgreSQL sends the whole; both are understood.
    if !matches!(version >> 16, 0 | 3) {
        return Err(wrong("another major version"));
    }
    let zeros = names.iter().filter(|byte| **byte == 0).count();
    let complete = names.last().is_none_or(|byte| *byte == 0);
    if !complete || u32::try_from(zeros) != Ok(u32::from_be_bytes(*count)) {
        return Err(wrong("wrong count of options"));
    }
    let mut rest = names;
    Ok(((version & 0xffff) as u16, std::iter::from_fn(move || until_zero(&mut rest))))
}

/// What a Parse names: the statement, and all that follows the name (the text and the types of its parameters).
///
/// # Errors
/// The name has no end in what is there of the body.
pub fn prepare(body: &[u8]) -> Result<(&[u8], &[u8]), MalformedMessage> {
    let wrong = MalformedMessage { message: "Parse", reason: "the name has no end" };
    let mut rest = body;
    let name = until_zero(&mut rest).ok_or(wrong)?;
    Ok((name, rest))
}

/// What a Bind names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal to be made.
    pub portal: &'a [u8],
    /// The statement to make it of.
    pub statement: &'a [u8],
    /// What is there of the rest: formats and parameters.
    pub rest: &'a [u8],
}

/// Reads Bind, or the start of one.
///
/// # Errors
/// The names have no end in what is there of the body.
pub fn bind(body: &[u8]) -> Result<Bind<'_>, MalformedMessage> {
    let wrong = MalformedMessage { message: "Bind", reason: "the names have no end" };
    let mut rest = body;
    let portal = until_zero(&mut rest).ok_or(wrong)?;
    let statement = until_zero(&mut rest).ok_or(wrong)?;
    Ok(Bind { portal, statement, rest })
}

/// What a Describe or Close means: `S` and the name of a statement, or `P` and that of a portal.
///
/// # Errors
/// There is no kind, or not one text behind it.
pub fn target(body: &[u8]) -> Result<(u8, &[u8]), MalformedMessage> {
    let wrong = MalformedMessage { message: "Describe or Close", reason: "not a kind and a name" };
    let (&kind, name) = body.split_first().ok_or(wrong)?;
    Ok((kind, single_text(wrong.message, name).map_err(|_| wrong)?))
}

fn single_text<'a>(message: &'static str, body: &'a [u8]) -> Result<&'a [u8], MalformedMessage> {
    let wrong = MalformedMessage { message, reason: "not one text ended by a zero byte" };
    let mut rest = body;
    let text = until_zero(&mut rest).ok_or(wrong)?;
    if rest.is_empty() { Ok(text) } else { Err(wrong) }
}

/// Takes a text and its closing zero byte off the front.
pub(super) fn until_zero<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (text, after) = rest.split_at(end);
    *rest = after.get(1..)?;
    Some(text)
}
