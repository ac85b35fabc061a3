//! What a connection that only listens hears: RESP3, as far as hints need it, with bounds on everything.
//!
//! The crate that carries the commands takes every `sunsubscribe` for the answer to what was sent last; a server sends one by
//! itself when a slot moves. So the listener reads for itself, and matches nothing to anything.

/// The most bytes of one frame. A hint has a hundred; the greatest thing heard is the greeting.
pub(crate) const MAX_FRAME_BYTES: usize = 64 * 1024;

/// Lists within lists.
const MAX_DEPTH: usize = 8;

/// One thing that the server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// By itself: the texts of the list; what is no text is empty.
    Push(Vec<Vec<u8>>),
    /// An error, as its text.
    Error(String),
    /// Anything else.
    Other,
}

/// Bytes that are no RESP3, or beyond the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's bytes are not RESP3, or exceed its bounds: {0}")]
pub(crate) struct Malformed(&'static str);

/// The first frame of `bytes` and its length; none if more has to come.
///
/// # Errors
/// More would not help.
pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    let item = match reader.item(0) {
        Ok(item) => item,
        Err(Stop::More) if bytes.len() >= MAX_FRAME_BYTES => return Err(Malformed("too long")),
        Err(Stop::More) => return Ok(None),
        Err(Stop::Malformed(error)) => return Err(error),
    };
    if reader.at > MAX_FRAME_BYTES {
        return Err(Malformed("too long"));
    }
    let frame = match item {
        Item::Error(text) => Frame::Error(String::from_utf8_lossy(text).into_owned()),
        Item::List { push: true, items } => Frame::Push(
            items
                .into_iter()
                .map(|item| if let Item::Text(text) = item { text.to_vec() } else { Vec::new() })
                .collect(),
        ),
        Item::Text(_) | Item::List { .. } | Item::Other => Frame::Other,
    };
    Ok(Some((frame, reader.at)))
}

enum Item<'b> {
    Text(&'b [u8]),
    Error(&'b [u8]),
    List { push: bool, items: Vec<Self> },
    Other,
}

enum Stop {
    More,
    Malformed(Malformed),
}

impl Stop {
    const fn malformed(why: &'static str) -> Self {
        Self::Malformed(Malformed(why))
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn item(&mut self, depth: usize) -> Result<Item<'b>, Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::malformed("too deep"));
        }
        let line = self.line()?;
        let (kind, rest) = line.split_first().ok_or(Stop::malformed("an empty line"))?;
        match kind {
            b'+' => Ok(Item::Text(rest)),
            b'-' => Ok(Item::Error(rest)),
            b':' | b',' | b'#' | b'(' | b'_' => Ok(Item::Other),
            b'$' | b'=' => Ok(self.blob(rest)?.map_or(Item::Other, Item::Text)),
            b'!' => Ok(self.blob(rest)?.map_or(Item::Other, Item::Error)),
            b'*' | b'~' => self.list(rest, 1, false, depth),
            b'>' => self.list(rest, 1, true, depth),
            b'%' => self.list(rest, 2, false, depth),
            b'|' => {
                // Stands before what it is about.
                self.list(rest, 2, false, depth)?;
                self.item(depth + 1)
            }
            _ => Err(Stop::malformed("an unknown kind")),
        }
    }

    /// Up to the end of the line, which is taken too.
    fn line(&mut self) -> Result<&'b [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let length = rest.windows(2).position(|pair| pair == b"\r\n").ok_or(Stop::More)?;
        self.at += length + 2;
        Ok(&rest[..length])
    }

    fn blob(&mut self, length: &[u8]) -> Result<Option<&'b [u8]>, Stop> {
        let Some(length) = number(length)? else { return Ok(None) };
        let rest = &self.bytes[self.at..];
        let (blob, end) = rest.split_at_checked(length).ok_or(Stop::More)?;
        match end.split_at_checked(2) {
            None => Err(Stop::More),
            Some((b"\r\n", _)) => {
                self.at += length + 2;
                Ok(Some(blob))
            }
            Some(_) => Err(Stop::malformed("a text that is longer than it says")),
        }
    }

    fn list(&mut self, length: &[u8], each: usize, push: bool, depth: usize) -> Result<Item<'b>, Stop> {
        let Some(length) = number(length)? else { return Ok(Item::Other) };
        // Grows with what is there, not with what is said to come.
        let mut items = Vec::new();
        for _ in 0..length * each {
            items.push(self.item(depth + 1)?);
        }
        Ok(Item::List { push, items })
    }
}

/// A length; none for that of nothing (-1).
fn number(text: &[u8]) -> Result<Option<usize>, Stop> {
    if text == b"-1" {
        return Ok(None);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<usize>().ok());
    match number {
        // At least three bytes each: more cannot be within the bound.
        Some(number) if number <= MAX_FRAME_BYTES => Ok(Some(number)),
        _ => Err(Stop::malformed("a length")),
    }
}

#[cfg(test)]
mod tests;
