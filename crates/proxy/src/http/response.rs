//! A target's answer, as it passes through.

use super::body::Body;
use super::head::{Head, HeadError, Version, write_header};

/// The head of an answer.
#[derive(Clone, Debug)]
pub struct Response<'bytes> {
    /// The head.
    pub head: Head<'bytes>,
    /// The version of whoever answers.
    pub version: Version,
    /// The status.
    pub status: u16,
}

/// How the connection to the customer goes on behind an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Another request may come.
    KeepAlive,
    /// It ends.
    Close,
}

impl<'bytes> Response<'bytes> {
    /// Reads an answer's head from the start of `bytes`: `None` if it goes on, else it and its length.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn parse(bytes: &'bytes [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let Some((head, length)) = Head::parse(bytes)? else { return Ok(None) };
        let (version, rest) = head.first_line.split_once(' ').ok_or(HeadError::FirstLine)?;
        let version = Version::parse(version)?;
        let digits = rest.get(..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let behind = rest.as_bytes().get(3);
        match (digits.and_then(|digits| digits.parse().ok()), behind) {
            (Some(status @ 100..600), None | Some(b' ')) => {
                Ok(Some((Self { head, version, status }, length)))
            }
            _ => Err(HeadError::FirstLine),
        }
    }

    /// Whether another answer to the same request follows.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Where its body ends (RFC 9112 §6.3).
    ///
    /// # Errors
    ///
    /// If that is not clear.
    pub fn body(&self, method: &str) -> Result<Body, HeadError> {
        if method == "HEAD" || self.is_interim() || matches!(self.status, 204 | 304) {
            return Ok(Body::Length(0));
        }
        match (self.head.is_chunked()?, self.head.content_length()?) {
            (true, Some(_)) => Err(HeadError::Length),
            (true, None) => Ok(Body::CHUNKED),
            (false, Some(length)) => Ok(Body::Length(length)),
            (false, None) => Ok(Body::UntilClose),
        }
    }

    /// The head as the customer sees it.
    pub fn write_forwarded(&self, behind: Behind, out: &mut Vec<u8>) {
        let rest = self.head.first_line.get(8..).unwrap_or_default();
        out.extend_from_slice(Version::Http11.as_str().as_bytes());
        out.extend_from_slice(rest.as_bytes());
        out.extend_from_slice(b"\r\n");
        self.head.write_end_to_end(out, |_| false);
        if !self.is_interim() {
            let connection: &[u8] = if behind == Behind::Close { b"close" } else { b"keep-alive" };
            write_header(out, "Connection", connection);
        }
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests;
