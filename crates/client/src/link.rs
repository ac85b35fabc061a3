//! One connection to a relay, and the streams on it.
//!
//! [`driver`] reads and keeps time; whoever has something to send writes it under the lock, and flushes at once. So
//! a byte that comes in at one socket goes out at the other without a task in between.

mod driver;
mod frames;
mod opening;
mod outbox;
mod scratch;
mod state;

pub use opening::{Contract, IncomingOpen, OpenRequest, Opens, SealedOpen};

use crate::connect::{self, Admitted, Identification};
use crate::error::LinkError;
use crate::meter::Meter;
use crate::ways::{Transport, Ways};
use ::link::Code;
use ::link::message::Welcome;
use clock::Clock;
use state::State;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};

pub(crate) use outbox::HIGH_WATER_BYTES;
pub(crate) use scratch::with_scratch;
pub(crate) use state::StreamState;

/// Opens that wait to be taken from a link; more are refused.
pub const MAX_INCOMING: usize = 1_024;

/// How a link stands.
#[derive(Clone, Debug)]
pub enum Phase {
    /// It carries streams.
    Up,
    /// The relay wants its clients to go elsewhere; streams that stand may end.
    Draining {
        /// Until then.
        deadline: Duration,
        /// Dial anew at a random moment within this time.
        spread: Duration,
        /// Where to.
        addresses: Vec<String>,
    },
    /// It is over.
    Ended(LinkError),
}

/// A handle of a connection to a relay; copies are cheap. The connection ends when the last handle and the last stream are
/// gone, or with [`Link::close`].
#[derive(Clone, Debug)]
pub struct Link(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

/// What the driver, the handles and the streams of one link share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) socket: TcpStream,
    pub(crate) who: Identification,
    pub(crate) welcome: Welcome,
    transport: Transport,
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// The driver is to look again.
    pub(crate) poke: Notify,
    pub(crate) phase: watch::Sender<Phase>,
    /// What its streams are counted against.
    pub(crate) meter: Arc<Meter>,
    /// Where opens go; a client that carries no streams refuses them.
    incoming: Option<Opens>,
}

impl Link {
    /// Dials a relay (`host:port`) and says hello. Opens of others go to `incoming`, if there is one. The connection is kept by a
    /// task of this runtime.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn connect(
        address: &str,
        who: Identification,
        incoming: Option<Opens>,
    ) -> Result<Self, LinkError> {
        Self::connect_metered(address, who, incoming, Arc::default()).await
    }

    /// The same; what its streams carry is counted against `meter`, and kept to its rate.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn connect_metered(
        address: &str,
        who: Identification,
        incoming: Option<Opens>,
        meter: Arc<Meter>,
    ) -> Result<Self, LinkError> {
        Self::connect_by(address, who, incoming, meter, &Ways::only(Transport::Direct)).await
    }

    /// The same, by the one of `ways` that is next: an attempt that fails because of the way makes the next attempt take the
    /// other.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn connect_by(
        address: &str,
        who: Identification,
        incoming: Option<Opens>,
        meter: Arc<Meter>,
        ways: &Ways,
    ) -> Result<Self, LinkError> {
        // Its own room is given back before the link's long life begins.
        let admitted = Box::pin(connect::connect(address, &who, ways)).await?;
        Ok(Self::start(admitted, who, incoming, meter))
    }

    /// The same over a connection that stands, for whoever dials otherwise, as from a certain address. `address` (`host:port`) is
    /// what the relay's certificate must name.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn over(
        socket: TcpStream,
        address: &str,
        who: Identification,
        incoming: Option<Opens>,
    ) -> Result<Self, LinkError> {
        socket.set_nodelay(true).map_err(|error| LinkError::io(LinkError::CONNECTING, error))?;
        let over = connect::over(socket, Vec::new(), address, &who, Transport::Direct);
        // Its own room is given back before the link's long life begins.
        let admitted = Box::pin(over).await?;
        Ok(Self::start(admitted, who, incoming, Arc::default()))
    }

    fn start(admitted: Admitted, who: Identification, incoming: Option<Opens>, meter: Arc<Meter>) -> Self {
        let Admitted { socket, tls, websocket, welcome, rest } = admitted;
        let transport = if websocket.is_some() { Transport::WebSocket } else { Transport::Direct };
        let clock = Clock::start();
        let state = State::new(tls, websocket, rest, &welcome, clock.now());
        let shared = Arc::new(Shared {
            socket,
            who,
            welcome,
            transport,
            clock,
            state: Mutex::new(state),
            poke: Notify::new(),
            phase: watch::Sender::new(Phase::Up),
            meter,
            incoming,
        });
        tokio::spawn(driver::run(Arc::clone(&shared)));
        Self(Arc::new(Handle(shared)))
    }

    /// What the relay said at the start.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        &self.shared().welcome
    }

    /// By which way it was dialled.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.shared().transport
    }

    /// How it stands, and how it comes to stand.
    #[must_use]
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.shared().phase.subscribe()
    }

    /// It carries new streams.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(*self.shared().phase.borrow(), Phase::Up)
    }

    /// It takes new streams still: it is up, or its relay sends its clients elsewhere and has not ended it yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(*self.shared().phase.borrow(), Phase::Ended(_))
    }

    /// Waits until it is over.
    pub async fn ended(&self) -> LinkError {
        let mut phase = self.phase();
        loop {
            if let Phase::Ended(error) = &*phase.borrow_and_update() {
                return error.clone();
            }
            if phase.changed().await.is_err() {
                return LinkError::Closed;
            }
        }
    }

    /// The last round trip of a ping, if there was one.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.shared().lock().round_trip
    }

    /// Asks the relay for a sign of life, unless it is asked for one already.
    pub fn ask(&self) {
        let now = self.shared().clock.now();
        let mut state = self.shared().lock();
        if state.heartbeat.ask(now) {
            state.ping(now);
            drop(state);
            self.shared().poke.notify_one();
        }
    }

    /// For how long a sign of life that was asked for has not come; none: none is owed.
    #[must_use]
    pub fn unanswered_for(&self) -> Option<Duration> {
        self.shared().lock().heartbeat.unanswered_for(self.shared().clock.now())
    }

    /// Streams that stand.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared().lock().streams.len()
    }

    /// Ends it: the relay is told, streams are reset.
    pub fn close(&self) {
        self.shared().lock().close(Code::Leaving, LinkError::Closed);
        self.shared().poke.notify_one();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().unwanted = true;
        self.0.poke.notify_one();
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
