//! One message from the server.

/// A message as it came: its type byte and its body (without the length).
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// Type byte.
    pub kind: u8,
    /// Body.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}({:?})", char::from(self.kind), self.body.escape_ascii().to_string())
    }
}

/// The state in ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// `I`.
    Idle,
    /// `T`.
    InTransaction,
    /// `E`.
    Failed,
}

impl TransactionStatus {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        match body {
            b"I" => Some(Self::Idle),
            b"T" => Some(Self::InTransaction),
            b"E" => Some(Self::Failed),
            _ => None,
        }
    }
}

/// Takes fixed parts off the front of a body.
#[derive(Debug)]
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn u16(&mut self) -> Option<u16> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*bytes))
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_be_bytes(*bytes))
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Text up to a NUL.
    pub(super) fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = &self.0[end + 1..];
        Some(text)
    }
}
