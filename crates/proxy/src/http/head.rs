//! The part of a message before its body: a first line and headers.

use thiserror::Error;

use crate::refusal::{Reason, Refusal};

/// The longest head that is read.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The most headers in one.
pub const MAX_HEADERS: usize = 128;

/// The version of a message. What is sent in another is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: a connection ends with its answer, unless both sides say otherwise.
    Http10,
    /// HTTP/1.1.
    Http11,
}

impl Version {
    /// As it stands in a first line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, HeadError> {
        match text {
            "HTTP/1.0" => Ok(Self::Http10),
            "HTTP/1.1" => Ok(Self::Http11),
            _ => Err(HeadError::Version),
        }
    }
}

/// Why a head cannot be read. The same bytes fail again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeadError {
    /// Too many bytes.
    #[error("the head is longer than {MAX_HEAD_BYTES} bytes")]
    TooLong,
    /// Too many headers.
    #[error("more than {MAX_HEADERS} headers")]
    TooManyHeaders,
    /// The first line is none.
    #[error("the first line is not one of HTTP/1")]
    FirstLine,
    /// Neither 1.0 nor 1.1.
    #[error("only HTTP/1.0 and HTTP/1.1 are spoken here")]
    Version,
    /// A header line that is none.
    #[error("a header line is malformed")]
    Header,
    /// Where the body ends is not clear.
    #[error("the length of the body is not clear")]
    Length,
    /// A transfer coding other than chunked.
    #[error("the only transfer coding that is understood is chunked")]
    TransferCoding,
}

impl From<HeadError> for Refusal {
    fn from(error: HeadError) -> Self {
        let reason = match error {
            HeadError::TooLong | HeadError::TooManyHeaders => Reason::TooLarge,
            _ => Reason::BadRequest,
        };
        Self::new(reason, error.to_string())
    }
}

/// A head, cut into lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<'bytes> {
    /// The first line.
    pub first_line: &'bytes str,
    /// Names and values, without the space around them.
    pub headers: Vec<(&'bytes str, &'bytes [u8])>,
}

impl<'bytes> Head<'bytes> {
    /// Reads a head from the start of `bytes`: `None` if it goes on, else it and its length.
    ///
    /// # Errors
    ///
    /// If it is none, or too long.
    pub fn parse(bytes: &'bytes [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let Some(length) = end(bytes) else {
            return if bytes.len() >= MAX_HEAD_BYTES { Err(HeadError::TooLong) } else { Ok(None) };
        };
        if length > MAX_HEAD_BYTES {
            return Err(HeadError::TooLong);
        }
        let mut lines = Lines(bytes.get(..length - 2).unwrap_or_default());
        let first_line = lines.next().ok_or(HeadError::FirstLine)?;
        let first_line = std::str::from_utf8(first_line).map_err(|_| HeadError::FirstLine)?;
        if first_line.is_empty() || first_line.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(HeadError::FirstLine);
        }
        let mut headers = Vec::new();
        for line in lines {
            if headers.len() == MAX_HEADERS {
                return Err(HeadError::TooManyHeaders);
            }
            headers.push(header(line)?);
        }
        Ok(Some((Self { first_line, headers }, length)))
    }

    /// The values of a header.
    pub fn values<'head>(&'head self, name: &'head str) -> impl Iterator<Item = &'bytes [u8]> + 'head {
        self.headers
            .iter()
            .filter(move |(named, _)| named.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// The words of a header that is a list separated by commas.
    pub fn words<'head>(&'head self, name: &'head str) -> impl Iterator<Item = &'bytes [u8]> + 'head {
        let words = self.values(name).flat_map(|value| value.split(|byte| *byte == b','));
        words.map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
    }

    /// Whether a list has a word, in any case.
    #[must_use]
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        self.words(name).any(|there| there.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// What `Content-Length` says. That it comes twice and says the same is an error too.
    pub(super) fn content_length(&self) -> Result<Option<u64>, HeadError> {
        let mut values = self.values("content-length");
        let Some(value) = values.next() else { return Ok(None) };
        let digits =
            std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        match (digits.and_then(|digits| digits.parse().ok()), values.next()) {
            (Some(length), None) => Ok(Some(length)),
            _ => Err(HeadError::Length),
        }
    }

    /// Whether the body is chunked. Any other coding is an error.
    pub(super) fn is_chunked(&self) -> Result<bool, HeadError> {
        let mut codings = self.words("transfer-encoding");
        match (codings.next(), codings.next()) {
            (None, _) => Ok(false),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(true),
            _ => Err(HeadError::TransferCoding),
        }
    }

    /// Whether a header is for the next hop only (RFC 9110 §7.6.1): by its nature, or because `Connection` names it.
    pub(super) fn is_hop_by_hop(&self, name: &str) -> bool {
        const ALWAYS: [&str; 8] = [
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "transfer-encoding",
            "upgrade",
        ];
        ALWAYS.iter().any(|always| name.eq_ignore_ascii_case(always)) || self.has_word("connection", name)
    }

    /// Adds the headers that go beyond this hop. Those that say where the body ends always do.
    pub(super) fn write_end_to_end(&self, out: &mut Vec<u8>, is_left_out: impl Fn(&str) -> bool) {
        for (name, value) in &self.headers {
            let length = name.eq_ignore_ascii_case("content-length");
            if !length && (self.is_hop_by_hop(name) || is_left_out(name)) {
                continue;
            }
            write_header(out, name, value);
        }
        if self.is_chunked() == Ok(true) {
            write_header(out, "Transfer-Encoding", b"chunked");
        }
    }
}

pub(super) fn write_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether this is a token (RFC 9110 §5.6.2).
pub(super) fn is_token(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(allowed)
}

/// Where the head ends, the empty line included.
fn end(bytes: &[u8]) -> Option<usize> {
    let searched = bytes.get(..bytes.len().min(MAX_HEAD_BYTES + 4)).unwrap_or_default();
    searched.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

fn header(line: &[u8]) -> Result<(&str, &[u8]), HeadError> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(HeadError::Header)?;
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    let is_text = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if !is_token(name) || !value.iter().all(is_text) {
        return Err(HeadError::Header);
    }
    Ok((std::str::from_utf8(name).map_err(|_| HeadError::Header)?, value))
}

/// Lines that end in CR LF.
struct Lines<'bytes>(&'bytes [u8]);

impl<'bytes> Iterator for Lines<'bytes> {
    type Item = &'bytes [u8];

    fn next(&mut self) -> Option<&'bytes [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let at = self.0.windows(2).position(|window| window == b"\r\n").unwrap_or(self.0.len());
        let line = self.0.get(..at)?;
        self.0 = self.0.get(at + 2..).unwrap_or_default();
        Some(line)
    }
}

#[cfg(test)]
mod tests;
