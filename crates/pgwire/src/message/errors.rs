//! ErrorResponse and NoticeResponse.

use super::parse::until_zero;
use super::{framed, put_text, tag};

/// Most bytes kept of one field of an error that is read; longer ones are cut.
pub const MAX_ERROR_FIELD_BYTES: usize = 64 * 1024;

/// How grave an error or notice is, as the wire spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The statement failed; the session goes on.
    Error,
    /// The session is over.
    Fatal,
    /// The server is in trouble.
    Panic,
    /// A notice: something may be wrong.
    Warning,
    /// A notice for the user.
    Notice,
}

impl Severity {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Panic => "PANIC",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
        }
    }
}

/// What is kept of an ErrorResponse or NoticeResponse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorFields {
    /// `ERROR`, `FATAL`, … not translated where the server says so (since PostgreSQL 9.6).
    pub severity: String,
    /// The SQLSTATE, five characters.
    pub code: String,
    /// The main text.
    pub message: String,
    /// More about what happened.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ErrorFields {
    /// Fields for a message of our own.
    #[must_use]
    pub fn new(severity: Severity, sqlstate: &str, message: impl Into<String>) -> Self {
        Self {
            severity: severity.as_str().to_owned(),
            code: sqlstate.to_owned(),
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// Reads a body. What is missing stays empty, since an error stays one however badly it is put;
    /// bytes that are not UTF-8 are replaced, and a field longer than [`MAX_ERROR_FIELD_BYTES`] is cut.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        let mut fields = Self::default();
        let mut localized_severity = String::new();
        for (code, value) in error_fields(body) {
            let value = value.get(..MAX_ERROR_FIELD_BYTES).unwrap_or(value);
            let text = || String::from_utf8_lossy(value).into_owned();
            match code {
                b'S' => localized_severity = text(),
                b'V' => fields.severity = text(),
                b'C' => fields.code = text(),
                b'M' => fields.message = text(),
                b'D' => fields.detail = Some(text()),
                b'H' => fields.hint = Some(text()),
                _ => (),
            }
        }
        if fields.severity.is_empty() {
            fields.severity = localized_severity;
        }
        fields
    }

    /// Appends an ErrorResponse.
    pub fn write_error(&self, out: &mut Vec<u8>) {
        self.write(out, tag::ERROR_RESPONSE);
    }

    /// Appends a NoticeResponse.
    pub fn write_notice(&self, out: &mut Vec<u8>) {
        self.write(out, tag::NOTICE_RESPONSE);
    }

    fn write(&self, out: &mut Vec<u8>, tag: u8) {
        let (detail, hint) = (self.detail.as_deref(), self.hint.as_deref());
        write_fields(out, tag, &self.severity, &self.code, &self.message, detail, hint);
    }
}

/// Severity, SQLSTATE and text, as psql shows them.
impl std::fmt::Display for ErrorFields {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}: {}", self.severity, self.code, self.message)
    }
}

/// One ErrorResponse.
#[must_use]
pub fn error_response(
    severity: Severity,
    sqlstate: &str,
    message: &str,
    detail: Option<&str>,
    hint: Option<&str>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + message.len());
    write_fields(&mut out, tag::ERROR_RESPONSE, severity.as_str(), sqlstate, message, detail, hint);
    out
}

/// The fields of an ErrorResponse or NoticeResponse: code and value as sent, up to the first that is cut off.
pub fn error_fields(body: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let (&code, after) = rest.split_first().filter(|(code, _)| **code != 0)?;
        rest = after;
        Some((code, until_zero(&mut rest)?))
    })
}

fn write_fields(
    out: &mut Vec<u8>,
    tag: u8,
    severity: &str,
    sqlstate: &str,
    message: &str,
    detail: Option<&str>,
    hint: Option<&str>,
) {
    let fields = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(sqlstate)),
        (b'M', Some(message)),
        (b'D', detail),
        (b'H', hint),
    ];
    framed(out, tag, |out| {
        for (code, value) in fields {
            if let Some(value) = value {
                out.push(code);
                put_text(out, value);
            }
        }
        out.push(0);
    });
}
