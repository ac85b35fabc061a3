//! Every way in which a relay can end a connection: the provider comes back, or stays away, as the protocol says.

use crate::fixtures::Server;
use crate::support::{Running, api, joined};
use client::Code;
use clock::unix_ms;
use link::message::{Hello, Open, Refuse, Welcome};
use link::seal::{Family, Host, Initiator, Parties, Request, Target};
use link::{Frame, Kind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tls::{TlsSession, TlsStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use trust::{CertificateRole, RootKey, TokenKey};

/// This relay grants no WebSockets.
const DIRECT: &str = "[link]\ntransport = \"direct\"\n";

/// What the relay does with a connection.
#[derive(Clone, Debug)]
enum Act {
    /// Closes it before TLS.
    Hang,
    /// Says before TLS to come back later.
    Wait(u32),
    /// Refuses the hello.
    Refuse(Code, Option<Duration>),
    /// Takes it in, then ends it with a code.
    WelcomeThenRefuse(Code),
    /// Takes it in, then breaks off.
    WelcomeThenBreak,
    /// Answers the hello with nonsense.
    Nonsense,
    /// Takes it in, and keeps it.
    Keep,
    /// Takes it in, hands it an OPEN with this first message, notes what it answers, and breaks off.
    Open(Vec<u8>, Arc<Mutex<Vec<Option<Code>>>>),
}

struct Script {
    api: Server,
    acts: Arc<Mutex<Vec<Act>>>,
    dials: Arc<AtomicUsize>,
}

impl Script {
    /// A relay that does these in turn, and then the last one again and again.
    async fn start(acts: Vec<Act>) -> Self {
        let root = RootKey::generate().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let certificate = root.issue(CertificateRole::Relay, &["127.0.0.1".to_owned()], unix_ms()).unwrap();
        let mut config = Arc::unwrap_or_clone(trust::server_config(&certificate, &[link::ALPN]).unwrap());
        config.key_log = tls::exporting();
        let config = Arc::new(config);
        let (acts, dials) = (Arc::new(Mutex::new(acts)), Arc::new(AtomicUsize::new(0)));
        let (script, count) = (Arc::clone(&acts), Arc::clone(&dials));
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let act = {
                    let mut script = script.lock().unwrap();
                    if script.len() > 1 { script.remove(0) } else { script[0].clone() }
                };
                let session = TlsSession::accept(Arc::clone(&config), true).unwrap();
                tokio::spawn(play(socket, session, act));
            }
        });
        let api = api(root, TokenKey::generate().unwrap(), vec![address]).await;
        Self { api, acts, dials }
    }

    fn dials(&self) -> usize {
        self.dials.load(Ordering::Relaxed)
    }
}

async fn play(mut socket: TcpStream, session: TlsSession, act: Act) {
    match act {
        Act::Hang => return,
        Act::Wait(ms) => {
            let mut text = Vec::new();
            link::write_wait(&mut text, ms);
            socket.write_all(&text).await.unwrap();
            // It is read before the end of the connection is.
            tokio::time::sleep(Duration::from_millis(100)).await;
            return;
        }
        _ => {}
    }
    let mut stream = TlsStream::new(socket, session);
    if stream.handshake().await.is_err() {
        return;
    }
    let mut received = Vec::new();
    let epoch = loop {
        if let Some(frame) = Frame::parse(&received).unwrap() {
            break Hello::decode(frame.payload).unwrap().epoch;
        }
        if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let mut out = Vec::new();
    let refuse =
        |out: &mut Vec<u8>, code, retry_after| Refuse { code, cause: "".into(), retry_after }.write(0, out);
    match act {
        Act::Refuse(code, retry_after) => refuse(&mut out, code, retry_after),
        Act::Nonsense => out.extend_from_slice(&[0xff; 64]),
        Act::WelcomeThenRefuse(code) => {
            welcome(epoch).write(&mut out);
            refuse(&mut out, code, None);
        }
        _ => welcome(epoch).write(&mut out),
    }
    let _ = stream.write_all(&out).await;
    let _ = stream.flush().await;
    if let Act::Open(seal, answers) = &act {
        let answer = open(&mut stream, seal).await;
        answers.lock().unwrap().push(answer);
    }
    if matches!(act, Act::Keep) {
        while stream.read_buf(&mut received).await.unwrap_or(0) > 0 {
            received.clear();
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Hands over an OPEN; the code of the refusal, or `None` if it was taken.
async fn open(stream: &mut TlsStream<TcpStream>, seal: &[u8]) -> Option<Code> {
    let open = Open {
        provider: None,
        opener: Some(uuid::Uuid::from_u128(8)),
        contract: uuid::Uuid::from_u128(9),
        deadline_ms: 5_000,
        hops: 1,
        window_bytes: 262_144,
        seal,
        forward: false,
    };
    let mut out = Vec::new();
    open.write(1, &mut out);
    stream.write_all(&out).await.unwrap();
    stream.flush().await.unwrap();
    let mut received = Vec::new();
    loop {
        match Frame::parse(&received).unwrap() {
            Some(frame) if frame.header.kind == Some(Kind::Refuse) => {
                return Some(Refuse::decode(frame.payload).unwrap().code);
            }
            Some(frame) if frame.header.kind == Some(Kind::Opened) => return None,
            Some(frame) => drop(received.drain(..frame.bytes())),
            None => assert!(stream.read_buf(&mut received).await.unwrap() > 0, "it has left"),
        }
    }
}

fn welcome(epoch: u64) -> Welcome {
    Welcome {
        version: 1,
        relay: uuid::Uuid::from_u128(7),
        epoch,
        time_ms: unix_ms(),
        ping_interval_ms: 60_000,
        ping_misses: 2,
        backoff_base_ms: 10,
        backoff_cap_ms: 50,
        stable_after_ms: 60_000,
        streams: 100,
        window_bytes: 262_144,
        greatest_window_bytes: 1_048_576,
        addresses: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_comes_back_after_every_end_that_is_not_final() {
    let mut acts = vec![Act::WelcomeThenBreak, Act::Hang, Act::Wait(50), Act::Nonsense];
    let passing: Vec<Code> = Code::ALL.iter().copied().filter(|code| !code.is_final()).collect();
    for code in &passing {
        acts.push(Act::WelcomeThenRefuse(*code));
        // An expired token is refreshed first, which this api does not do: it takes a moment, and comes back all the same.
        acts.push(Act::Refuse(*code, Some(Duration::from_millis(20))));
    }
    let expected = acts.len();
    acts.push(Act::Keep);
    let script = Script::start(acts).await;
    let provider = Running::start(joined(&script.api).await, DIRECT);
    let acts = Arc::clone(&script.acts);
    provider
        .until("through the script", move |status| {
            status.link.state == "connected" && acts.lock().unwrap().len() == 1
        })
        .await;
    assert_eq!(script.dials(), expected + 1, "one dial for each end");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stays_away_after_every_end_that_is_final() {
    for code in Code::ALL.iter().copied().filter(|code| code.is_final()) {
        for act in [Act::Refuse(code, None), Act::WelcomeThenRefuse(code)] {
            let script = Script::start(vec![act.clone(), Act::Keep]).await;
            let provider = Running::start(joined(&script.api).await, DIRECT);
            let held = provider.until("held", |status| status.held.is_some()).await;
            assert_eq!(held.held.unwrap().code, code.label());
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(script.dials(), 1, "{act:?}");
            let folder = provider.stop().await;
            let again = Running::start(folder, DIRECT);
            again.until("held", |status| status.link.state == "held").await;
            assert_eq!(script.dials(), 1, "a new start changes nothing: {act:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_the_relay_names_is_kept() {
    let script = Script::start(vec![Act::Refuse(Code::Busy, Some(Duration::from_secs(2))), Act::Keep]).await;
    let provider = Running::start(joined(&script.api).await, DIRECT);
    let waiting = provider.until("waiting", |status| status.link.state == "waiting").await;
    let wait_ms = waiting.link.next_dial_at_ms.unwrap().saturating_sub(waiting.now_ms);
    assert!((1_000..=2_400).contains(&wait_ms), "{wait_ms}");
    assert!(waiting.next().starts_with("dials again in"), "{waiting}");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(script.dials(), 1);
    provider.until("connected", |status| status.link.state == "connected").await;
}

/// A relay that keeps a sealed message and shows it again gains nothing by breaking the connection in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_sealed_message_is_refused_also_after_a_reconnect() {
    let answers: Arc<Mutex<Vec<Option<Code>>>> = Arc::default();
    let script = Script::start(vec![Act::WelcomeThenBreak]).await;
    let folder = joined(&script.api).await;
    let provider = Running::start(folder, "");
    let connected = provider.until("known", |status| status.link.connections > 0).await;
    let parties = Parties {
        network: script.api.network().0,
        provider: provider.client().0,
        opener: uuid::Uuid::from_u128(8),
        contract: uuid::Uuid::from_u128(9),
    };
    let request = Request {
        time_ms: unix_ms(),
        provider_epoch: connected.epoch.unwrap(),
        target: Target { host: Host::Name("127.0.0.1".to_owned()), port: 80 },
        family: Family::Any,
    };
    let (_, seal) = Initiator::new(&[7; 32], &provider.seal_key(), &parties, &request).unwrap();
    let act = Act::Open(seal, Arc::clone(&answers));
    *script.acts.lock().unwrap() = vec![act.clone(), act, Act::Keep];
    provider
        .until("through", |status| status.link.state == "connected" && answers.lock().unwrap().len() == 2)
        .await;
    assert_eq!(*answers.lock().unwrap(), [None, Some(Code::Replayed)]);
}
