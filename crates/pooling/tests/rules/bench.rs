//! One engine with a scripted world around it: clients and servers do only what a test says.

use super::wire::Wire;
use overload::Moment;
use overload::cause::Cause;
use pooling::Engine;
use pooling::connection::{ClientId, ConnectionId, ServerId};
use pooling::seam::{ClientAddress, OpenFailure, OpenServer, OpenedServer};
use pooling::snapshot::PoolRow;
use settings::pooler::PoolerConfig;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub const GENERAL: &str = "[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = any\npool_mode = transaction\n";
pub const READY: &[u8] = b"Z\0\0\0\x05I";
pub const IN_TRANSACTION: &[u8] = b"Z\0\0\0\x05T";

pub struct Bench {
    pub engine: Engine,
    pub wire: Wire,
    now: Moment,
    next_pid: i32,
    /// Of the servers that are opened from now on.
    pub version: &'static str,
    keys: HashMap<ClientId, [u8; 8]>,
}

/// Settings with one database `db` of user `u`, and what the test adds to `[pgbouncer]`.
pub fn config(extra: &str) -> Arc<PoolerConfig> {
    config_of("db = host=127.0.0.1 user=u\n", extra)
}

pub fn config_of(databases: &str, extra: &str) -> Arc<PoolerConfig> {
    let text = format!("[databases]\n{databases}{GENERAL}{extra}\n");
    Arc::new(settings::pooler::parse_ini(&text).expect("the test's configuration").config)
}

pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    message.extend(u32::try_from(body.len() + 4).expect("short").to_be_bytes());
    message.extend(body);
    message
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

/// The answer to a query that returns nothing, with its ReadyForQuery.
pub fn done() -> Vec<u8> {
    [message(b'C', b"SELECT 0\0"), READY.to_vec()].concat()
}

impl Bench {
    pub fn new(config: Arc<PoolerConfig>) -> Self {
        let now = Moment::from_micros(1_000_000);
        let mut engine = Engine::new(config, 1_000, now);
        let mut wire = Wire::new(1);
        engine.start(&mut wire);
        Self { engine, wire, now, next_pid: 100, version: "15.0", keys: HashMap::new() }
    }

    /// Time passes, in one turn.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.engine.advance(self.now);
        self.due();
    }

    /// The end of a turn: what is due is done.
    pub fn due(&mut self) {
        if self.engine.next_deadline().is_some_and(|at| at <= self.now) {
            self.engine.on_deadline(&mut self.wire);
        }
    }

    pub fn accept(&mut self) -> ClientId {
        let address =
            ClientAddress::Tcp { peer: ([127, 0, 0, 1], 1).into(), local: ([127, 0, 0, 1], 6432).into() };
        self.engine.accept(&mut self.wire, address).expect("room for a client")
    }

    /// A client connects and sends its start-up packet.
    pub fn connect(&mut self, database: &str) -> ClientId {
        let id = self.accept();
        self.say(id, &startup(database));
        id
    }

    /// A client that is logged in and idle; a server is opened if the pool has none.
    pub fn login(&mut self) -> ClientId {
        let id = self.connect("db");
        if !self.wire.opens.is_empty() {
            self.open();
        }
        assert!(self.heard(id).ends_with(READY), "the client is not let in");
        id
    }

    pub fn say(&mut self, id: ClientId, bytes: &[u8]) {
        self.engine.on_bytes(&mut self.wire, id.into(), bytes);
    }

    pub fn answer(&mut self, id: ServerId, bytes: &[u8]) {
        self.engine.on_bytes(&mut self.wire, id.into(), bytes);
    }

    /// What a peer has been sent since the last look.
    pub fn heard(&mut self, id: impl Into<ConnectionId>) -> Vec<u8> {
        let id = id.into();
        let bytes = self.wire.sent.remove(&id).unwrap_or_default();
        // BackendKeyData stands before the first ReadyForQuery.
        if let ConnectionId::Client(client) = id
            && bytes.starts_with(b"R")
            && let Some(body) = bytes.len().checked_sub(READY.len() + 8).and_then(|at| bytes.get(at..at + 8))
        {
            self.keys.insert(client, body.try_into().expect("eight bytes"));
        }
        bytes
    }

    /// A cancel request with the key that the client was given.
    pub fn cancel(&mut self, client: ClientId) {
        let key = self.keys.get(&client).copied().expect("the greeting has been looked at");
        let mut packet = 16u32.to_be_bytes().to_vec();
        packet.extend(80_877_102u32.to_be_bytes());
        packet.extend(key);
        let requester = self.accept();
        self.say(requester, &packet);
    }

    pub fn reads(&self, id: impl Into<ConnectionId>) -> bool {
        !self.wire.not_reading.contains(&id.into())
    }

    pub fn is_closed(&self, id: impl Into<ConnectionId>) -> bool {
        self.wire.closed.contains(&id.into())
    }

    /// The one server that there is.
    pub fn only_server(&self) -> ServerId {
        let rows = self.engine.server_rows();
        assert_eq!(rows.len(), 1, "one server");
        match ConnectionId::from_token(rows[0].id) {
            ConnectionId::Server(id) => id,
            ConnectionId::Client(_) => panic!("a server's identity"),
        }
    }

    /// The oldest login that the engine has asked for succeeds.
    pub fn open(&mut self) -> ServerId {
        let request = self.wire.opens.remove(0);
        self.finish(&request).expect("a server that is wanted")
    }

    pub fn finish(&mut self, request: &OpenServer) -> Option<ServerId> {
        self.next_pid += 1;
        let opened = OpenedServer {
            process_id: self.next_pid,
            secret_key: vec![1, 2, 3, 4],
            parameters: vec![("server_version".into(), self.version.into())],
            leftover: Vec::new(),
            peer: None,
            login_time: Duration::from_millis(5),
        };
        let id = self.engine.on_server_opened(request.attempt, &opened)?;
        self.engine.on_server_installed(&mut self.wire, id, &[]);
        Some(id)
    }

    pub fn fail(&mut self, cause: Cause) {
        let request = self.wire.opens.remove(0);
        let failure = OpenFailure {
            cause,
            sqlstate: None,
            client_text: "connect failed".to_owned(),
            log_text: "connect failed".to_owned(),
        };
        self.engine.on_server_failed(&mut self.wire, request.attempt, failure);
    }

    /// A peer takes nothing until [`Self::take`].
    pub fn stop(&mut self, id: impl Into<ConnectionId>) {
        self.wire.stopped.insert(id.into());
    }

    pub fn take(&mut self, id: impl Into<ConnectionId>) {
        let id = id.into();
        self.wire.stopped.remove(&id);
        if let Some(kept) = self.wire.kept.remove(&id) {
            self.wire.sent.entry(id).or_default().extend(kept);
            self.engine.on_flushed(&mut self.wire, id);
        }
    }

    pub fn end(&mut self, id: impl Into<ConnectionId>) {
        self.engine.on_end(&mut self.wire, id.into());
    }

    pub fn pool(&self, database: &str) -> PoolRow {
        self.engine.pool_rows().into_iter().find(|row| &*row.database == database).expect("the pool")
    }
}

pub fn startup(database: &str) -> Vec<u8> {
    let mut body = 196_608u32.to_be_bytes().to_vec();
    body.extend(format!("user\0u\0database\0{database}\0\0").as_bytes());
    let mut packet = u32::try_from(body.len() + 4).expect("short").to_be_bytes().to_vec();
    packet.extend(body);
    packet
}
