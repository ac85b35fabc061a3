//! What the messages of a server mean: whose they are, and what follows from them.

use crate::client::{Client, ClientState};
use crate::connection::{ClientId, Slab};
use crate::parameters::Parameters;
use crate::pool::Pool;
use crate::server::{Server, ServerState};
use crate::statements::Statements;
use overload::Moment;
use pgwire::message::{ErrorFields, TransactionStatus, backend, parse};
use pgwire::replies::{Desync, Origin, Received};
use settings::pooler::PoolMode;

/// What a read from a server came to.
#[derive(Default)]
pub(super) struct Outcome {
    /// The client's transaction is over and nothing is owed.
    pub(super) released: bool,
    pub(super) desync: Option<Desync>,
    /// The client's parameters have been set.
    pub(super) parameters_set: bool,
    /// It has been answered what the session holds.
    pub(super) probed: bool,
    /// What the client is told of them, ahead of any answer.
    pub(super) told: Vec<u8>,
    /// A transaction of several statements has begun where only single ones are allowed.
    pub(super) transaction_refused: bool,
    /// A batch has failed for a stale plan, and its client has seen nothing of it: it is sent again.
    pub(super) repeats: bool,
    /// A query of the pooler's own failed while the client has the server: its parameters cannot be set.
    pub(super) set_failed: Option<Box<ErrorFields>>,
}

/// Everything that the messages of one read touch.
pub(super) struct Judge<'a> {
    pub(super) server: &'a mut Server,
    pub(super) clients: &'a mut Slab<ClientId, Client>,
    pub(super) parameters: &'a mut Parameters,
    /// Where clients' statements are kept track of.
    pub(super) statements: Option<&'a mut Statements>,
    pub(super) pool: &'a mut Pool,
    /// What the client gets in place of the message just taken.
    pub(super) replaced: Option<Vec<u8>>,
    /// Who has the server.
    pub(super) client: Option<ClientId>,
    pub(super) now: Moment,
    pub(super) outcome: Outcome,
}

impl Judge<'_> {
    /// True for messages whose body is looked at.
    #[inline]
    pub(super) fn inspects(&self, tag: u8) -> bool {
        matches!(tag, b'Z' | b'S' | b'E' | b'C') || (tag == b'D' && self.server.probe.is_some())
    }

    /// Takes one message, or what has come of it; true if it is the client's.
    #[inline]
    pub(super) fn take(&mut self, tag: u8, body: &[u8]) -> Result<bool, Desync> {
        let received = self.server.replies.received(tag, body.first().copied())?;
        if self.server.statements.has_pending() {
            self.settle_statements(tag, body);
        }
        // DEALLOCATE or DISCARD, among others.
        if tag == b'C' && body.first() == Some(&b'D') && self.statements.is_some() {
            self.take_command_tag(body);
        }
        if tag == b'E' && says_fatal(body) {
            self.server.said_fatal = true;
        }
        Ok(match received {
            Received::Answer(Origin::Client) => {
                match tag {
                    b'C' if self.pool.watches_sessions() => {
                        let in_transaction = self.server.replies.status() != TransactionStatus::Idle;
                        self.server.watch.note_tag(body, in_transaction);
                    }
                    b'E' => self.server.watch.note_error(),
                    _ => {}
                }
                let is_heard = self.hears_answers() && !self.server.again.is_due();
                if is_heard {
                    self.server.again.forget();
                }
                is_heard && self.replaced.is_none()
            }
            Received::Answer(Origin::Pooler | Origin::Injected) => {
                if tag == b'E' {
                    // The first one says why; those that follow from it do not.
                    self.server.own_error.get_or_insert_with(|| ErrorFields::parse(body));
                } else if tag == b'D'
                    && let Some(probe) = &mut self.server.probe
                {
                    probe.found.take_row(body);
                }
                false
            }
            // It is for whoever listens, at whatever time.
            Received::Asynchronous if tag == b'A' => self.client.is_some(),
            Received::Asynchronous => {
                let own = self.server.replies.head_origin() == Some(Origin::Pooler);
                if tag == b'S' {
                    self.take_report(body, own);
                }
                !own && self.hears_answers()
            }
            Received::Ready(Origin::Client | Origin::Injected, _) if self.server.again.is_due() => {
                self.outcome.repeats = true;
                false
            }
            Received::Ready(Origin::Client | Origin::Injected, status) => {
                let forwarded = self.hears_answers();
                self.take_ready(status);
                forwarded && !self.outcome.transaction_refused
            }
            Received::Ready(Origin::Pooler, _) => {
                self.take_own_ready();
                false
            }
        })
    }

    /// True if the client does not need the server any more, as far as it can be told.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.pool.settings.pool_mode != PoolMode::Session
            && self.server.replies.is_settled()
            && !self.server.again.is_due()
            && !self.server.watch.keeps()
            && !self.still_needs_it()
    }

    /// An answer that was made with another client's parameters is not this one's.
    #[inline]
    pub(super) fn hears_answers(&self) -> bool {
        self.client.is_some() && !self.outcome.released && self.outcome.set_failed.is_none()
    }

    /// A ParameterStatus: the server's, and the client's too unless a query of our own has brought it.
    fn take_report(&mut self, body: &[u8], own: bool) {
        // What is not text is none of the parameters that are tracked.
        let Ok((Ok(name), Ok(value))) = parse::parameter_status(body)
            .map(|(name, value)| (std::str::from_utf8(name), std::str::from_utf8(value)))
        else {
            return;
        };
        self.parameters.report(&mut self.server.parameters, name, value);
        if matches!(self.server.state, ServerState::Idle) {
            self.take_new_default(name, value);
        }
        if let Some(client) = self.client.filter(|_| !own).and_then(|id| self.clients.find_mut(id)) {
            self.parameters.report(&mut client.parameters, name, value);
        }
    }

    /// A query of the client's is finished, and perhaps its transaction.
    #[inline]
    fn take_ready(&mut self, status: TransactionStatus) {
        let (pool, server, now) = (&mut *self.pool, &mut *self.server, self.now);
        pool.counters.query_count += 1;
        pool.counters.query_time_us += micros(now, server.query_at);
        pool.counters.query.record(now.since(server.query_at));
        pool.answered_at = Some(now);
        server.query_at = now;
        if status == TransactionStatus::Idle {
            pool.counters.xact_count += 1;
            pool.counters.xact_time_us += micros(now, server.transaction_at);
            server.transaction_at = now;
        } else if pool.settings.pool_mode == PoolMode::Statement {
            // It does not hear that its transaction has begun: it hears why it may not have one.
            self.outcome.transaction_refused = true;
        }
        self.outcome.released |= self.is_done();
    }

    /// The pooler's own SET, sent ahead of a client's request, has been answered. While nobody has the server, the answer
    /// is for whoever cleans it.
    fn take_own_ready(&mut self) {
        let Some(client) = self.client else { return };
        if self.server.probe.is_some() {
            self.outcome.probed = true;
            return;
        }
        if let Some(error) = self.server.own_error.take() {
            self.outcome.set_failed = Some(Box::new(error));
            return;
        }
        self.server.settings_owed = self.server.settings_owed.saturating_sub(1);
        if self.server.settings_owed > 0 {
            return;
        }
        self.outcome.parameters_set = true;
        if let Some(client) = self.clients.find_mut(client) {
            // The server may spell a value in its own way: that is the client's from now on.
            self.parameters.note_proven(&client.parameters);
            let told = &mut self.outcome.told;
            self.parameters.agree(&mut self.server.parameters, &mut client.parameters, |name, value| {
                backend::parameter_status(told, name, value);
            });
            self.parameters.note_proven(&client.parameters);
        }
    }

    /// A server at rest reports a value of its own accord: its configuration has changed, or it has been promoted.
    fn take_new_default(&mut self, name: &str, value: &str) {
        self.parameters.report(&mut self.server.start, name, value);
        let Some(greeting) = &mut self.pool.greeting else { return };
        self.parameters.report(&mut greeting.tracked, name, value);
        if let Some((_, known)) = greeting.parameters.iter_mut().find(|(known, _)| known == name) {
            value.clone_into(known);
        }
    }

    /// True if the client is not done although nothing is owed: it is in the middle of a long message, or its request
    /// still waits for its parameters, which have only just been set. Without its turn now, two clients could take the
    /// server from each other for ever.
    #[inline]
    fn still_needs_it(&self) -> bool {
        let parameters_set = self.outcome.parameters_set;
        self.client.and_then(|id| self.clients.find(id)).is_some_and(|client| {
            matches!(client.state, ClientState::Active { streaming: 1.., .. } | ClientState::Preparing { .. })
                || parameters_set && client.throttled
        })
    }
}

/// True for an error after which the server closes by itself. The severity that is not translated has the code `V`.
fn says_fatal(body: &[u8]) -> bool {
    body.split(|&byte| byte == 0).any(|field| matches!(field, b"VFATAL" | b"VPANIC"))
}

fn micros(now: Moment, earlier: Moment) -> u64 {
    now.as_micros().saturating_sub(earlier.as_micros())
}
