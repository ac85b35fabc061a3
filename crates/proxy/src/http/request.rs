//! A request to a proxy: CONNECT, or one in absolute form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use egress::Target;

use super::body::Body;
use super::head::{Head, HeadError, Version, is_token, write_header};
use crate::refusal::{Reason, Refusal};

/// A request that has been read.
#[derive(Clone, Debug)]
pub struct Request<'bytes> {
    /// The head.
    pub head: Head<'bytes>,
    /// The method.
    pub method: &'bytes str,
    /// The version.
    pub version: Version,
    /// Where the request's body ends.
    pub body: Body,
    target: &'bytes str,
}

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way<'bytes> {
    /// A tunnel.
    Tunnel(Target),
    /// An answer from this host, asked for `path`, by this authority.
    Forward {
        /// Where to.
        target: Target,
        /// As it stood in the request: the value of `Host`.
        authority: &'bytes str,
        /// What is asked for there.
        path: &'bytes str,
    },
}

impl<'bytes> Request<'bytes> {
    /// Reads a request's head from the start of `bytes`: `None` if it goes on, else it and its length.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn parse(bytes: &'bytes [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let Some((head, length)) = Head::parse(bytes)? else { return Ok(None) };
        let mut words = head.first_line.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(HeadError::FirstLine);
        };
        let version = Version::parse(version)?;
        if !is_token(method.as_bytes()) || target.is_empty() {
            return Err(HeadError::FirstLine);
        }
        let body = match (head.is_chunked()?, head.content_length()?) {
            // A length beside chunked, or chunked to somebody who cannot know it: two readers, two messages.
            (true, Some(_)) => return Err(HeadError::Length),
            (true, None) if version == Version::Http10 => return Err(HeadError::TransferCoding),
            (true, None) => Body::CHUNKED,
            (false, length) => Body::Length(length.unwrap_or(0)),
        };
        Ok(Some((Self { head, method, version, body, target }, length)))
    }

    /// Where it wants to go.
    ///
    /// # Errors
    ///
    /// If that cannot be read, or is nothing that a proxy does.
    pub fn way(&self) -> Result<Way<'bytes>, Refusal> {
        let bad = |cause: String| Refusal::new(Reason::BadRequest, cause);
        if self.method == "CONNECT" {
            let target = self.target.parse().map_err(|error| bad(format!("CONNECT: {error}")))?;
            return Ok(Way::Tunnel(target));
        }
        let Some((scheme, rest)) = self.target.split_once("://") else {
            return Err(bad("this is a proxy: it takes CONNECT, and requests for http://host/…".into()));
        };
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(bad("only http is forwarded; for anything else, CONNECT".into()));
        }
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') || path.contains('#') {
            return Err(bad("the address has a part that is never sent".into()));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let target = if has_port { authority.parse() } else { format!("{authority}:80").parse() };
        let target = target.map_err(|error| bad(format!("{error}")))?;
        Ok(Way::Forward { target, authority, path })
    }

    /// User name and password (RFC 7617), if they are there and can be read.
    #[must_use]
    pub fn login(&self) -> Option<(String, Vec<u8>)> {
        let value = self.head.values("proxy-authorization").next()?;
        let (scheme, encoded) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return None;
        }
        let decoded = STANDARD.decode(encoded.trim_ascii()).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let name = String::from_utf8(decoded.get(..colon)?.to_vec()).ok()?;
        Some((name, decoded.get(colon + 1..)?.to_vec()))
    }

    /// Whether the connection may carry another request behind this one's answer.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        let said =
            |word| self.head.has_word("connection", word) || self.head.has_word("proxy-connection", word);
        match self.version {
            Version::Http11 => !said("close"),
            Version::Http10 => said("keep-alive") && !said("close"),
        }
    }

    /// The request's head as the target sees it: in origin form, with the host of the address that was asked for, without
    /// what was meant for the proxy. The connection to the target carries nothing else.
    pub fn write_forwarded(&self, authority: &str, path: &str, out: &mut Vec<u8>) {
        let (slash, path) = match path {
            "" if self.method == "OPTIONS" => ("", "*"),
            path if path.starts_with('/') => ("", path),
            path => ("/", path),
        };
        for part in [self.method, " ", slash, path, " ", self.version.as_str(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        write_header(out, "Host", authority.as_bytes());
        self.head.write_end_to_end(out, |name| name.eq_ignore_ascii_case("host"));
        write_header(out, "Connection", b"close");
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests;
