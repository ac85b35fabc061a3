//! Frames that are sent (RFC 6455 §5.2).

use super::{End, opcode};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};

/// Bytes of one message: a peer that puts messages together needs no more room.
const MESSAGE_BYTES: usize = 16 * 1024;
const FINAL: u8 = 0x80;
pub(super) const MASKED: u8 = 0x80;
/// The whole farewell: it gives the reason for no more than a normal end (RFC 6455 §7.4.1), since ours has been said before.
const NORMAL_END: [u8; 2] = 1_000_u16.to_be_bytes();

/// Adds `bytes`, as binary messages of a server.
pub fn wrap_plain(bytes: &[u8], out: &mut Vec<u8>) {
    wrap(End::Server, bytes, out);
}

/// Adds `bytes`, as binary messages of a client.
pub fn wrap_masked(bytes: &[u8], out: &mut Vec<u8>) {
    wrap(End::Client, bytes, out);
}

/// Adds what says that nothing more comes.
pub fn close(end: End, out: &mut Vec<u8>) {
    frame(end, opcode::CLOSE, &NORMAL_END, out);
}

fn wrap(end: End, bytes: &[u8], out: &mut Vec<u8>) {
    for message in bytes.chunks(MESSAGE_BYTES) {
        frame(end, opcode::BINARY, message, out);
    }
}

/// Adds a whole frame, whose payload has at most [`MESSAGE_BYTES`].
pub(super) fn frame(end: End, opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
    let masked = if end == End::Client { MASKED } else { 0 };
    out.push(FINAL | opcode);
    match u8::try_from(payload.len()) {
        Ok(length @ 0..126) => out.push(masked | length),
        _ => {
            out.push(masked | 126);
            out.extend_from_slice(&u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    if end == End::Server {
        return out.extend_from_slice(payload);
    }
    let mut key = [0; 4];
    // The mask hides nothing: it keeps what stands on the wire from being chosen by others, and TLS does that too. So one that
    // is not random, where the system has no randomness, does no harm.
    let _ = SystemRandom::new().fill(&mut key);
    out.extend_from_slice(&key);
    let start = out.len();
    out.extend_from_slice(payload);
    apply_mask(&mut out[start..], key, 0);
}

/// Masks, or unmasks, what stands `offset` bytes behind the start of a payload (RFC 6455 §5.3).
pub(super) fn apply_mask(bytes: &mut [u8], mut key: [u8; 4], offset: usize) {
    key.rotate_left(offset % 4);
    let word = u32::from_ne_bytes(key);
    let (words, rest) = bytes.as_chunks_mut::<4>();
    for bytes in words {
        *bytes = (u32::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key) {
        *byte ^= key;
    }
}
