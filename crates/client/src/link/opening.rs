//! How streams come to be, at both ends.

use super::state::{State, StreamState, Verdict};
use super::{Link, MAX_INCOMING, Shared};
use crate::error::OpenError;
use crate::stream::Stream;
use ::link::message::{Contract as ContractFrame, Open, Opened, Refuse};
use ::link::seal::{Answer, Family, Freshness, Initiator, Parties, Request, Responder, Stale, Target};
use ::link::{Code, Kind, write_frame};
use clock::unix_ms;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use trust::{ClientId, ContractId};

/// An answer may come so much later than the deadline that was named: it is on its way.
const DEADLINE_GRACE: Duration = Duration::from_millis(500);

/// What pays for a stream.
#[derive(Clone, Debug)]
pub struct Contract {
    /// Its name.
    pub id: ContractId,
    /// As the api has signed it.
    pub text: Arc<str>,
    /// The contract that it goes on for.
    pub follows: Option<ContractId>,
}

/// A stream that is wanted.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// From which provider.
    pub provider: ClientId,
    /// Which start of it; 0 for any.
    pub provider_epoch: u64,
    /// Its X25519 key, as the api gave it.
    pub provider_key: [u8; 32],
    /// Where to.
    pub target: Target,
    /// By which addresses.
    pub family: Family,
    /// What pays.
    pub contract: Contract,
    /// The answer is worth nothing after this time.
    pub deadline: Duration,
    /// If the provider is at another relay, which cannot be dialled from here, the open is to be passed on.
    pub forward: bool,
}

/// A stream, and the address that the provider has reached.
pub(crate) type Reached = (Stream, std::net::IpAddr);

impl Link {
    /// Opens a stream through a provider of this relay. Dropping the future tells the relay that nobody waits any more.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing was sent to the target.
    pub async fn open(&self, request: &OpenRequest) -> Result<Reached, OpenError> {
        let shared = self.shared();
        let parties = parties(shared, request.provider, shared.who.client, request.contract.id);
        let asked = Request {
            time_ms: unix_ms(),
            provider_epoch: request.provider_epoch,
            target: request.target.clone(),
            family: request.family,
        };
        let private = seal_secret(shared)?;
        let initiator = Initiator::new(&private, &request.provider_key, &parties, &asked);
        let (initiator, seal) =
            initiator.map_err(|error| OpenError::refused(Code::SealInvalid, error.to_string()))?;
        let (verdict, answered) = oneshot::channel();
        let id = {
            let mut state = shared.lock();
            let id = state.begin(shared, initiator, verdict)?;
            state.show(&request.contract);
            let open = Open {
                provider: Some((request.provider.0, request.provider_epoch)),
                opener: None,
                contract: request.contract.id.0,
                deadline_ms: u32::try_from(request.deadline.as_millis()).unwrap_or(u32::MAX),
                hops: 0,
                window_bytes: shared.welcome.window_bytes,
                seal: &seal,
                forward: request.forward,
            };
            open.write(id, state.out.frames());
            state.flush(shared);
            id
        };
        // From here on, whoever drops this future drops the stream.
        let stream = Stream::new(Arc::clone(shared), id);
        let answered = tokio::time::timeout(request.deadline + DEADLINE_GRACE, answered).await;
        let late = || OpenError::refused(Code::Timeout, "the relay did not answer within the deadline");
        match answered.map_err(|_| late())?.map_err(|_| late())?? {
            Answer::Connected(address) => Ok((stream, address)),
            Answer::Failed { code, cause } => Err(OpenError::refused(code.from_provider(), cause)),
        }
    }

    /// Shows a contract, so that streams of the one that it follows go on with it.
    pub fn show(&self, contract: &Contract) {
        let mut state = self.shared().lock();
        state.show(contract);
        state.flush(self.shared());
    }
}

impl State {
    fn begin(
        &mut self,
        shared: &Shared,
        initiator: Initiator,
        verdict: oneshot::Sender<Verdict>,
    ) -> Result<u32, OpenError> {
        if let Some(ending) = &self.ending {
            return Err(OpenError::Link(ending.clone()));
        }
        let most = usize::try_from(shared.welcome.streams).unwrap_or(usize::MAX);
        if self.streams.len() >= most {
            return Err(OpenError::refused(
                Code::TooManyStreams,
                "this link carries as many streams as it may",
            ));
        }
        let id = self.next_stream;
        self.next_stream = id.checked_add(1).ok_or_else(|| {
            OpenError::refused(Code::TooManyStreams, "this link has used up its numbers: a new one is needed")
        })?;
        let mut stream = StreamState::new(shared, 0, shared.clock.now());
        stream.opening = Some((initiator, verdict));
        self.streams.insert(id, stream);
        Ok(id)
    }

    fn show(&mut self, contract: &Contract) {
        if self.shown.contains(&contract.id) {
            return;
        }
        if self.shown.len() >= super::state::MAX_SHOWN {
            self.shown.clear();
        }
        self.shown.insert(contract.id);
        let follows = contract.follows.map(|contract| contract.0);
        ContractFrame { text: &contract.text, follows }.write(self.out.frames());
    }
}

/// Where the opens of a provider go, over whichever of its links they come, and which first messages this start has seen: one that
/// comes again is refused also after a reconnect. Copies are cheap, and share what was seen.
#[derive(Clone, Debug)]
pub struct Opens {
    to: mpsc::Sender<SealedOpen>,
    seen: Arc<Mutex<Freshness>>,
}

impl Opens {
    /// For the start of this epoch, with the end where its opens come out; [`MAX_INCOMING`] of them wait.
    #[must_use]
    pub fn channel(epoch: u64) -> (Self, mpsc::Receiver<SealedOpen>) {
        let (to, incoming) = mpsc::channel(MAX_INCOMING);
        (Self { to, seen: Arc::new(Mutex::new(Freshness::new(epoch))) }, incoming)
    }

    fn check(&self, seal: &[u8], request: &Request) -> Result<(), Stale> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.check(seal, request.time_ms, request.provider_epoch, unix_ms())
    }
}

/// An OPEN as it came. To look into it costs a handshake's arithmetic, which is not done while a link is busy with its frames:
/// whoever carries the stream does it, in a task of its own. Dropping it refuses it.
#[derive(Debug)]
pub struct SealedOpen {
    shared: Arc<Shared>,
    id: u32,
    opener: ClientId,
    contract: ContractId,
    deadline: Duration,
    window: u32,
    /// Taken when it is opened.
    seal: Option<Box<[u8]>>,
}

impl SealedOpen {
    /// Looks into it. `None` if it does not open, is too old, or was here before, and has been refused; or the opener has left.
    #[must_use]
    pub fn unseal(mut self) -> Option<IncomingOpen> {
        if is_cancelled(&self.shared, self.id) {
            return None;
        }
        let seal = self.seal.take()?;
        match self.read(&seal) {
            Ok((responder, request)) => Some(IncomingOpen {
                shared: Arc::clone(&self.shared),
                id: self.id,
                request,
                opener: self.opener,
                contract: self.contract,
                deadline: self.deadline,
                answer: Some((responder, self.window)),
            }),
            Err((code, cause)) => {
                self.refuse(code, &cause);
                None
            }
        }
    }

    fn read(&self, seal: &[u8]) -> Result<(Responder, Request), (Code, String)> {
        let shared = &self.shared;
        let parties = parties(shared, shared.who.client, self.opener, self.contract);
        let private = seal_secret(shared).map_err(|_| (Code::SealInvalid, String::new()))?;
        let read = Responder::read(&private, &parties, seal);
        let (responder, request, _) = read.map_err(|error| (Code::SealInvalid, error.to_string()))?;
        let fresh = shared.incoming.as_ref().map_or(Ok(()), |opens| opens.check(seal, &request));
        fresh.map_err(|stale| (stale.code(), stale.to_string()))?;
        Ok((responder, request))
    }

    fn refuse(&self, code: Code, cause: &str) {
        self.shared.lock().turn_away(&self.shared, self.id, code, cause, None);
    }
}

impl Drop for SealedOpen {
    fn drop(&mut self) {
        if self.seal.is_some() {
            self.refuse(Code::Cancelled, "");
        }
    }
}

/// A stream that somebody wants from this provider. Dropping it refuses it.
#[derive(Debug)]
pub struct IncomingOpen {
    shared: Arc<Shared>,
    id: u32,
    request: Request,
    opener: ClientId,
    contract: ContractId,
    deadline: Duration,
    /// Taken by the answer.
    answer: Option<(Responder, u32)>,
}

impl IncomingOpen {
    /// Where to.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.request.target
    }

    /// By which addresses.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.request.family
    }

    /// Who asks, as the relay says.
    #[must_use]
    pub const fn opener(&self) -> ClientId {
        self.opener
    }

    /// What pays.
    #[must_use]
    pub const fn contract(&self) -> ContractId {
        self.contract
    }

    /// What was left of the opener's deadline when it came.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The opener has left: no work is to be done for it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        is_cancelled(&self.shared, self.id)
    }

    /// Waits until the opener has left.
    pub async fn cancelled(&self) {
        poll_fn(|context| {
            let mut state = self.shared.lock();
            if state.ending.is_some() {
                return Poll::Ready(());
            }
            match state.streams.get_mut(&self.id) {
                Some(stream) if stream.reset.is_none() => {
                    stream.read_waker = Some(context.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    /// The target is connected, at `address`: the opener is told, and the stream begins.
    ///
    /// # Errors
    /// The opener has left meanwhile, or the link has ended.
    pub fn accept(mut self, address: std::net::IpAddr) -> Result<Stream, OpenError> {
        let Some((responder, window)) = self.answer.take() else {
            return Err(OpenError::refused(Code::Cancelled, "answered already"));
        };
        // Made first: whatever goes wrong, the stream goes with its handle.
        let stream = Stream::new(Arc::clone(&self.shared), self.id);
        self.reply(responder, window, &Answer::Connected(address))?;
        Ok(stream)
    }

    /// The dial failed: the opener is told under the seal, so that the relay does not learn why.
    pub fn fail(mut self, code: Code, cause: &str) {
        if let Some((responder, window)) = self.answer.take() {
            let failed = Answer::Failed { code, cause: cause.to_owned() };
            // An opener that has left is told nothing.
            drop(self.reply(responder, window, &failed));
            self.shared.lock().streams.remove(&self.id);
        }
    }

    /// Not now: the relay may tell the opener, and another provider may be tried.
    pub fn refuse(mut self, code: Code, cause: &str, retry_after: Option<Duration>) {
        self.answer = None;
        self.shared.lock().turn_away(&self.shared, self.id, code, cause, retry_after);
    }

    fn reply(&self, responder: Responder, window: u32, answer: &Answer) -> Result<(), OpenError> {
        let gone = || OpenError::refused(Code::Cancelled, "the opener has left");
        let sealed = responder.answer(answer);
        let (seal, sealer, unsealer) =
            sealed.map_err(|error| OpenError::refused(Code::SealInvalid, error.to_string()))?;
        let mut state = self.shared.lock();
        let State { streams, out, .. } = &mut *state;
        let stream = streams.get_mut(&self.id).filter(|stream| stream.reset.is_none()).ok_or_else(gone)?;
        stream.sealer = Some(sealer);
        stream.unsealer = Some(unsealer);
        stream.send_credit = ::link::SendCredit::new(window);
        Opened { window_bytes: self.shared.welcome.window_bytes, seal: &seal }.write(self.id, out.frames());
        if matches!(answer, Answer::Failed { .. }) {
            stream.fin_sent = true;
            write_frame(out.frames(), Kind::Fin, self.id, |_| {});
        }
        state.flush(&self.shared);
        Ok(())
    }
}

impl Drop for IncomingOpen {
    fn drop(&mut self) {
        if self.answer.is_some() {
            self.shared.lock().turn_away(&self.shared, self.id, Code::Cancelled, "", None);
        }
    }
}

impl State {
    fn turn_away(
        &mut self,
        shared: &Shared,
        id: u32,
        code: Code,
        cause: &str,
        retry_after: Option<Duration>,
    ) {
        if self.streams.remove(&id).is_some_and(|stream| stream.reset.is_none()) {
            Refuse { code, cause: cause.into(), retry_after }.write(id, self.out.frames());
            self.flush(shared);
        }
    }

    /// An OPEN has come. What is wrong with it is told at once.
    pub(super) fn take_in(&mut self, shared: &Arc<Shared>, id: u32, open: &Open<'_>) {
        let refuse = |frames: &mut Vec<u8>, code: Code, cause: &str| {
            Refuse { code, cause: cause.into(), retry_after: None }.write(id, frames);
        };
        let Some(incoming) = &shared.incoming else {
            return refuse(self.out.frames(), Code::ProtocolError, "this client carries no streams");
        };
        let Ok(permit) = incoming.to.try_reserve() else {
            return refuse(self.out.frames(), Code::Limit, "too many opens wait here");
        };
        self.streams.insert(id, StreamState::new(shared, 0, shared.clock.now()));
        permit.send(SealedOpen {
            shared: Arc::clone(shared),
            id,
            opener: ClientId(open.opener.unwrap_or_default()),
            contract: ContractId(open.contract),
            deadline: Duration::from_millis(u64::from(open.deadline_ms)),
            window: open.window_bytes,
            seal: Some(open.seal.into()),
        });
    }
}

fn is_cancelled(shared: &Shared, id: u32) -> bool {
    let state = shared.lock();
    state.ending.is_some() || state.streams.get(&id).is_none_or(|stream| stream.reset.is_some())
}

fn parties(shared: &Shared, provider: ClientId, opener: ClientId, contract: ContractId) -> Parties {
    Parties { network: shared.who.network.0, provider: provider.0, opener: opener.0, contract: contract.0 }
}

fn seal_secret(shared: &Shared) -> Result<[u8; 32], OpenError> {
    let secret = shared.who.identity.seal_secret();
    secret
        .try_into()
        .map_err(|_| OpenError::refused(Code::SealInvalid, "this client has no key to seal with"))
}

const _: () = assert!(MAX_INCOMING > 0);
