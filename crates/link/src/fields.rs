//! Payloads that are fields: tag, length, value (§2).

use uuid::Uuid;

/// A payload that breaks the protocol. Whoever sent it is at fault; the connection is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A field's length reaches beyond the payload.
    #[error("a field is cut off")]
    CutOff,
    /// A field came twice that may come once.
    #[error("field {0} came twice")]
    Twice(u8),
    /// A field has a length or a value that it cannot have.
    #[error("field {0} has a value that it cannot have")]
    BadValue(u8),
    /// A field must be there and is not.
    #[error("field {0} is missing")]
    Missing(u8),
    /// The whole payload has a length that it cannot have.
    #[error("a payload of a length that it cannot have")]
    BadLength,
}

/// A field's tag and value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub tag: u8,
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    pub(crate) const fn bad(&self) -> Malformed {
        Malformed::BadValue(self.tag)
    }

    pub(crate) fn array<const N: usize>(&self) -> Result<[u8; N], Malformed> {
        self.value.try_into().map_err(|_| self.bad())
    }

    pub(crate) fn u8(&self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn uuid(&self) -> Result<Uuid, Malformed> {
        self.array().map(Uuid::from_bytes)
    }

    /// At most `most` bytes.
    pub(crate) fn bytes(&self, most: usize) -> Result<&'a [u8], Malformed> {
        if self.value.len() > most { Err(self.bad()) } else { Ok(self.value) }
    }

    /// At most `most` bytes of UTF-8 without control characters.
    pub(crate) fn text(&self, most: usize) -> Result<&'a str, Malformed> {
        let text = std::str::from_utf8(self.bytes(most)?).map_err(|_| self.bad())?;
        if text.chars().any(char::is_control) { Err(self.bad()) } else { Ok(text) }
    }
}

/// Walks through a payload. Each tag but `repeated` may come once.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    seen: [bool; 256],
    repeated: Option<u8>,
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, seen: [false; 256], repeated: None }
    }

    pub(crate) const fn with_repeated(payload: &'a [u8], tag: u8) -> Self {
        Self { rest: payload, seen: [false; 256], repeated: Some(tag) }
    }

    fn read(&mut self) -> Result<Field<'a>, Malformed> {
        let (&[tag, high, low], rest) = self.rest.split_first_chunk::<3>().ok_or(Malformed::CutOff)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (value, rest) = rest.split_at_checked(length).ok_or(Malformed::CutOff)?;
        self.rest = rest;
        if std::mem::replace(&mut self.seen[usize::from(tag)], true) && self.repeated != Some(tag) {
            return Err(Malformed::Twice(tag));
        }
        Ok(Field { tag, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

/// Adds a field. A value longer than 65,535 bytes would not fit; no caller has one.
pub(crate) fn put(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    out.push(tag);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&value[..usize::from(length)]);
}

/// The longest start of `text` that has at most `most` bytes and ends between two characters.
pub(crate) fn shorten(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
