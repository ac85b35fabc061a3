//! Where a body ends. The bytes themselves are passed on as they are.

use thiserror::Error;

/// The longest line that begins a chunk, with its extensions.
pub const MAX_CHUNK_LINE_BYTES: u32 = 1_024;

/// The longest trailers of a chunked body.
pub const MAX_TRAILER_BYTES: u32 = 16 * 1024;

/// A chunked body that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The length of a chunk is no number, or too large.
    #[error("the length of a chunk is not clear")]
    ChunkLength,
    /// A chunk does not end where it says.
    #[error("a chunk does not end where it says")]
    ChunkEnd,
    /// A line is too long.
    #[error("a line of a chunked body is too long")]
    LineTooLong,
}

/// What is still to come of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many bytes; none: it is complete.
    Length(u64),
    /// Chunks.
    Chunked(Chunked),
    /// Everything until the connection ends.
    UntilClose,
}

/// Where in a chunked body (RFC 9112 §7.1) it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunked(At);

/// Where the next byte of a chunked body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the digits of a length; how many there were.
    Length { length: u64, digits: u32 },
    /// Behind them, up to the carriage return.
    Extension { length: u64, seen: u32 },
    /// At the line feed behind a length.
    LengthLineFeed { length: u64 },
    /// In a chunk.
    Data { left: u64 },
    /// At the carriage return behind a chunk.
    DataReturn,
    /// At the line feed behind a chunk.
    DataLineFeed,
    /// In the trailers: at the start of a line.
    LineStart { seen: u32 },
    /// In a line of the trailers.
    Line { seen: u32 },
    /// At the line feed behind a trailer.
    LineLineFeed { seen: u32 },
    /// At the last line feed.
    LastLineFeed,
    /// Behind the body.
    Done,
}

impl Body {
    /// A chunked body that begins.
    pub const CHUNKED: Self = Self::Chunked(Chunked(At::Length { length: 0, digits: 0 }));

    /// Whether it is complete. [`Self::UntilClose`] never is by its bytes.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunked(At::Done)))
    }

    /// How many of `bytes` belong to the body.
    ///
    /// # Errors
    ///
    /// If it is chunked and malformed.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, BodyError> {
        match self {
            Self::UntilClose => Ok(bytes.len()),
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                Ok(taken)
            }
            Self::Chunked(Chunked(at)) => at.take(bytes),
        }
    }
}

impl At {
    fn take(&mut self, bytes: &[u8]) -> Result<usize, BodyError> {
        let mut taken = 0;
        while let Some(&byte) = bytes.get(taken) {
            if *self == Self::Done {
                break;
            }
            if let Self::Data { left } = *self {
                let rest = (bytes.len() - taken) as u64;
                let part = left.min(rest);
                taken += usize::try_from(part).unwrap_or(usize::MAX);
                *self = if part == left { Self::DataReturn } else { Self::Data { left: left - part } };
                continue;
            }
            *self = self.after(byte)?;
            taken += 1;
        }
        Ok(taken)
    }

    fn after(self, byte: u8) -> Result<Self, BodyError> {
        Ok(match (self, byte) {
            (Self::Length { length, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                // The first four bits have to be free for the next digit.
                if length >> 60 != 0 || digits >= 16 {
                    return Err(BodyError::ChunkLength);
                }
                Self::Length { length: length << 4 | digit, digits: digits + 1 }
            }
            (Self::Length { digits: 0, .. }, _) => return Err(BodyError::ChunkLength),
            (Self::Length { length, .. } | Self::Extension { length, .. }, b'\r') => {
                Self::LengthLineFeed { length }
            }
            (Self::Length { length, .. }, b';' | b' ' | b'\t') => Self::Extension { length, seen: 1 },
            (Self::Length { .. }, _) => return Err(BodyError::ChunkLength),
            (Self::Extension { .. }, b'\n') => return Err(BodyError::ChunkLength),
            (Self::Extension { length, seen }, _) => {
                Self::Extension { length, seen: grown(seen, MAX_CHUNK_LINE_BYTES)? }
            }
            (Self::LengthLineFeed { length: 0 }, b'\n') => Self::LineStart { seen: 0 },
            (Self::LengthLineFeed { length }, b'\n') => Self::Data { left: length },
            (Self::DataReturn, b'\r') => Self::DataLineFeed,
            (Self::DataLineFeed, b'\n') => Self::Length { length: 0, digits: 0 },
            (Self::LineStart { .. }, b'\r') => Self::LastLineFeed,
            (Self::Line { seen }, b'\r') => Self::LineLineFeed { seen },
            (Self::LineStart { .. } | Self::Line { .. }, b'\n') => return Err(BodyError::ChunkEnd),
            (Self::LineStart { seen } | Self::Line { seen }, _) => {
                Self::Line { seen: grown(seen, MAX_TRAILER_BYTES)? }
            }
            (Self::LineLineFeed { seen }, b'\n') => Self::LineStart { seen },
            (Self::LastLineFeed, b'\n') => Self::Done,
            (Self::Data { .. } | Self::Done, _) => self,
            _ => return Err(BodyError::ChunkEnd),
        })
    }
}

fn grown(seen: u32, most: u32) -> Result<u32, BodyError> {
    if seen >= most { Err(BodyError::LineTooLong) } else { Ok(seen + 1) }
}

#[cfg(test)]
mod tests;
