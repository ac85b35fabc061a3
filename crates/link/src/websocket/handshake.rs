//! How a connection of HTTP becomes a WebSocket (RFC 6455 §4).

use super::{PATH, PROTOCOL};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Header, Request, Response, Status};

/// The longest request or answer.
pub const MAX_HEAD_BYTES: usize = 8 * 1024;
const MAX_HEADERS: usize = 64;
const KEY_BYTES: usize = 16;
const MAGIC: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why no WebSocket is granted; it is the fault of whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no HTTP/1.1, or what RFC 6455 demands is not there.
    #[error("400 Bad Request")]
    Malformed,
    /// Nothing is at this path.
    #[error("404 Not Found")]
    Path,
    /// Only a WebSocket of this protocol is here.
    #[error("426 Upgrade Required")]
    NoUpgrade,
    /// Longer than [`MAX_HEAD_BYTES`], or of too many headers.
    #[error("431 Request Header Fields Too Large")]
    TooLong,
}

impl Refusal {
    /// Adds the answer that says so; the connection ends behind it.
    pub fn write(self, out: &mut Vec<u8>) {
        let upgrade = match self {
            Self::NoUpgrade => "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            _ => "",
        };
        let body = "This is a relay of a holdfast network.\n";
        out.extend_from_slice(
            format!(
                "HTTP/1.1 {self}\r\n{upgrade}Connection: close\r\nContent-Type: text/plain\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        );
    }
}

/// Reads a client's request at the start of `bytes`: how long it is, once it is there whole. The answer that grants it is added to `out`.
///
/// # Errors
/// It is not granted.
pub fn accept(bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, Refusal> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    let parsed = request.parse(&bytes[..bytes.len().min(MAX_HEAD_BYTES)]);
    let length = match parsed {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() >= MAX_HEAD_BYTES => return Err(Refusal::TooLong),
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
        Err(_) => return Err(Refusal::Malformed),
    };
    if request.path != Some(PATH) {
        return Err(Refusal::Path);
    }
    if request.method != Some("GET") || request.version != Some(1) {
        return Err(Refusal::Malformed);
    }
    let headers = request.headers;
    let upgrades = lists(headers, "upgrade", "websocket") && lists(headers, "connection", "upgrade");
    if !upgrades || one(headers, "sec-websocket-version") != Some(b"13") {
        return Err(Refusal::NoUpgrade);
    }
    if !lists(headers, "sec-websocket-protocol", PROTOCOL) {
        return Err(Refusal::NoUpgrade);
    }
    let key = one(headers, "sec-websocket-key").ok_or(Refusal::Malformed)?;
    if one(headers, "host").is_none() || !STANDARD.decode(key).is_ok_and(|key| key.len() == KEY_BYTES) {
        return Err(Refusal::Malformed);
    }
    out.extend_from_slice(
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n",
            answer(key)
        )
        .as_bytes(),
    );
    Ok(Some(length))
}

/// Why no WebSocket came of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// Something answered that is no relay, or will not have it.
    #[error("HTTP status {0} instead of a WebSocket")]
    Status(u16),
    /// The answer is no answer to this request.
    #[error("an answer that is none of a WebSocket's")]
    Malformed,
}

/// A request that was made, and waits for its answer.
#[derive(Debug)]
pub struct Handshake {
    pub(super) key: String,
}

impl Handshake {
    /// Asks `host` (`host:port`) for a WebSocket; the request is added to `out`.
    #[must_use]
    pub fn begin(host: &str, out: &mut Vec<u8>) -> Self {
        let mut key = [0; KEY_BYTES];
        // It only tells this request from others.
        let _ = SystemRandom::new().fill(&mut key);
        let key = STANDARD.encode(key);
        out.extend_from_slice(
            format!(
                "GET {PATH} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\
                 Sec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
            )
            .as_bytes(),
        );
        Self { key }
    }

    /// Reads the answer at the start of `bytes`: how long it is, once it is there whole.
    ///
    /// # Errors
    /// There is to be no WebSocket.
    pub fn finish(&self, bytes: &[u8]) -> Result<Option<usize>, BadAnswer> {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let Some((length, status, headers)) = head(bytes, &mut headers)? else { return Ok(None) };
        if status != 101 {
            return Err(BadAnswer::Status(status));
        }
        let granted = lists(headers, "upgrade", "websocket")
            && lists(headers, "connection", "upgrade")
            && one(headers, "sec-websocket-accept") == Some(answer(self.key.as_bytes()).as_bytes())
            && one(headers, "sec-websocket-protocol") == Some(PROTOCOL.as_bytes())
            && one(headers, "sec-websocket-extensions").is_none();
        if granted { Ok(Some(length)) } else { Err(BadAnswer::Malformed) }
    }
}

/// The status of the answer at the start of `bytes` and its length, once its head is there whole: for whoever asks a proxy to connect.
///
/// # Errors
/// It is no answer of HTTP, or too long.
pub fn status(bytes: &[u8]) -> Result<Option<(u16, usize)>, BadAnswer> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    Ok(head(bytes, &mut headers)?.map(|(length, status, _)| (status, length)))
}

type Head<'h, 'b> = (usize, u16, &'h [Header<'b>]);

fn head<'h, 'b>(bytes: &'b [u8], headers: &'h mut [Header<'b>]) -> Result<Option<Head<'h, 'b>>, BadAnswer> {
    let mut response = Response::new(headers);
    match response.parse(&bytes[..bytes.len().min(MAX_HEAD_BYTES)]) {
        Ok(Status::Complete(length)) => {
            Ok(Some((length, response.code.ok_or(BadAnswer::Malformed)?, response.headers)))
        }
        Ok(Status::Partial) if bytes.len() < MAX_HEAD_BYTES => Ok(None),
        _ => Err(BadAnswer::Malformed),
    }
}

/// What proves that the request was understood (RFC 6455 §4.2.2).
fn answer(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, MAGIC].concat()))
}

/// One of the headers of this name lists `token`, whatever the case.
fn lists(headers: &[Header<'_>], name: &str, token: &str) -> bool {
    let named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    named
        .flat_map(|header| header.value.split(|&byte| byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// The value of a header that is there exactly once.
fn one<'b>(headers: &[Header<'b>], name: &str) -> Option<&'b [u8]> {
    let mut named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let first = named.next()?;
    named.next().is_none().then(|| first.value.trim_ascii())
}
