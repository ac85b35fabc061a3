//! Frames that come (RFC 6455 §5.2), a part at a time.

use super::writer::{MASKED, apply_mask, frame};
use super::{End, opcode};

/// The longest header: two bytes, a length of eight, a mask of four.
const MAX_HEADER_BYTES: usize = 14;
/// The longest payload of a ping, a pong or a close (RFC 6455 §5.5).
const MAX_CONTROL_BYTES: usize = 125;
const RESERVED: u8 = 0x70;
const FINAL: u8 = 0x80;

/// What breaks RFC 6455, or is no part of this protocol: the connection is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// A bit that only an extension may set; none is agreed on.
    #[error("a WebSocket frame with an extension that was not agreed on")]
    Extension,
    /// A text message, or a kind that nobody knows.
    #[error("a WebSocket frame of the kind {0:#x}, where binary ones are spoken")]
    Kind(u8),
    /// A client must mask, a server must not.
    #[error("a WebSocket frame with a mask where there is to be none, or without one")]
    Mask,
    /// A control frame that is too long, or in parts.
    #[error("a WebSocket control frame that is too long or in parts")]
    Control,
    /// A length beyond 2^63.
    #[error("a WebSocket frame of an impossible length")]
    Length,
}

/// Where one end stands in what it receives.
#[derive(Debug)]
pub struct Reader {
    end: End,
    header: [u8; MAX_HEADER_BYTES],
    header_bytes: usize,
    /// Of the frame under way.
    opcode: u8,
    key: [u8; 4],
    offset: usize,
    left: u64,
    /// Of a control frame under way, which may be held for as long as it is short.
    control: [u8; MAX_CONTROL_BYTES],
    closed: bool,
}

impl Reader {
    /// For the end that `end` is.
    #[must_use]
    pub const fn new(end: End) -> Self {
        Self {
            end,
            header: [0; MAX_HEADER_BYTES],
            header_bytes: 0,
            opcode: opcode::CONTINUATION,
            key: [0; 4],
            offset: 0,
            left: 0,
            control: [0; MAX_CONTROL_BYTES],
            closed: false,
        }
    }

    /// The peer has said that nothing more comes; what came behind that is left out.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Leaves of what stands in `buffer` from `start` on, and has come from the peer, what was inside the messages. What the peer is
    /// owed for it, ready to be sent as it is, is added to `reply`.
    ///
    /// # Errors
    /// The peer breaks the protocol.
    pub fn read(&mut self, buffer: &mut Vec<u8>, start: usize, reply: &mut Vec<u8>) -> Result<(), BadFrame> {
        let (mut at, mut kept) = (start, start);
        while at < buffer.len() && !self.closed {
            if self.left == 0 {
                self.header[self.header_bytes] = buffer[at];
                self.header_bytes += 1;
                at += 1;
                self.begin(reply)?;
                continue;
            }
            let most = usize::try_from(self.left).unwrap_or(usize::MAX);
            let part = at..buffer.len().min(at.saturating_add(most));
            apply_mask(&mut buffer[part.clone()], self.key, self.offset);
            if self.opcode < opcode::CLOSE {
                buffer.copy_within(part.clone(), kept);
                kept += part.len();
            } else {
                self.control[self.offset..self.offset + part.len()].copy_from_slice(&buffer[part.clone()]);
            }
            self.offset += part.len();
            self.left -= part.len() as u64;
            at = part.end;
            if self.left == 0 {
                self.finish(reply);
            }
        }
        buffer.truncate(kept);
        Ok(())
    }

    /// Reads the header as far as it is there; if it is whole, the payload begins.
    fn begin(&mut self, reply: &mut Vec<u8>) -> Result<(), BadFrame> {
        let Some((&[first, second], rest)) = self.header[..self.header_bytes].split_first_chunk() else {
            return Ok(());
        };
        let opcode = first & 0xF;
        if first & RESERVED != 0 {
            return Err(BadFrame::Extension);
        }
        if !matches!(
            opcode,
            opcode::CONTINUATION | opcode::BINARY | opcode::CLOSE | opcode::PING | opcode::PONG
        ) {
            return Err(BadFrame::Kind(opcode));
        }
        if (second & MASKED != 0) != (self.end == End::Server) {
            return Err(BadFrame::Mask);
        }
        let length = second & !MASKED;
        if opcode >= opcode::CLOSE && (first & FINAL == 0 || usize::from(length) > MAX_CONTROL_BYTES) {
            return Err(BadFrame::Control);
        }
        let length_bytes = match length {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some((long, rest)) = rest.split_at_checked(length_bytes) else { return Ok(()) };
        let key = if self.end == End::Server {
            let Some(&key) = rest.first_chunk() else { return Ok(()) };
            key
        } else {
            [0; 4]
        };
        let long = long.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        self.left = if length_bytes == 0 { u64::from(length) } else { long };
        if self.left >> 63 != 0 {
            return Err(BadFrame::Length);
        }
        (self.opcode, self.key, self.offset, self.header_bytes) = (opcode, key, 0, 0);
        if self.left == 0 {
            self.finish(reply);
        }
        Ok(())
    }

    /// The payload has come whole.
    fn finish(&mut self, reply: &mut Vec<u8>) {
        match self.opcode {
            opcode::PING => frame(self.end, opcode::PONG, &self.control[..self.offset], reply),
            opcode::CLOSE => {
                self.closed = true;
                frame(self.end, opcode::CLOSE, &self.control[..self.offset.min(2)], reply);
            }
            _ => {}
        }
    }
}
