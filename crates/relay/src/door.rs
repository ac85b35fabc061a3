//! From an accepted socket to a client that is known: TLS, hello, and the answer to it.

mod guest;
mod hello;
mod peer;

pub(crate) use hello::{Refused, contract, ended_lease};
pub(crate) use peer::{AdmittedPeer, dial};

use crate::counters::add;
use crate::hub::{Connection, Hub, leaves, linger};
use ::keys::Known;
use clock::unix_ms;
use guest::Guest;
use link::message::{Hello, Refuse, Welcome};
use link::{Code, HELLO_LIMIT, Kind, PEER_ALPN, websocket};
use rustls::ServerConfig;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tls::TlsSession;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use trust::{ClientClaims, EXPORTER_LABEL};

/// TLS must be done within this time.
const TLS_LIMIT: Duration = Duration::from_secs(5);
/// A key that nobody here knows may be new: it is read again, and waited for so long.
const KEY_LIMIT: Duration = Duration::from_secs(4);
/// After a refusal, the client has so long to close.
const LINGER_LIMIT: Duration = Duration::from_secs(1);

/// What a door needs to know.
pub(crate) struct Door {
    pub hub: Rc<Hub>,
    pub tls: watch::Receiver<Arc<ServerConfig>>,
    pub keys: watch::Receiver<Arc<Known>>,
    /// Somebody shows a key that is not known: whoever keeps the keys is to look again.
    pub unknown_key: Arc<Notify>,
    /// The most refused clients that are held.
    pub most_held: usize,
}

/// A client that may come in.
pub(crate) struct Admitted {
    pub socket: TcpStream,
    pub tls: TlsSession,
    /// The frames are inside a WebSocket.
    pub websocket: Option<Box<websocket::Reader>>,
    /// What came behind the HELLO.
    pub rest: Vec<u8>,
    pub claims: ClientClaims,
    pub epoch: u64,
    /// Which of its start's connections it is.
    pub dial: u64,
    pub interval_ms: u32,
    pub software: Box<str>,
}

/// Who has come in.
enum Entered {
    Client(Admitted),
    Peer(AdmittedPeer),
}

/// A handshake that came to nothing; nobody is owed an answer.
#[derive(Debug)]
struct Failed(&'static str);

impl Door {
    /// Serves one connection to its end.
    pub(crate) async fn serve(self: Rc<Self>, socket: TcpStream) {
        // The handshake's own room is given back before the client's long life begins.
        let entered = Box::pin(self.enter(socket)).await;
        match entered {
            Ok(Entered::Client(admitted)) => Connection::serve(Rc::clone(&self.hub), admitted).await,
            Ok(Entered::Peer(admitted)) => Connection::serve_peer(Rc::clone(&self.hub), admitted).await,
            Err(Failed(why)) => {
                add(&self.hub.counters.handshakes_failed, 1);
                tracing::debug!(why, "handshake failed");
            }
        }
    }

    async fn enter(&self, socket: TcpStream) -> Result<Entered, Failed> {
        let config = Arc::clone(&self.tls.borrow());
        let tls = TlsSession::accept(config, true).map_err(|_| Failed("tls"))?;
        let mut guest = Guest::new(socket, tls);
        let shaken = timeout(TLS_LIMIT, guest.handshake()).await;
        shaken.map_err(|_| Failed("tls took too long"))?.map_err(|_| Failed("tls"))?;
        if guest.tls.alpn() == Some(websocket::ALPN) {
            let upgraded = timeout(HELLO_LIMIT, guest.upgrade()).await;
            if let Err(failed) = upgraded.map_err(|_| Failed("no request came"))? {
                if let Some(_held) = self.hold() {
                    linger(&guest.socket, LINGER_LIMIT).await;
                }
                return Err(failed);
            }
        }
        if guest.tls.alpn() == Some(PEER_ALPN) {
            return self.enter_peer(guest).await;
        }
        let waited = timeout(HELLO_LIMIT, guest.first(Kind::Hello)).await;
        let bytes = waited.map_err(|_| Failed("no hello came"))??;
        let exported = guest.tls.export(EXPORTER_LABEL).ok_or(Failed("nothing is exported"))?;
        let payload = guest.plain[link::HEADER_BYTES..bytes].to_vec();
        let rest = guest.plain.split_off(bytes);
        let Ok(hello) = Hello::decode(&payload) else {
            return self
                .turn_away(guest, Refused::because(Code::ProtocolError, "the hello is malformed"))
                .await;
        };
        let claims = match self.check(&hello, &exported).await {
            Ok(claims) => claims,
            Err(refused) => return self.turn_away(guest, refused).await,
        };
        let interval_ms = self.hub.ping_interval_ms();
        self.welcome(hello.epoch, interval_ms).write(&mut guest.out);
        let sent = timeout(HELLO_LIMIT, guest.send()).await;
        sent.map_err(|_| Failed("the client takes nothing"))?.map_err(|_| Failed("io"))?;
        add(&self.hub.counters.admitted, 1);
        let Guest { socket, tls, websocket, .. } = guest;
        Ok(Entered::Client(Admitted {
            socket,
            tls,
            websocket,
            rest,
            epoch: hello.epoch,
            claims,
            interval_ms,
            dial: hello.dial,
            software: hello.software.into(),
        }))
    }

    /// A key that is not known is looked for once more, by whoever keeps the keys.
    async fn check(&self, hello: &Hello<'_>, exported: &[u8; 32]) -> Result<ClientClaims, Refused> {
        let mut keys = self.keys.clone();
        let first = hello::check(&keys.borrow_and_update(), hello, exported, unix_ms());
        let claims = match first {
            Err(refused) if refused.is_unknown_key => {
                self.unknown_key.notify_one();
                if !matches!(timeout(KEY_LIMIT, keys.changed()).await, Ok(Ok(()))) {
                    return Err(refused);
                }
                hello::check(&keys.borrow_and_update(), hello, exported, unix_ms())?
            }
            other => other?,
        };
        match self.hub.newest_epoch(claims.client, claims.role == trust::Role::Provider) {
            // The same start may come again: its old connection is half-open.
            Some(newest) if newest > hello.epoch => Err(Refused::because(
                Code::Superseded,
                "a newer start of this client is connected; is its state folder used twice?",
            )),
            _ => Ok(claims),
        }
    }

    fn welcome(&self, epoch: u64, interval_ms: u32) -> Welcome {
        let config = &self.hub.config;
        Welcome {
            version: link::VERSION,
            relay: self.hub.relay.0,
            epoch,
            time_ms: unix_ms(),
            ping_interval_ms: interval_ms,
            ping_misses: config.ping_misses,
            backoff_base_ms: config.backoff_base_ms,
            backoff_cap_ms: config.backoff_cap_ms,
            stable_after_ms: config.stable_after_ms,
            streams: config.streams_per_opener,
            window_bytes: config.window_bytes,
            greatest_window_bytes: config.greatest_window_bytes,
            addresses: self.hub.other_addresses(),
        }
    }

    /// The client hears why. One that should not come back is held for a while: old programs that dial on a fixed timer
    /// come back once a minute then, instead of at once.
    async fn turn_away<T>(&self, mut guest: Guest, refused: Refused) -> Result<T, Failed> {
        let Refused { code, cause, retry_after, .. } = refused;
        self.hub.counters.refuse(code);
        tracing::info!(%code, cause, "a client is refused");
        Refuse { code, cause: cause.into(), retry_after }.write(0, &mut guest.out);
        let sent = timeout(HELLO_LIMIT, guest.send()).await;
        if matches!(sent, Ok(Ok(())))
            && let Some(_held) = self.hold()
        {
            // What a handshake needs is not kept for it.
            let Guest { socket, .. } = guest;
            if code.is_final() {
                leaves(&socket, Duration::from_millis(self.hub.config.hold_refused_ms)).await;
            }
            linger(&socket, LINGER_LIMIT).await;
        }
        Err(Failed(code.label()))
    }

    /// A place for a refused client, if one is free.
    pub(crate) fn hold(&self) -> Option<Held> {
        let held = self.hub.held.get();
        (held < self.most_held).then(|| {
            self.hub.held.set(held + 1);
            Held(Rc::clone(&self.hub))
        })
    }
}

/// A refused client that is held; its place is free again once this is dropped.
pub(crate) struct Held(Rc<Hub>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.set(self.0.held.get() - 1);
    }
}
