//! Streams through the network: one link to each relay that has a wanted provider.

use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use client::{
    Code, Contract, Counter, Host, Link, LinkError, Membership, OpenError, OpenRequest, SpliceLimits, Stream,
    Target,
};
use overload::{Backoff, Moment};
use selection::Fault;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;
use trust::{ClientId, ContractId};

use crate::directory::Provider;
use crate::exits::{ExitError, ExitStream, Exits, Wanted};
use crate::moved::{Moved, Place};
use crate::refusal::Reason;
use clock::Clock;

/// The most relays that are known at once; those without a link go first.
const MAX_RELAYS: usize = 1_024;

/// Contracts whose relay is remembered, for one link.
const MAX_SHOWN: usize = 4_096;

/// The rest of a relay that could not be reached.
const FIRST_REST: Duration = Duration::from_millis(500);
/// The longest one.
const GREATEST_REST: Duration = Duration::from_secs(30);

/// A relay must be reached within this part of an open's patience: the rest is for the way around it.
const DIAL_SHARE: u32 = 3;

/// A dial that has been without an answer for so long is not waited for by those who come then.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// An open that has no answer after this time asks its relay for a sign of life.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// A relay that owes a sign of life for so long gets no new streams until it gives one: a link that stands may lead nowhere.
const OWED_FOR: Duration = Duration::from_secs(2);

/// The longest that a fresh token is waited for.
const TOKEN_WAIT: Duration = Duration::from_secs(3);

/// A stream in which one direction has ended may be silent in the other for so long.
const HALF_CLOSED: Duration = Duration::from_secs(60);

/// The links of one proxy.
pub(crate) struct Network {
    membership: Arc<Membership>,
    epoch: u64,
    clock: Clock,
    relays: Mutex<HashMap<Arc<str>, Arc<Relay>>>,
    /// Where providers have moved to, since the list was made.
    moved: Mutex<Moved>,
    /// A relay has said that this client must not come back.
    refused: Arc<OnceLock<String>>,
}

/// One relay: at most one dial at a time.
#[derive(Default)]
struct Relay {
    dialling: Arc<AsyncMutex<()>>,
    state: Mutex<RelayState>,
}

#[derive(Default)]
struct RelayState {
    link: Option<Link>,
    /// Contracts that have been shown on it.
    shown: HashSet<ContractId>,
    backoff: Backoff,
    rests_until: Moment,
    cause: String,
    /// A dial that has no answer yet.
    dialled_at: Option<Moment>,
}

/// Why there is no stream at one relay.
enum NotOpened {
    /// The provider is elsewhere.
    Moved(Place),
    /// The relay is not to be reached from here.
    NoLink(ExitError),
    /// It, or the provider, has refused.
    Failed(ExitError),
}

impl Network {
    /// Nothing is dialled yet.
    pub(crate) fn new(membership: Arc<Membership>, epoch: u64) -> Self {
        let clock = Clock::start();
        Self {
            membership,
            epoch,
            clock,
            relays: Mutex::default(),
            moved: Mutex::default(),
            refused: Arc::default(),
        }
    }

    /// Ends all links: relays are told.
    pub(crate) fn close(&self) {
        for relay in lock(&self.relays).values() {
            if let Some(link) = &lock(&relay.state).link {
                link.close();
            }
        }
    }

    fn relay(&self, address: &Arc<str>) -> Arc<Relay> {
        let mut relays = lock(&self.relays);
        if relays.len() >= MAX_RELAYS && !relays.contains_key(address) {
            relays.retain(|_, relay| relay.open().is_some());
        }
        Arc::clone(relays.entry(Arc::clone(address)).or_default())
    }

    /// A link to a relay: the one that takes streams, or a new one.
    async fn link(&self, address: &Arc<str>) -> Result<(Link, Arc<Relay>), ExitError> {
        let relay = self.relay(address);
        if relay.owes() {
            let cause = "the provider's relay is silent".to_owned();
            return Err(ExitError::Provider(Fault::Failed, cause));
        }
        if let Some(link) = relay.open() {
            return Ok((link, relay));
        }
        if let Some(cause) = self.refused.get() {
            return Err(ExitError::Provider(Fault::Failed, cause.clone()));
        }
        // A relay that swallows dials does not cost each customer its patience: whoever comes while it has been silent for a
        // while goes elsewhere.
        if relay.is_silent(self.clock.now()) {
            let cause = "the provider's relay has not answered yet".to_owned();
            return Err(ExitError::Provider(Fault::Failed, cause));
        }
        let dialling = Arc::clone(&relay.dialling).lock_owned().await;
        // Somebody else may have dialled meanwhile, with success or without.
        if let Some(link) = relay.open() {
            drop(dialling);
            return Ok((link, relay));
        }
        {
            let mut state = lock(&relay.state);
            let now = self.clock.now();
            if state.rests_until > now {
                return Err(ExitError::Provider(Fault::Failed, state.cause.clone()));
            }
            state.dialled_at = Some(now);
        }
        // The dial is the relay's, not this customer's: it goes on, and its outcome is noted, when the customer's patience ends.
        let dial = Dial {
            membership: Arc::clone(&self.membership),
            refused: Arc::clone(&self.refused),
            epoch: self.epoch,
            clock: self.clock,
            address: Arc::clone(address),
            relay: Arc::clone(&relay),
        };
        let dialled = tokio::spawn(async move {
            let linked = dial.run().await;
            drop(dialling);
            linked
        });
        let ended = || Err(ExitError::Provider(Fault::Failed, "this proxy is ending".into()));
        dialled.await.unwrap_or_else(|_| ended()).map(|link| (link, relay))
    }

    async fn open_at(&self, address: &Arc<str>, request: &OpenRequest) -> Result<Stream, NotOpened> {
        let silent =
            |_| Err(ExitError::Provider(Fault::TimedOut, "the provider's relay does not answer".into()));
        let linked = timeout(request.deadline / DIAL_SHARE, self.link(address)).await;
        let (link, relay) = linked.unwrap_or_else(silent).map_err(NotOpened::NoLink)?;
        relay.note(request.contract.id);
        let open = std::pin::pin!(link.open(request));
        let opened = asking(&link, open).await;
        opened.map(|(stream, _)| stream).map_err(|error| match error {
            OpenError::Moved { address, epoch } => NotOpened::Moved(Place { relay: address.into(), epoch }),
            error => NotOpened::Failed(exit_error(error)),
        })
    }

    /// The relay where the provider is cannot be dialled from here: another passes the open on.
    async fn open_around(
        &self,
        request: &OpenRequest,
        through: Option<Arc<str>>,
        cause: ExitError,
    ) -> Result<Stream, NotOpened> {
        let Some(through) = through else { return Err(NotOpened::NoLink(cause)) };
        let request = OpenRequest { forward: true, ..request.clone() };
        self.open_at(&through, &request).await.map_err(|not_opened| match not_opened {
            NotOpened::Failed(error) => NotOpened::Failed(error),
            // It has no link there either, or passes nothing on.
            NotOpened::Moved(_) | NotOpened::NoLink(_) => NotOpened::NoLink(cause),
        })
    }

    /// Any other relay with a link.
    fn another(&self, than: &Arc<str>) -> Option<Arc<str>> {
        let relays = lock(&self.relays);
        let others = relays
            .iter()
            .filter(|(address, relay)| *address != than && relay.open().is_some() && !relay.owes());
        fastrand::choice(others.map(|(address, _)| Arc::clone(address)).collect::<Vec<_>>())
    }

    fn left(&self, began: Moment, patience: Duration) -> Duration {
        patience.saturating_sub(self.clock.now().since(began))
    }
}

/// A dial of one relay, with all that its outcome is noted in.
struct Dial {
    membership: Arc<Membership>,
    refused: Arc<OnceLock<String>>,
    epoch: u64,
    clock: Clock,
    address: Arc<str>,
    relay: Arc<Relay>,
}

impl Dial {
    async fn run(self) -> Result<Link, ExitError> {
        let mut dialled = self.dial().await;
        if matches!(dialled, Err(LinkError::Refused { code: Code::TokenExpired, .. })) {
            dialled = match timeout(TOKEN_WAIT, self.membership.refresh()).await {
                Ok(Ok(())) => self.dial().await,
                _ => dialled,
            };
        }
        let mut state = lock(&self.relay.state);
        state.dialled_at = None;
        match dialled {
            Ok(link) => {
                state.backoff.reset();
                state.shown.clear();
                state.link = Some(link.clone());
                Ok(link)
            }
            Err(error) => {
                let rest = state.backoff.failed(FIRST_REST, GREATEST_REST, fastrand::u64(..));
                let rest = error.retry_after().unwrap_or(rest);
                let relay = &self.address;
                if error.is_final() {
                    tracing::error!(%error, %relay, "this proxy must not come back");
                    let _ = self.refused.set(format!("the network refuses this proxy ({})", error.label()));
                }
                tracing::warn!(%error, %relay, rest_ms = rest.as_millis() as u64, "no link to a relay");
                state.rests_until = self.clock.now() + rest;
                state.cause = format!("no link to the provider's relay ({})", error.label());
                Err(ExitError::Provider(Fault::Failed, state.cause.clone()))
            }
        }
    }

    async fn dial(&self) -> Result<Link, LinkError> {
        Link::connect(&self.address, self.membership.identification(self.epoch), None).await
    }
}

/// Waits for what was asked of a link, and asks for a sign of life if that takes long.
async fn asking<T>(link: &Link, mut asked: Pin<&mut impl Future<Output = T>>) -> T {
    match timeout(ASK_AFTER, asked.as_mut()).await {
        Ok(answer) => answer,
        Err(_) => {
            link.ask();
            asked.await
        }
    }
}

impl Relay {
    /// Whether a dial has been without an answer for a while.
    fn is_silent(&self, now: Moment) -> bool {
        lock(&self.state).dialled_at.is_some_and(|dialled_at| now.since(dialled_at) >= SILENT_AFTER)
    }

    fn open(&self) -> Option<Link> {
        lock(&self.state).link.as_ref().filter(|link| link.is_open()).cloned()
    }

    /// The link stands, and has been silent where it should not be.
    fn owes(&self) -> bool {
        let owed = self.open().and_then(|link| link.unanswered_for());
        owed.is_some_and(|owed| owed >= OWED_FOR)
    }

    /// This contract is shown here.
    fn note(&self, contract: ContractId) {
        let mut state = lock(&self.state);
        if state.shown.len() >= MAX_SHOWN {
            state.shown.clear();
        }
        state.shown.insert(contract);
    }
}

impl Exits for Network {
    type Stream = NetworkStream;

    async fn open(&self, wanted: Wanted<'_>) -> Result<NetworkStream, ExitError> {
        let provider: &Provider = wanted.provider;
        let host = match &wanted.target.host {
            egress::Host::Name(name) => Host::Name(name.to_string()),
            egress::Host::Address(address) => Host::Address(*address),
        };
        let mut request = OpenRequest {
            provider: ClientId(provider.candidate.provider),
            provider_epoch: provider.candidate.epoch,
            provider_key: provider.seal_key,
            target: Target { host, port: wanted.target.port },
            family: wanted.family,
            contract: wanted.contract.clone(),
            deadline: wanted.patience,
            forward: false,
        };
        let (began, patience) = (self.clock.now(), wanted.patience);
        let listed = Place { relay: Arc::clone(&provider.relay), epoch: provider.candidate.epoch };
        let id = provider.candidate.provider;
        let known = lock(&self.moved).find(id, &listed, began);
        let first = known.clone().unwrap_or_else(|| listed.clone());
        request.provider_epoch = first.epoch;
        let opened = match self.open_at(&first.relay, &request).await {
            // One step: the second relay may not send on again.
            Err(NotOpened::Moved(place)) => {
                request.provider_epoch = place.epoch;
                request.deadline = self.left(began, patience);
                let mut opened = self.open_at(&place.relay, &request).await;
                if let Err(NotOpened::NoLink(cause)) = opened {
                    request.deadline = self.left(began, patience);
                    opened = self.open_around(&request, Some(first.relay), cause).await;
                }
                if !is_elsewhere(&opened) {
                    lock(&self.moved).note(id, listed, place, self.clock.now());
                }
                opened
            }
            Err(NotOpened::NoLink(cause)) => {
                request.deadline = self.left(began, patience);
                self.open_around(&request, self.another(&first.relay), cause).await
            }
            other => other,
        };
        if known.is_some() && (is_elsewhere(&opened) || matches!(opened, Err(NotOpened::NoLink(_)))) {
            lock(&self.moved).forget(id);
        }
        opened.map(NetworkStream).map_err(|not_opened| match not_opened {
            NotOpened::NoLink(error) | NotOpened::Failed(error) => error,
            NotOpened::Moved(_) => moved_on(),
        })
    }

    fn show(&self, contract: &Contract) {
        let Some(follows) = contract.follows else { return };
        let relays: Vec<_> = lock(&self.relays).values().cloned().collect();
        for relay in relays {
            let link = {
                let mut state = lock(&relay.state);
                let link = state.link.clone().filter(|_| state.shown.contains(&follows));
                if link.is_some() {
                    state.shown.insert(contract.id);
                }
                link
            };
            if let Some(link) = link {
                link.show(contract);
            }
        }
    }
}

/// Whether the provider was not where it was looked for.
const fn is_elsewhere(opened: &Result<Stream, NotOpened>) -> bool {
    matches!(opened, Err(NotOpened::Moved(_) | NotOpened::Failed(ExitError::Provider(Fault::Gone, _))))
}

/// What an error of the library means for the choice of a provider.
fn exit_error(error: OpenError) -> ExitError {
    let (code, cause, retry_after) = match error {
        OpenError::Refused { code, cause, retry_after } => (code, cause, retry_after),
        OpenError::Moved { .. } => return moved_on(),
        OpenError::Link(error) => return ExitError::Provider(Fault::Failed, lost(&error)),
    };
    match code {
        Code::ProviderGone | Code::Stale => ExitError::Provider(Fault::Gone, cause),
        Code::Timeout => ExitError::Provider(Fault::TimedOut, cause),
        Code::Busy | Code::Draining | Code::TooManyStreams | Code::Paused | Code::Limit => {
            ExitError::Provider(Fault::Full(retry_after), "the provider takes no streams now".into())
        }
        Code::Policy => ExitError::Provider(Fault::Policy, cause),
        Code::ContractInvalid | Code::ContractSpent => ExitError::Contract(cause),
        Code::TargetRefused => {
            ExitError::Target(Reason::TargetRefused, "the target refused the connection".into())
        }
        Code::TargetUnreachable => {
            ExitError::Target(Reason::TargetUnreachable, "the target cannot be reached".into())
        }
        Code::TargetTimeout => ExitError::Target(Reason::TargetTimeout, "the target did not answer".into()),
        Code::NameNotFound => ExitError::Target(Reason::NameNotFound, "the name has no address".into()),
        code => {
            ExitError::Provider(Fault::Failed, format!("the provider could not open the stream ({code})"))
        }
    }
}

fn moved_on() -> ExitError {
    ExitError::Provider(Fault::Gone, "the provider has moved on".into())
}

fn lost(error: &LinkError) -> String {
    format!("the link to the provider's relay is lost ({})", error.label())
}

/// A stream of the network.
pub(crate) struct NetworkStream(Stream);

impl ExitStream for NetworkStream {
    fn set_counter(&mut self, counter: Arc<dyn Counter>) {
        self.0.set_counter(counter);
    }

    async fn splice(self, socket: TcpStream, first: &[u8], idle: Duration) {
        let limits = SpliceLimits { idle, half_closed: HALF_CLOSED.min(idle) };
        let report = self.0.splice(socket, first, limits).await;
        tracing::trace!(sent = report.sent, received = report.received, end = ?report.end, "a stream has ended");
    }
}

impl AsyncRead for NetworkStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        pin!(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for NetworkStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        pin!(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(&mut self.0).poll_shutdown(context)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
