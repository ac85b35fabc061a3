//! A client of the simulation: knows what it has asked and checks every byte that it is given.

use super::random::Random;
use std::collections::VecDeque;

/// What a client still expects, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Row(String),
    /// COPY may begin: CopyData follows only then.
    CopyIn {
        extended: bool,
    },
    Ready,
    /// The same, for a batch that uses named statements, prepared if all went well.
    ReadyOf(Vec<usize>),
}

/// Texts that are prepared, each under a name that differs from client to client.
const STATEMENTS: usize = 4;

#[derive(Debug)]
pub struct Customer {
    pub number: usize,
    /// Bytes that it wants to send.
    pub outbox: VecDeque<u8>,
    inbox: Vec<u8>,
    pub expected: VecDeque<Expected>,
    pub key: Option<[u8; 8]>,
    pub logged_in: bool,
    pub cancelled: bool,
    pub answers: u64,
    pub refused: bool,
    /// Statements that it has prepared for certain.
    prepared: [bool; STATEMENTS],
    /// Batches under way that use them.
    under_way: [usize; STATEMENTS],
    /// Those that the batch without Sync uses.
    unsynced: Vec<usize>,
    /// An error has come for what is asked now.
    failed: bool,
    sequence: u64,
    in_transaction: bool,
    /// The transaction status of the last ReadyForQuery.
    status: u8,
}

impl Customer {
    /// `wishes` are further start-up parameters.
    pub fn new(number: usize, wishes: &str) -> Self {
        let mut body = 196_608u32.to_be_bytes().to_vec();
        body.extend(b"user\0u\0database\0db\0application_name\0");
        // Two application names: the pooler has to set the other one now and then.
        body.extend(format!("app{}", number % 2).as_bytes());
        body.extend(b"\0");
        body.extend(wishes.as_bytes());
        body.extend(b"\0");
        let mut outbox = VecDeque::from(u32::try_from(body.len() + 4).expect("short").to_be_bytes().to_vec());
        outbox.extend(body);
        Self {
            number,
            outbox,
            inbox: Vec::new(),
            expected: VecDeque::new(),
            key: None,
            logged_in: false,
            cancelled: false,
            answers: 0,
            refused: false,
            prepared: [false; STATEMENTS],
            under_way: [0; STATEMENTS],
            unsynced: Vec::new(),
            failed: false,
            sequence: 0,
            in_transaction: false,
            status: b'I',
        }
    }

    pub fn is_at_rest(&self) -> bool {
        self.logged_in
            && self.expected.is_empty()
            && self.outbox.is_empty()
            && self.status == b'I'
            && !self.in_transaction
    }

    fn put(&mut self, tag: u8, body: &[u8]) {
        self.outbox.push_back(tag);
        self.outbox.extend(u32::try_from(body.len() + 4).expect("short").to_be_bytes());
        self.outbox.extend(body);
    }

    fn query(&mut self, sql: &str) {
        self.put(b'Q', format!("{sql}\0").as_bytes());
        self.expected.push_back(Expected::Ready);
    }

    fn own_row(&mut self) -> String {
        self.sequence += 1;
        format!("{}.{}", self.number, self.sequence)
    }

    fn select(&mut self, filler: usize) {
        let row = format!("{}{}", self.own_row(), "x".repeat(filler));
        self.expected.push_back(Expected::Row(row.clone()));
        self.query(&format!("SELECT {row}"));
    }

    fn batch(&mut self, sync: bool) {
        let row = self.own_row();
        self.put(b'P', b"\0SELECT $1\0\0\0");
        self.put(b'B', format!("\0\0{row}\0").as_bytes());
        self.put(b'D', b"P\0");
        self.put(b'E', b"\0\0\0\0\0");
        self.expected.push_back(Expected::Row(row));
        if sync {
            self.put(b'S', b"");
            self.expected.push_back(Expected::Ready);
        } else {
            self.put(b'H', b"");
        }
    }

    /// A statement that it has prepared, or prepares anew: then what has its name is closed first. The Sync may be left to
    /// the next.
    fn named(&mut self, which: usize, anew: bool, sync: bool) {
        let name = format!("c{}s{which}", self.number);
        let text = format!("SELECT $1 {which}");
        let row = format!("{}@{text}", self.own_row());
        // What is under way may fail and leave the name closed.
        if anew || !self.prepared[which] || self.under_way[which] > 0 {
            self.put(b'C', format!("S{name}\0").as_bytes());
            self.put(b'P', format!("{name}\0{text}\0\0\0").as_bytes());
        }
        self.put(b'B', format!("\0{name}\0{row}\0").as_bytes());
        self.put(b'E', b"\0\0\0\0\0");
        self.expected.push_back(Expected::Row(row));
        self.under_way[which] += 1;
        self.unsynced.push(which);
        if sync {
            self.put(b'S', b"");
            self.expected.push_back(Expected::ReadyOf(std::mem::take(&mut self.unsynced)));
        }
    }

    /// Asks for something, at random; `prepares`: named statements too.
    pub fn ask(&mut self, random: &mut Random, prepares: bool) {
        match random.below(if prepares { 14 } else { 10 }) {
            10..=12 => {
                for _ in 0..=random.below(2) {
                    let (which, anew) = (random.below(STATEMENTS), random.below(4) == 0);
                    self.named(which, anew, true);
                }
            }
            13 => {
                self.query("BEGIN");
                if random.below(2) == 0 {
                    self.query("ERROR");
                }
                if random.below(2) == 0 {
                    self.named(random.below(STATEMENTS), random.below(4) == 0, false);
                }
                self.named(random.below(STATEMENTS), random.below(4) == 0, true);
                self.query("COMMIT");
            }
            0 | 1 => self.select(0),
            2 => self.select(5_000),
            3 => self.batch(true),
            4 => {
                self.batch(false);
                self.batch(true);
            }
            5 => {
                self.query("BEGIN");
                self.select(0);
                self.query("COMMIT");
            }
            6 => {
                self.query("BEGIN");
                self.in_transaction = true;
            }
            7 => {
                self.query("COPY");
                self.expected.insert(self.expected.len() - 1, Expected::CopyIn { extended: false });
            }
            8 => {
                self.put(b'P', b"\0COPY\0\0\0");
                self.put(b'B', b"\0\0COPY\0");
                self.put(b'E', b"\0\0\0\0\0");
                self.expected.push_back(Expected::CopyIn { extended: true });
                self.expected.push_back(Expected::Ready);
            }
            _ => {
                self.query("ERROR");
                self.select(0);
            }
        }
    }

    pub fn finish_transaction(&mut self) {
        if std::mem::take(&mut self.in_transaction) {
            self.select(0);
            self.query("COMMIT");
        } else if self.status != b'I' && self.expected.is_empty() && self.outbox.is_empty() {
            // A COMMIT that was cancelled has not ended the transaction.
            self.query("ROLLBACK");
        }
    }

    pub fn has_transaction(&self) -> bool {
        self.in_transaction
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        while self.inbox.len() >= 5 {
            let total =
                1 + u32::from_be_bytes([self.inbox[1], self.inbox[2], self.inbox[3], self.inbox[4]]) as usize;
            assert!(total < 1 << 20, "client {} got a length of {total}", self.number);
            if self.inbox.len() < total {
                return;
            }
            let message: Vec<u8> = self.inbox.drain(..total).collect();
            self.take(message[0], &message[5..]);
        }
    }

    fn take(&mut self, tag: u8, body: &[u8]) {
        match tag {
            b'K' => self.key = Some(body.try_into().expect("eight bytes")),
            b'Z' if !self.logged_in => self.logged_in = true,
            b'Z' => {
                while let Some(expected) = self.expected.pop_front() {
                    match expected {
                        Expected::Ready => {
                            self.failed = false;
                            self.status = body[0];
                            return;
                        }
                        Expected::ReadyOf(used) => {
                            let succeeded = !std::mem::take(&mut self.failed);
                            for which in used {
                                self.prepared[which] = succeeded;
                                self.under_way[which] -= 1;
                            }
                            self.status = body[0];
                            return;
                        }
                        Expected::Row(_) | Expected::CopyIn { .. } => {
                            assert!(self.failed, "client {} never got {expected:?}", self.number);
                        }
                    }
                }
                panic!("client {} got a ReadyForQuery that it had not asked for", self.number);
            }
            b'D' => {
                let row = String::from_utf8(body[6..].to_vec()).expect("a row of the simulation");
                match self.expected.pop_front() {
                    Some(Expected::Row(own)) if own == row => self.answers += 1,
                    other => panic!("client {} got the row {row:?} where {other:?} was due", self.number),
                }
            }
            b'E' => self.take_error(body),
            b'G' => match self.expected.pop_front() {
                Some(Expected::CopyIn { extended }) => {
                    self.put_copy(extended);
                }
                other => panic!("client {} got CopyInResponse where {other:?} was due", self.number),
            },
            b'R' | b'S' | b'C' | b'1' | b'2' | b'3' | b'n' | b'I' | b'N' => {}
            other => panic!("client {} got '{}'", self.number, other as char),
        }
    }

    fn put_copy(&mut self, extended: bool) {
        // A client that awaits this answer asks for nothing else; it may have said goodbye.
        if !self.outbox.is_empty() {
            return;
        }
        self.sequence += 1;
        match self.sequence % 4 {
            // Fails while most of it is still to come.
            0 => {
                self.put(b'd', b"bad");
                self.put(b'd', &[b'x'; 9_000]);
                self.put(b'd', &[b'x'; 9_000]);
            }
            1 => self.put(b'd', &[b'x'; 9_000]),
            _ => self.put(b'd', b"data"),
        }
        self.put(b'c', b"");
        if extended {
            self.put(b'S', b"");
        }
    }

    fn take_error(&mut self, body: &[u8]) {
        let code =
            body.split(|&byte| byte == 0).find_map(|field| field.strip_prefix(b"C")).expect("a SQLSTATE");
        let code = String::from_utf8_lossy(code).into_owned();
        if code == "57014" {
            assert!(self.cancelled, "client {} was cancelled without having asked for it", self.number);
        }
        // A COPY that was refused will not begin: its batch lacks the Sync.
        if let Some(Expected::CopyIn { extended }) = self.expected.front().cloned() {
            self.expected.pop_front();
            if extended {
                self.put(b'S', b"");
            }
        }
        self.failed = true;
        self.refused |= body.starts_with(b"SFATAL");
    }
}
