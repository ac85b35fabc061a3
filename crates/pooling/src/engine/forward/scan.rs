//! How far the bytes of a client may go on to its server.

use super::translate::{Taken, Translator};
use crate::parameters::{Parameters, Tracked};
use crate::snapshot::PoolCounters;
use crate::statements::text_of;
use crate::watch::Watch;
use pgwire::frame;
use pgwire::message::parse;
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
    /// A text goes on; none if it is too long to be looked at.
    #[inline]
    fn note_text(&mut self, text: Option<&[u8]>) {
        let Some(text) = text else { return self.watch.note_unread_text() };
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
        match head.tag {
            b'P' => counters.client_parse_count += 1,
            b'B' => counters.bind_count += 1,
            b'H' => flushes = true,
            _ => {}
        }
        if let Some(eye) = &mut eye {
            let body = whole.then(|| &rest[frame::HEADER_BYTES..head.total]);
            match (head.tag, &mut translator) {
                (b'Q', _) => eye.note_text(body),
                // A named one is looked at when it is bound.
                (b'P', Some(_)) if rest.get(frame::HEADER_BYTES) != Some(&0) => {}
                (b'P', _) => eye.note_text(body.map(text_of_parse)),
                (b'B', Some(translator)) => {
                    if let Some(text) = translator.marked.take() {
                        eye.note_text(Some(&text));
                    }
                }
                _ => {}
            }
        }
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
    counters.server_parse_count += u64::from(tag == b'P');
    noted(replies.sent(tag, Origin::Client))
}

/// The text of a statement in the body of its Parse; empty if that is malformed.
fn text_of_parse(body: &[u8]) -> &[u8] {
    parse::prepare(body).map_or(b"", |(_, rest)| text_of(rest))
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
