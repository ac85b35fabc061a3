//! Whole messages from a server that is logging in, in bounded memory.

use super::failure::Failure;
use super::stream::ServerStream;
use pgwire::connect::MAX_LOGIN_BODY_BYTES;
use pgwire::frame::{HEADER_BYTES, head};

/// Bytes of one read.
const CHUNK_BYTES: usize = 4096;
/// Greatest length word of a message: the body and itself.
const MAX_LENGTH: u32 = MAX_LOGIN_BODY_BYTES as u32 + 4;

/// What has come and has not been consumed.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    bytes: Vec<u8>,
    consumed: usize,
}

/// A message of the server.
#[derive(Debug)]
pub(super) struct Message {
    pub tag: u8,
    pub body: Vec<u8>,
}

impl Inbound {
    /// The next message.
    pub(super) async fn next(&mut self, stream: &mut ServerStream) -> Result<Message, Failure> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            self.bytes.drain(..self.consumed);
            self.consumed = 0;
            let mut chunk = [0; CHUNK_BYTES];
            let count = stream.read(&mut chunk).await.map_err(Failure::Lost)?;
            if count == 0 {
                return Err(Failure::Ended);
            }
            self.bytes.extend_from_slice(&chunk[..count]);
        }
    }

    /// What came behind the last message.
    pub(super) fn into_leftover(mut self) -> Vec<u8> {
        self.bytes.split_off(self.consumed)
    }

    fn take(&mut self) -> Result<Option<Message>, Failure> {
        let bytes = &self.bytes[self.consumed..];
        let Some(head) = head(bytes, MAX_LENGTH)? else { return Ok(None) };
        let Some(body) = bytes.get(HEADER_BYTES..head.total) else { return Ok(None) };
        let message = Message { tag: head.tag, body: body.to_vec() };
        self.consumed += head.total;
        Ok(Some(message))
    }
}
