//! The unnamed statement: it lives until the next one, across Sync, and so across servers.

use super::named::NO_TEXT;
use super::{DEALLOCATE_GONE, Message, Taken, Translator};
use crate::engine::forward::scan::noted;
use crate::markers::markers;
use crate::snapshot::PoolCounters;
use crate::statements::sql::{self, Drops};
use crate::statements::{Effect, Shape, text_of};
use pgwire::message::{frontend, tag};
use pgwire::replies::{Origin, ReplyQueue};

impl Translator<'_> {
    pub(super) fn parse_unnamed(
        &mut self,
        message: &Message<'_>,
        rest: &[u8],
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) -> Taken {
        match sql::drops(text_of(rest)) {
            Some(Drops::All) => self.server.set_reset_sent(true),
            Some(Drops::One(name)) if message.is_whole() => {
                if self.must_wait(replies) {
                    return Taken::Later;
                }
                self.deallocate_by_server(message, &name, replies, |output| {
                    frontend::parse(output, b"", &[DEALLOCATE_GONE.as_bytes(), NO_TEXT].concat());
                });
            }
            Some(Drops::One(_)) | None => {}
        }
        counters.server_parse_count += 1;
        let is_kept = message.is_whole()
            && rest.len() <= self.limits.held_bytes
            && self.server.has_room_for_text(rest.len());
        let client = self.client.get_or_insert_default();
        // Whoever runs one text again and again need not have it copied each time.
        let is_current = client.unnamed() == Some(rest) && !self.server.has_pending();
        let text = match is_current {
            true => client.take_unnamed(),
            false => is_kept.then(|| rest.into()),
        };
        self.noted(tag::PARSE, Effect::Unnamed { text, is_current }, replies)
    }

    /// Bind or Describe of the unnamed statement: the server may have another client's, or none.
    pub(super) fn use_unnamed(
        &mut self,
        message: &Message<'_>,
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) -> Taken {
        self.shape.add(Shape::OTHER);
        if !self.server.unnamed_was_sent() {
            if self.server.unnamed_is_uncertain() {
                return Taken::Later;
            }
            let text = self.client.as_ref().and_then(|client| client.unnamed()).map(text_of);
            if let Some(text) = text.filter(|text| !markers(text).is_empty()) {
                self.marked = Some(text.into());
            }
            if !self.server.has_unnamed_of(self.client_id, self.client.as_deref()) {
                self.bring_unnamed(message, replies, counters);
            }
        }
        noted(replies.sent(message.head.tag, Origin::Client))
    }

    fn bring_unnamed(
        &mut self,
        message: &Message<'_>,
        replies: &mut ReplyQueue,
        counters: &mut PoolCounters,
    ) {
        let text: Option<Box<[u8]>> = self.client.as_ref().and_then(|client| client.unnamed()).map(Box::from);
        if let Some(text) = text {
            self.insert(message, |output| frontend::parse(output, b"", &text));
            counters.server_parse_count += 1;
            self.inject(tag::PARSE, Effect::UnnamedInjected, replies);
        } else {
            self.insert(message, |output| frontend::close_statement(output, b""));
            self.inject(tag::CLOSE, Effect::UnnamedClosed { of_client: false }, replies);
        }
    }

    pub(super) fn close_unnamed(&mut self, replies: &mut ReplyQueue) -> Taken {
        self.noted(tag::CLOSE, Effect::UnnamedClosed { of_client: true }, replies)
    }

    /// `DEALLOCATE name` inside a batch: the client's name goes, and the server gets something to drop, by what `write`
    /// puts in place of the message.
    pub(super) fn deallocate_by_server(
        &mut self,
        message: &Message<'_>,
        name: &[u8],
        replies: &mut ReplyQueue,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some((name, statement)) = self.client.as_mut().and_then(|client| client.remove(name)) else {
            return;
        };
        self.provide_gone(message, Effect::Close { name, statement }, replies);
        self.replace(message, write);
    }
}
