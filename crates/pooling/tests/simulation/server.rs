//! A stand-in for one PostgreSQL backend: reads messages, answers them when it is told to work, can be cancelled.

use std::collections::{BTreeMap, VecDeque};

/// A backend. It panics when it reads what no sane client sends: then the pooler has mixed messages up.
#[derive(Debug, Default)]
pub struct Backend {
    input: Vec<u8>,
    output: VecDeque<u8>,
    in_transaction: bool,
    failed: bool,
    skipping: bool,
    copying: Option<Copying>,
    /// A query that has been read and not been answered.
    running: Option<Vec<u8>>,
    cancelled: bool,
    late_signal: bool,
    /// The row that the last Bind asks for.
    bound: Option<String>,
    /// Texts of prepared statements, by name.
    statements: BTreeMap<String, String>,
    pub ended: bool,
    /// What belongs to a session: must be gone when another client gets it.
    pub session_mark: Option<String>,
}

#[derive(Debug)]
struct Copying {
    extended: bool,
}

impl Backend {
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// A cancel request arrives: it hits what runs now, or nothing. A late one is on its way still when its connection
    /// has ended, and hits whatever runs next.
    pub fn signal(&mut self, late: bool) {
        if self.running.is_some() || self.copying.is_some() {
            self.cancelled = true;
        } else {
            self.late_signal |= late;
        }
    }

    pub fn take_output(&mut self, most: usize) -> Vec<u8> {
        let count = self.output.len().min(most);
        self.output.drain(..count).collect()
    }

    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    pub fn has_work(&self) -> bool {
        self.running.is_some() || self.next_message().is_some()
    }

    /// Finishes what runs, or reads one message.
    pub fn work(&mut self) {
        if let Some(message) = self.running.take() {
            self.cancelled |= std::mem::take(&mut self.late_signal);
            if std::mem::take(&mut self.cancelled) {
                self.fail("57014");
                if message[0] == b'Q' {
                    self.ready();
                } else {
                    self.skipping = true;
                }
            } else {
                self.answer(&message);
            }
            return;
        }
        // A backend that waits for data does not hear a cancel request; it sees it with the next message.
        if self.copying.is_some() && self.next_message().is_none() {
            return;
        }
        if std::mem::take(&mut self.cancelled)
            && let Some(copying) = self.copying.take()
        {
            self.fail("57014");
            if copying.extended {
                self.skipping = true;
            } else {
                self.ready();
            }
            return;
        }
        let Some(total) = self.next_message() else { return };
        let message: Vec<u8> = self.input.drain(..total).collect();
        if self.skipping && message[0] != b'S' && message[0] != b'X' {
            return;
        }
        if let Some(copying) = &self.copying {
            let extended = copying.extended;
            match message[0] {
                b'd' if message[5..].starts_with(b"bad") => {
                    self.copying = None;
                    self.fail("22P02");
                    if extended { self.skipping = true } else { self.ready() }
                }
                b'd' | b'H' | b'S' => {}
                b'c' => {
                    self.copying = None;
                    self.message(b'C', b"COPY 1\0");
                    if !extended {
                        self.ready();
                    }
                }
                b'f' => {
                    self.copying = None;
                    self.fail("57014");
                    if extended { self.skipping = true } else { self.ready() }
                }
                // Any other message is an error; it ends the copy. What the pooler sends so is the end of a batch.
                b'E' if names_portal(&message) => {
                    self.copying = None;
                    self.fail("08P01");
                    if extended { self.skipping = true } else { self.ready() }
                }
                b'X' => self.ended = true,
                other => panic!("'{}' during COPY", other as char),
            }
            return;
        }
        match message[0] {
            b'E' if names_portal(&message) => {
                self.fail("34000");
                self.skipping = true;
            }
            b'Q' | b'E' => self.running = Some(message),
            b'P' => self.parse(&message),
            b'B' => self.bind(&message),
            b'D' => self.message(b'n', b""),
            b'C' => {
                self.statements.remove(&texts(&message)[0][1..]);
                self.message(b'3', b"");
            }
            b'S' => {
                self.skipping = false;
                self.ready();
            }
            b'H' | b'd' | b'c' | b'f' => {}
            b'X' => self.ended = true,
            other => panic!("a backend read '{}': the pooler has mixed messages up", other as char),
        }
    }

    fn next_message(&self) -> Option<usize> {
        let head = self.input.get(..5)?;
        let total = 1 + u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        assert!(total < 1 << 20, "a length of {total}: the pooler has mixed messages up");
        (self.input.len() >= total).then_some(total)
    }

    fn answer(&mut self, message: &[u8]) {
        if message[0] == b'E' {
            let bound = self.bound.clone().expect("an Execute without a Bind");
            if bound == "COPY" {
                self.copying = Some(Copying { extended: true });
                self.message(b'G', &[0, 0, 0]);
            } else {
                self.row(&bound);
                self.message(b'C', b"SELECT 1\0");
            }
            return;
        }
        let sql = String::from_utf8(message[5..message.len() - 1].to_vec()).expect("SQL of the simulation");
        let failed = self.failed;
        match sql.as_str() {
            "BEGIN" => {
                self.in_transaction = true;
                self.message(b'C', b"BEGIN\0");
            }
            "COMMIT" | "ROLLBACK" => {
                self.in_transaction = false;
                self.failed = false;
                self.message(b'C', b"ROLLBACK\0");
            }
            // The ROLLBACK before it was cancelled.
            "DISCARD ALL" if failed => self.fail("25P02"),
            "DISCARD ALL" => {
                assert!(!self.in_transaction, "DISCARD ALL inside a transaction");
                self.session_mark = None;
                self.statements.clear();
                self.message(b'C', b"DISCARD ALL\0");
            }
            "" => self.message(b'I', b""),
            _ if failed => self.fail("25P02"),
            "COPY" => {
                self.copying = Some(Copying { extended: false });
                self.message(b'G', &[0, 0, 0]);
                return;
            }
            "ERROR" => self.fail("22012"),
            _ if sql.starts_with("SET ") => self.message(b'C', b"SET\0"),
            _ => {
                let row = sql.strip_prefix("SELECT ").unwrap_or_else(|| panic!("SQL {sql:?}")).to_owned();
                if let Some(mark) = row.strip_prefix("MARK ") {
                    self.session_mark = Some(mark.to_owned());
                }
                self.row(&row);
                self.message(b'C', b"SELECT 1\0");
            }
        }
        self.ready();
    }

    fn parse(&mut self, message: &[u8]) {
        let [name, text, ..] = &texts(message)[..] else { panic!("a Parse of the simulation") };
        // A failed transaction takes what has no text, and what ends it.
        if self.failed && !text.is_empty() {
            self.fail("25P02");
            self.skipping = true;
            return;
        }
        let before = self.statements.insert(name.clone(), text.clone());
        assert!(name.is_empty() || before.is_none(), "{name} is prepared twice");
        self.message(b'1', b"");
    }

    fn bind(&mut self, message: &[u8]) {
        let [_, name, row, ..] = &texts(message)[..] else { panic!("a Bind of the simulation") };
        let text = self.statements.get(name).unwrap_or_else(|| panic!("{name} is not prepared here"));
        // Rows of named statements say of which.
        assert!(row.split_once('@').is_none_or(|(_, of)| text == of), "{row} of the statement {text}");
        if self.failed {
            self.fail("25P02");
            self.skipping = true;
            return;
        }
        self.bound = Some(row.clone());
        self.message(b'2', b"");
    }

    fn row(&mut self, value: &str) {
        let mut body = vec![0, 1];
        body.extend(u32::try_from(value.len()).expect("short").to_be_bytes());
        body.extend(value.as_bytes());
        self.message(b'D', &body);
    }

    fn fail(&mut self, code: &str) {
        if self.in_transaction {
            self.failed = true;
        }
        let mut body = b"SERROR\0C".to_vec();
        body.extend(code.as_bytes());
        body.extend(b"\0Mno\0\0");
        self.message(b'E', &body);
    }

    fn ready(&mut self) {
        let status = if self.failed {
            b'E'
        } else if self.in_transaction {
            b'T'
        } else {
            b'I'
        };
        self.message(b'Z', &[status]);
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        self.output.push_back(tag);
        self.output.extend(u32::try_from(body.len() + 4).expect("short").to_be_bytes());
        self.output.extend(body);
    }
}

/// What stands in a message's body, between zero bytes.
fn texts(message: &[u8]) -> Vec<String> {
    let body = String::from_utf8(message[5..].to_vec()).expect("text of the simulation");
    body.split('\0').map(str::to_owned).collect()
}

/// Clients of the simulation use the unnamed portal alone: any name stands for a portal that does not exist.
fn names_portal(execute: &[u8]) -> bool {
    execute[5] != 0
}
