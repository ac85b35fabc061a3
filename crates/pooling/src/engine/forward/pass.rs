//! One pass over what a client has sent: what of it goes on, in which words, and what it means for its server.

use super::scan::{Eye, Limits, Scanned, scan};
use super::translate::Translator;
use crate::client::Client;
use crate::connection::ClientId;
use crate::parameters::Parameters;
use crate::pool::Pool;
use crate::server::Server;
use crate::statements::{self, Shape, Statements};
use pgwire::frame;
use pgwire::message::TransactionStatus;
use settings::pooler::General;

/// Everything that a pass touches.
pub(super) struct Pass<'a> {
    pub(super) general: &'a General,
    pub(super) parameters: &'a Parameters,
    pub(super) statements: &'a mut Statements,
    pub(super) pool: &'a mut Pool,
    pub(super) server: &'a mut Server,
    pub(super) id: ClientId,
    pub(super) client: &'a mut Client,
    /// Room for a request in other words.
    pub(super) translated: &'a mut Vec<u8>,
}

/// What has come of it.
pub(super) struct Passed {
    pub(super) scanned: Scanned,
    /// The server gets what stands in the room for it.
    pub(super) is_translated: bool,
    /// What the client is told at once.
    pub(super) answers: Vec<u8>,
}

impl Pass<'_> {
    /// Looks at `bytes`, of which the first `streaming` are the rest of a long message. `is_first`: nothing else goes to the
    /// server in the same write.
    #[inline]
    pub(super) fn over(self, bytes: &[u8], streaming: u32, is_first: bool) -> Passed {
        let Self { general, parameters, statements, pool, server, id, client, translated } = self;
        let was_at_rest = server.replies.is_empty();
        let limits = Limits {
            message: general.max_packet_size,
            hold: general.waiter_buffer,
            extended_only: general.disable_pqexec,
        };
        let eye = pool.watches_sessions().then_some(Eye {
            watch: &mut server.watch,
            parameters,
            server: &server.parameters,
        });
        // A simple query of a client that prepares nothing concerns no name.
        let is_plain = streaming == 0
            && client.statements.is_none()
            && !server.statements.has_pending()
            && is_one_query(bytes);
        let translates = server.translates_statements && !is_plain;
        let mut translator = translates.then(|| Translator {
            input: bytes,
            client_id: id,
            client: &mut client.statements,
            server: &mut server.statements,
            statements,
            limits: statements::Limits::of(general),
            output: translated,
            copied: 0,
            shape: Shape::default(),
            answers: Vec::new(),
            marked: None,
            is_inside_message: server.rest > 0,
        });
        let scanned =
            scan(bytes, streaming, limits, &mut server.replies, &mut pool.counters, translator.as_mut(), eye);
        let Some(translator) = translator else {
            server.statements.note_query();
            server.again.forget();
            return Passed { scanned, is_translated: false, answers: Vec::new() };
        };
        let shape = translator.shape;
        let mut answers = Vec::new();
        let is_translated = translator.finish(scanned.end, &mut answers);
        let is_whole = was_at_rest && scanned.streaming == 0 && scanned.end == bytes.len() && is_first;
        let is_alone = is_whole && server.replies.status() == TransactionStatus::Idle;
        server.again.note(bytes, shape, is_alone);
        // Answers of the pooler's own wait for those of the server, but a Flush asks for them now. Inside a message that
        // the client has only part of they would be read as its rest; they come behind it.
        while scanned.flushes
            && server.rest == 0
            && let Some(answer) = server.take_simulated(Some((id, &mut client.statements)))
        {
            answers.extend_from_slice(answer.message());
        }
        Passed { scanned, is_translated, answers }
    }
}

/// True if that is one whole Query and nothing else.
#[inline]
fn is_one_query(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'Q')
        && matches!(frame::head(bytes, u32::MAX), Ok(Some(head)) if head.total == bytes.len())
}
