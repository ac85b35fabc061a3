//! An api in memory, an outgoing side whose providers can be broken, targets, and the proxy under test.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use client::Contract;
use client::api::CandidatesQuery;
use proxy::config::{Listen, Protocol};
use proxy::control::{Control, ControlError};
use proxy::direct::{Direct, DirectStream};
use proxy::exits::{ExitError, Exits, Wanted};
use proxy::{Config, Listeners};
use selection::Fault;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use trust::api::{
    Candidate, CandidatesAnswer, ContractAnswer, ContractRequest, ErrorAnswer, ErrorCode, Exit, ExitsRequest,
    Limits, PoolsAnswer, ProxyLogin,
};
use trust::{BlobHash, ContractId, Identity, KeyRing};
use uuid::Uuid;

use crate::fixtures::Pools;

pub(crate) const SECRET: &str = "correct-horse";

/// The api.
#[derive(Default)]
pub(crate) struct Api {
    pub(crate) state: Mutex<ApiState>,
    pub(crate) logins_asked: AtomicU64,
    pub(crate) contracts_asked: AtomicU64,
    pub(crate) pools: Mutex<Pools>,
}

#[derive(Default)]
pub(crate) struct ApiState {
    /// Nobody answers.
    pub(crate) silent: bool,
    pub(crate) logins: HashMap<String, ProxyLogin>,
    pub(crate) candidates: Vec<Candidate>,
    /// What a contract is refused with.
    pub(crate) refusal: Option<ErrorAnswer>,
    /// The size of the next block.
    pub(crate) block_bytes: u64,
    pub(crate) opened: Vec<(ContractRequest, Uuid)>,
    pub(crate) closed: Vec<Uuid>,
    pub(crate) exits: Vec<Exit>,
}

impl Api {
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut ApiState) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    fn answering(&self) -> Result<(), ControlError> {
        if self.with(|state| state.silent) {
            Err(ControlError::Silent("nobody there".into()))
        } else {
            Ok(())
        }
    }
}

pub(crate) fn refusal(code: ErrorCode, cause: &str) -> ErrorAnswer {
    ErrorAnswer { code, cause: cause.into(), retry_after_ms: Some(1_000) }
}

impl Control for Api {
    async fn login(&self, name: &str) -> Result<Option<ProxyLogin>, ControlError> {
        self.logins_asked.fetch_add(1, Ordering::Relaxed);
        self.answering()?;
        Ok(self.with(|state| state.logins.get(name).cloned()))
    }

    async fn contract(&self, request: &ContractRequest) -> Result<ContractAnswer, ControlError> {
        self.contracts_asked.fetch_add(1, Ordering::Relaxed);
        self.answering()?;
        self.with(|state| {
            if let Some(refusal) = &state.refusal {
                return Err(ControlError::Refused(refusal.clone()));
            }
            let contract = Uuid::now_v7();
            state.opened.push((request.clone(), contract));
            let (signed, bytes) = ("signed".into(), state.block_bytes);
            Ok(ContractAnswer { contract, signed, bytes, expires_at_ms: u64::MAX })
        })
    }

    async fn close_contract(&self, contract: ContractId) -> Result<(), ControlError> {
        self.answering()?;
        self.with(|state| state.closed.push(contract.0));
        Ok(())
    }

    async fn candidates(&self, query: CandidatesQuery<'_>) -> Result<CandidatesAnswer, ControlError> {
        self.answering()?;
        let fits = |candidate: &&Candidate| {
            let country = query.country.is_none_or(|wanted| {
                candidate.country.as_deref().is_some_and(|country| country.eq_ignore_ascii_case(wanted))
            });
            country && query.provider.is_none_or(|wanted| wanted.0 == candidate.provider)
        };
        let candidates: Vec<_> = self.with(|state| state.candidates.iter().filter(fits).cloned().collect());
        let count = candidates.len() as u64;
        Ok(CandidatesAnswer {
            candidates,
            connected: count,
            registered: count,
            ..CandidatesAnswer::default()
        })
    }

    async fn pools(&self, tag: Option<&str>) -> Result<Option<(PoolsAnswer, String)>, ControlError> {
        self.answering()?;
        self.pools.lock().unwrap().answer(tag)
    }

    async fn pool(&self, hash: BlobHash) -> Result<Vec<u8>, ControlError> {
        self.answering()?;
        self.pools.lock().unwrap().bytes(hash)
    }

    fn key_ring(&self) -> Arc<KeyRing> {
        self.pools.lock().unwrap().ring()
    }

    async fn renew_key_ring(&self) -> Result<(), ControlError> {
        Ok(())
    }

    async fn report_exits(&self, report: &ExitsRequest) -> Result<(), ControlError> {
        self.answering()?;
        self.with(|state| state.exits.extend(report.exits.iter().cloned()));
        Ok(())
    }
}

/// Providers that dial by themselves, unless they are broken.
#[derive(Default)]
pub(crate) struct Providers {
    pub(crate) broken: Mutex<HashMap<Uuid, ExitError>>,
    /// Those that never answer.
    pub(crate) hanging: Mutex<HashSet<Uuid>>,
    pub(crate) asked: Mutex<Vec<Uuid>>,
    pub(crate) shown: Mutex<Vec<Contract>>,
    pub(crate) under_way: AtomicU64,
}

impl Providers {
    pub(crate) fn asked(&self) -> Vec<Uuid> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn break_down(&self, provider: Uuid, error: ExitError) {
        self.broken.lock().unwrap().insert(provider, error);
    }
}

impl Exits for Providers {
    type Stream = DirectStream;

    async fn open(&self, wanted: Wanted<'_>) -> Result<DirectStream, ExitError> {
        struct Counted<'a>(&'a AtomicU64);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted(&self.under_way);
        let provider = wanted.provider.candidate.provider;
        self.asked.lock().unwrap().push(provider);
        let broken = self.broken.lock().unwrap().get(&provider).cloned();
        if let Some(error) = broken {
            return Err(error);
        }
        if self.hanging.lock().unwrap().contains(&provider) {
            tokio::time::sleep(wanted.patience).await;
            return Err(ExitError::Provider(Fault::TimedOut, "nothing came".into()));
        }
        Direct.open(wanted).await
    }

    fn show(&self, contract: &Contract) {
        self.shown.lock().unwrap().push(contract.clone());
    }
}

/// A proxy, running.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) api: Arc<Api>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) config: Config,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }
}

pub(crate) fn login(name: &str, limits: Limits, selection: &str) -> ProxyLogin {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, SECRET.as_bytes());
    ProxyLogin {
        name: name.into(),
        account: Uuid::now_v7(),
        secret_sha256: URL_SAFE_NO_PAD.encode(hash),
        limits,
        selection: selection.into(),
        disabled: false,
    }
}

pub(crate) fn candidate(id: u128, country: &str) -> Candidate {
    Candidate {
        provider: Uuid::from_u128(id),
        epoch: 1,
        identity: Identity::generate().unwrap().public().to_string(),
        relay: "127.0.0.1:1".into(),
        country: Some(country.into()),
        connected_at_ms: 1,
        seen_at_ms: 1,
    }
}

/// Two providers in Germany and one in Austria; `acme` may use them. Targets on loopback may be reached if they are named.
pub(crate) async fn start(targets: &[SocketAddr]) -> Running {
    start_with(targets, |_, _| {}).await
}

pub(crate) async fn start_with(
    targets: &[SocketAddr],
    change: impl FnOnce(&mut Config, &mut ApiState),
) -> Running {
    let mut config = Config {
        listen: vec![Listen {
            address: "127.0.0.1:0".parse().unwrap(),
            protocol: Protocol::Any,
            selection: String::new(),
            no_auth_account: None,
        }],
        allow_exact: targets.iter().map(|target| target.to_string().parse().unwrap()).collect(),
        refresh_ms: 200,
        drain_s: 1,
        ..Config::default()
    };
    let api = Arc::new(Api::default());
    api.with(|state| {
        state.logins.insert("acme".into(), login("acme", Limits::default(), ""));
        state.candidates = vec![candidate(1, "DE"), candidate(2, "DE"), candidate(3, "AT")];
        state.block_bytes = 1 << 30;
        change(&mut config, state);
    });
    start_on(config, api, None).await
}

/// On an api that is there already, with what an earlier run has left in a file.
pub(crate) async fn start_on(config: Config, api: Arc<Api>, last_known: Option<PathBuf>) -> Running {
    let providers = Arc::new(Providers::default());
    let listeners = Listeners::bind(&config).await.unwrap();
    let address = listeners.addresses()[0];
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let task = tokio::spawn(proxy::serve(
        config.clone(),
        listeners,
        Arc::clone(&providers),
        Arc::clone(&api),
        last_known,
        shutdown,
    ));
    Running { address, api, providers, config, stop: Some(stop), task }
}

/// A target that sends back what it gets, and half-closes as its peer does.
pub(crate) async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = socket.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    address
}

/// A port of loopback where nobody listens.
pub(crate) async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A target that answers each connection's first bytes with `answer` and closes; what it got is told.
pub(crate) async fn answering(answer: &'static [u8]) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let told = Arc::clone(&told);
            tokio::spawn(async move {
                let mut request = Vec::new();
                // A request with its body, if it has one of a known length.
                while !complete(&request) {
                    if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                told.lock().unwrap().push(request);
                let _ = socket.write_all(answer).await;
            });
        }
    });
    (address, seen)
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    if head.contains("chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    length.is_none_or(|length| body.len() >= length.parse::<usize>().unwrap())
}

pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// Everything until the end of the stream; a reset counts as the end.
pub(crate) async fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = async { while socket.read_buf(&mut bytes).await.unwrap_or(0) > 0 {} };
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("the connection stays open");
    bytes
}

/// Waits for something that comes by itself, and soon.
pub(crate) async fn soon(what: &str, is_there: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_there() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} did not come");
}
