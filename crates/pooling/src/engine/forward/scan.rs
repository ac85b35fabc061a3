//! How far the bytes of a client may go on to its server.

use super::translate::{Taken, Translator};
use crate::parameters::{Parameters, Tracked};
use crate::snapshot::PoolCounters;
use crate::watch::Watch;
use pgwire::frame;
use pgwire::replies::{Origin, ReplyQueue, SendError};

/// Sizes in bytes.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The longest message.
    pub(super) message: u32,
    /// Messages up to this are sent whole or not at all.
    pub(super) hold: usize,
    /// No simple queries.
    pub(super) extended_only: bool,
}

/// Sees what statements may leave in the session.
pub(super) struct Eye<'a> {
    pub(super) watch: &'a mut Watch,
    pub(super) parameters: &'a Parameters,
    /// What the server reports.
    pub(super) server: &'a Tracked,
}

impl Eye<'_> {
    /// A Query or Parse goes on; without its body if that is too long.
    #[inline]
    fn note(&mut self, tag: u8, body: Option<&[u8]>) {
        let Some(body) = body else { return self.watch.note_unread_text() };
        let text = if tag == b'P' {
            let mut fields = body.split(|&byte| byte == 0);
            fields.nth(1).unwrap_or_default()
        } else {
            body
        };
        let Self { watch, parameters, server } = self;
        watch.note_text(text, |name| {
            parameters.index_of(name).is_some_and(|index| server.value(index).is_some())
        });
    }
}

/// What has been found.
pub(super) struct Scanned {
    /// Bytes that go on.
    pub(super) end: usize,
    /// Bytes of a long message that are still to come.
    pub(super) streaming: u32,
    /// A Flush is among them.
    pub(super) flushes: bool,
    pub(super) stop: Stop,
}

/// What stopped the scan of a client's bytes.
pub(super) enum Stop {
    /// All is judged; what is behind `end` waits for its rest.
    Tail,
    /// The session ends here.
    Terminate,
    /// Not the protocol.
    Broken(String),
    /// A simple query where there may be none.
    SimpleQuery,
    /// It asks for more than the pooler keeps for a client.
    TooMuch(String),
    /// Too much in flight, or the next message depends on what that comes to.
    Full,
}

/// Notes each message that may go on in the queue of replies owed. The first `streaming` bytes are the rest of a long one.
#[inline]
pub(super) fn scan(
    bytes: &[u8],
    streaming: u32,
    limits: Limits,
    replies: &mut ReplyQueue,
    counters: &mut PoolCounters,
    mut translator: Option<&mut Translator<'_>>,
    mut eye: Option<Eye<'_>>,
) -> Scanned {
    let mut end = bytes.len().min(streaming as usize);
    let mut streaming = streaming - u32::try_from(end).unwrap_or(streaming);
    let mut flushes = false;
    let stop = loop {
        let rest = &bytes[end..];
        if rest.is_empty() {
            break Stop::Tail;
        }
        let head = match frame::head(rest, limits.message) {
            Err(error) => break Stop::Broken(error.to_string()),
            Ok(None) => break Stop::Tail,
            Ok(Some(head)) => head,
        };
        if head.tag == b'X' {
            break Stop::Terminate;
        }
        if head.tag == b'Q' && limits.extended_only {
            break Stop::SimpleQuery;
        }
        let whole = head.total <= rest.len();
        if !whole && head.total <= limits.hold {
            break Stop::Tail;
        }
        let taken = match &mut translator {
            Some(translator) => translator.take(head, end, replies, counters),
            None => pass(head.tag, replies, counters),
        };
        match taken {
            Taken::Noted => {}
            Taken::Incomplete => break Stop::Tail,
            Taken::Later => break Stop::Full,
            Taken::Broken(text) => break Stop::Broken(text),
            Taken::TooMuch(text) => break Stop::TooMuch(text),
        }
        if let Some(eye) = &mut eye {
            match head.tag {
                // A named one is looked at when it is bound.
                b'P' if translator.is_some() && rest.get(frame::HEADER_BYTES) != Some(&0) => {}
                b'Q' | b'P' => eye.note(head.tag, whole.then(|| &rest[frame::HEADER_BYTES..head.total])),
                b'B' => {
                    if let Some(text) = translator.as_mut().and_then(|translator| translator.marked.take()) {
                        eye.note(b'Q', Some(&text));
                    }
                }
                _ => {}
            }
        }
        flushes |= head.tag == b'H';
        if whole {
            end += head.total;
        } else {
            streaming = u32::try_from(head.total - rest.len()).unwrap_or(u32::MAX);
            end = bytes.len();
        }
    };
    Scanned { end, streaming, flushes, stop }
}

/// A message that goes on as it is.
#[inline]
fn pass(tag: u8, replies: &mut ReplyQueue, counters: &mut PoolCounters) -> Taken {
    match tag {
        b'P' => {
            counters.client_parse_count += 1;
            counters.server_parse_count += 1;
        }
        b'B' => counters.bind_count += 1,
        _ => {}
    }
    noted(replies.sent(tag, Origin::Client))
}

/// What a message that has been noted means for the scan.
#[inline]
pub(super) fn noted<T>(result: Result<T, SendError>) -> Taken {
    match result {
        Ok(_) => Taken::Noted,
        Err(SendError::Full) => Taken::Later,
        Err(unknown @ SendError::Unknown { .. }) => Taken::Broken(unknown.to_string()),
    }
}
