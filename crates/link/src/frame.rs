//! Where a frame begins and ends (§2).

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 8;
/// The longest payload; with its header it fills one TLS record.
pub const MAX_PAYLOAD_BYTES: usize = 16_376;
/// The longest frame.
pub const MAX_FRAME_BYTES: usize = HEADER_BYTES + MAX_PAYLOAD_BYTES;

/// Types from here up may be skipped by who does not know them.
const OPTIONAL: u8 = 0x80;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $value:literal),* $(,)?) => {
        /// What a frame is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name = $value),* }

        impl Kind {
            /// Every kind there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            const fn from_byte(byte: u8) -> Option<Self> {
                match byte { $($value => Some(Self::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A client says who it is.
    Hello = 0x01,
    /// The relay takes it in.
    Welcome = 0x02,
    /// A connection or an open is refused.
    Refuse = 0x03,
    /// Are you there?
    Ping = 0x04,
    /// Yes.
    Pong = 0x05,
    /// Go to another relay, within a time.
    Drain = 0x06,
    /// The contract that later opens name.
    Contract = 0x07,
    /// Open a stream.
    Open = 0x10,
    /// The provider has read the open.
    Opened = 0x11,
    /// One sealed message.
    Data = 0x12,
    /// So much more may be sent.
    Credit = 0x13,
    /// Nothing more will be sent.
    Fin = 0x14,
    /// The stream is over.
    Reset = 0x15,
    /// The provider is at another relay.
    Moved = 0x16,
    /// A relay says to another who it is.
    Peer = 0x20,
    /// The other takes it in.
    Peered = 0x21,
    /// Which providers a relay has.
    Presence = 0x22,
    /// How a relay stands.
    Standing = 0x23,
}

/// The first eight bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the payload, at most [`MAX_PAYLOAD_BYTES`].
    pub length: usize,
    /// What it is; `None` for an unknown kind that is to be skipped.
    pub kind: Option<Kind>,
    /// The stream; 0 is the connection.
    pub stream: u32,
}

/// A header that breaks §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// Longer than any frame.
    #[error("a frame's payload of {0} bytes is longer than {MAX_PAYLOAD_BYTES}")]
    TooLong(usize),
    /// A kind that may not be skipped.
    #[error("unknown frame type {0:#04x}")]
    UnknownKind(u8),
}

impl Header {
    /// Reads one; `None` if `bytes` holds less than a header.
    ///
    /// # Errors
    /// The peer breaks the protocol: the connection is to be ended.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BadHeader> {
        let Some(&[high, low, kind, _flags, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > MAX_PAYLOAD_BYTES {
            return Err(BadHeader::TooLong(length));
        }
        let known = Kind::from_byte(kind);
        if known.is_none() && kind < OPTIONAL {
            return Err(BadHeader::UnknownKind(kind));
        }
        Ok(Some(Self { length, kind: known, stream: u32::from_be_bytes([a, b, c, d]) }))
    }
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its header.
    pub header: Header,
    /// What follows the header.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The first frame of `bytes`; `None` if it is not there whole.
    ///
    /// # Errors
    /// The peer breaks the protocol: the connection is to be ended.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, BadHeader> {
        let Some(header) = Header::parse(bytes)? else { return Ok(None) };
        let payload = bytes.get(HEADER_BYTES..HEADER_BYTES + header.length);
        Ok(payload.map(|payload| Self { header, payload }))
    }

    /// Bytes of header and payload.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }
}

/// Adds a frame to `out`, whose payload is what `payload` adds: at most [`MAX_PAYLOAD_BYTES`], which is the caller's to see to.
pub fn write_frame(out: &mut Vec<u8>, kind: Kind, stream: u32, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let [a, b, c, d] = stream.to_be_bytes();
    out.extend_from_slice(&[0, 0, kind as u8, 0, a, b, c, d]);
    payload(out);
    let length = out.len() - start - HEADER_BYTES;
    debug_assert!(length <= MAX_PAYLOAD_BYTES, "a frame of {length} bytes");
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    out[start] = high;
    out[start + 1] = low;
}

#[cfg(test)]
mod tests;
