//! What a client's transactions may have left in the session of its server, and what of it is there for certain.
//!
//! Texts of statements and command tags only raise a suspicion; it is settled by asking the server, once, when the
//! transaction is over and before anybody else gets the server. So transactions and savepoints that are rolled back need
//! no rule: what is asked is what is there.

mod held;
mod question;
#[cfg(test)]
mod tests;

pub(crate) use held::Held;
pub(crate) use question::{Found, question};

use crate::markers::{Markers, Named, markers, parameters_named};

/// Most parameters with a dot in their name that are asked for by name; beyond it the client keeps its server.
pub(crate) const MAX_OWN_NAMES: usize = 32;

/// A suspicion about one server's session.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    texts: Markers,
    tags: Tags,
    /// What is there for certain, and keeps the server with its client.
    held: Held,
    /// Parameters that servers know only by name: PostgreSQL lists those with a dot in their name nowhere.
    names: Vec<Box<str>>,
}

/// Command tags that have been seen, and how they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tags(u16);

impl Tags {
    const SET: u16 = 1;
    const RESET: u16 = 1 << 1;
    const LISTEN: u16 = 1 << 2;
    const PREPARE: u16 = 1 << 3;
    const DECLARE: u16 = 1 << 4;
    /// A statement that may have taken away what is held.
    const RELEASE: u16 = 1 << 5;
    const DISCARD_ALL: u16 = 1 << 6;
    /// A SET or RESET was inside a transaction, or something failed: it may not have lasted.
    const UNSURE: u16 = 1 << 7;

    const fn has(self, tags: u16) -> bool {
        self.0 & tags != 0
    }
}

/// What has to be done before another client may have the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: it holds nothing of this client.
    Clean,
    /// Nothing: it stays with this client.
    Keep,
    /// The session is back at its start, and that is known without asking.
    BackAtStart,
    /// The server has to be asked.
    Ask(Inquiry),
}

/// What a server is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inquiry {
    /// The parameters that are set in the session.
    pub(crate) parameters: bool,
    /// What else it holds.
    pub(crate) held: Held,
}

impl Watch {
    /// The text of a Query or Parse is on its way to the server. `reports` tells whether it reports a parameter.
    #[inline]
    pub(crate) fn note_text(&mut self, text: &[u8], reports: impl Fn(&str) -> bool) {
        let found = markers(text);
        if !found.is_empty() {
            self.note_marks(found, text, reports);
        }
    }

    #[cold]
    fn note_marks(&mut self, found: Markers, text: &[u8], reports: impl Fn(&str) -> bool) {
        let mut found = found;
        if found.has(Markers::SET | Markers::SET_CONFIG) {
            let mut by_report = true;
            parameters_named(text, |named| match named {
                Named::Parameter(name) if reports(&name) => {}
                Named::Parameter(name) => {
                    by_report = false;
                    if name.contains('.') && !self.names.iter().any(|known| **known == *name) {
                        if self.names.len() < MAX_OWN_NAMES {
                            self.names.push(name.into());
                        } else {
                            self.held |= Held::UNNAMED;
                        }
                    }
                }
                Named::Unknown => {
                    by_report = false;
                    self.held |= Held::UNNAMED;
                }
            });
            if by_report {
                // The server tells of each of them by itself.
                found = found.without(Markers::SET | Markers::SET_CONFIG) | Markers::SET_LOCAL;
            }
        }
        self.texts |= found;
    }

    /// A message that is too long to be looked at is on its way.
    pub(crate) fn note_unread_text(&mut self) {
        self.texts |= Markers::UNKNOWN;
    }

    /// A CommandComplete for the client.
    #[inline]
    pub(crate) fn note_tag(&mut self, body: &[u8], in_transaction: bool) {
        let Some(first) = body.first_chunk::<4>() else { return };
        if !matches!(first, b"SELE" | b"INSE" | b"UPDA" | b"DELE" | b"BEGI" | b"COMM" | b"ROLL" | b"COPY") {
            self.note_other_tag(body, in_transaction);
        }
    }

    fn note_other_tag(&mut self, body: &[u8], in_transaction: bool) {
        let unsure = if in_transaction { Tags::UNSURE } else { 0 };
        self.tags.0 |= match body.strip_suffix(b"\0").unwrap_or(body) {
            b"SET" => Tags::SET | unsure,
            b"RESET" => Tags::RESET | Tags::RELEASE | unsure,
            b"LISTEN" => Tags::LISTEN,
            b"PREPARE" => Tags::PREPARE,
            b"DECLARE CURSOR" => Tags::DECLARE,
            b"DISCARD ALL" => Tags::DISCARD_ALL | Tags::RELEASE,
            b"UNLISTEN" => Tags::RELEASE,
            tag if [&b"CLOSE"[..], b"DEALLOCATE", b"DISCARD", b"DROP"]
                .iter()
                .any(|word| tag.starts_with(word)) =>
            {
                Tags::RELEASE
            }
            _ => return,
        };
    }

    /// An error for the client: what was done before it may be undone.
    pub(crate) fn note_error(&mut self) {
        self.tags.0 |= Tags::UNSURE;
    }

    /// True if its client keeps the server, and nothing has happened that could change that.
    #[inline]
    pub(crate) fn keeps(&self) -> bool {
        !self.held.is_empty() && !self.may_have_changed()
    }

    pub(crate) const fn held(&self) -> Held {
        self.held
    }

    /// A suspicion, or a statement that may have ended what is held.
    #[inline]
    fn may_have_changed(&self) -> bool {
        self.tags.has(!Tags::UNSURE) || self.texts.has(Markers::UNKNOWN | Markers::ADVISORY_UNLOCK)
    }

    /// What the end of a transaction calls for.
    #[inline]
    pub(crate) fn verdict(&self) -> Verdict {
        if self.texts.is_empty() && self.tags.0 & !Tags::UNSURE == 0 {
            return if self.held.is_empty() { Verdict::Clean } else { Verdict::Keep };
        }
        self.closer_verdict()
    }

    fn closer_verdict(&self) -> Verdict {
        let suspect = self.suspected();
        if self.is_back_at_start() && suspect.is_empty() {
            let kept = if self.tags.has(Tags::DISCARD_ALL) { Held::NONE } else { self.held };
            return if kept.is_empty() {
                Verdict::BackAtStart
            } else {
                Verdict::Ask(Inquiry { parameters: true, held: kept })
            };
        }
        // Without a text of one, a SET came from a statement that has not been looked at.
        let by_set =
            self.tags.has(Tags::SET) && (self.texts.has(Markers::SET) || !self.texts.has(Markers::SET_LOCAL));
        let parameters =
            by_set || self.tags.has(Tags::RESET | Tags::DISCARD_ALL) || self.texts.has(Markers::SET_CONFIG);
        let released = self.tags.has(Tags::RELEASE) || self.texts.has(Markers::ADVISORY_UNLOCK);
        let held = if released || !suspect.is_empty() { suspect | self.held } else { Held::NONE };
        if parameters || !held.without(Held::UNNAMED).is_empty() {
            Verdict::Ask(Inquiry { parameters, held: suspect | self.held })
        } else if self.held.is_empty() {
            // Such as SET LOCAL, or a DEALLOCATE of what was never held.
            Verdict::Clean
        } else {
            Verdict::Keep
        }
    }

    fn suspected(&self) -> Held {
        let mut suspect = Held::NONE;
        for (is, kind) in [
            (self.texts.has(Markers::ADVISORY), Held::ADVISORY_LOCK),
            (self.texts.has(Markers::TEMP), Held::TEMPORARY),
            (self.tags.has(Tags::DECLARE) && self.texts.has(Markers::HOLD), Held::CURSOR),
            (self.tags.has(Tags::PREPARE), Held::STATEMENT),
            (self.tags.has(Tags::LISTEN), Held::LISTEN),
        ] {
            if is {
                suspect |= kind;
            }
        }
        suspect
    }

    /// Only the drivers' own reset has come, and it has lasted.
    fn is_back_at_start(&self) -> bool {
        self.texts.has(Markers::RESET_ALL)
            && !self.texts.has(Markers::UNKNOWN)
            && self.tags.has(Tags::RESET | Tags::DISCARD_ALL)
            && !self.tags.has(Tags::UNSURE)
    }

    /// The names that the server has to be asked for besides those that it lists; the client keeps them.
    pub(crate) fn take_names(&mut self) -> Vec<Box<str>> {
        std::mem::take(&mut self.names)
    }

    /// The server has been asked; this is what is there.
    pub(crate) fn settle(&mut self, held: Held) {
        // What no question finds out stays until everything is thrown away.
        let unnamed = if self.tags.has(Tags::DISCARD_ALL | Tags::RESET) && self.is_back_at_start() {
            Held::NONE
        } else {
            self.held & Held::UNNAMED
        };
        self.held = held | unnamed;
        self.forget_suspicion();
    }

    /// What has been suspected is known to be of no account.
    pub(crate) fn forget_suspicion(&mut self) {
        self.texts = Markers::NONE;
        self.tags = Tags::default();
    }

    /// True if everything has been thrown away, and not only parameters.
    pub(crate) const fn has_discarded_all(&self) -> bool {
        self.tags.has(Tags::DISCARD_ALL)
    }

    /// Nothing is held, nothing is suspected.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
