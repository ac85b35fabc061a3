//! One relay, an api, a proxy, and as many providers as a test wants.

use crate::control::{self, SECRET, Shared};
use crate::fixtures::Server;
use crate::relay_support::Network;
use crate::support::{Running, SOON, allow, joined};
use client::{Joining, Membership};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use trust::api::Candidate;
use trust::{JoinCode, PublicIdentity, Role};

pub(crate) struct House {
    pub(crate) network: Network,
    pub(crate) book: Shared,
    pub(crate) proxy: SocketAddr,
    target: SocketAddr,
    api: Server,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), proxy::ProxyError>>,
    _folder: tempfile::TempDir,
}

impl House {
    /// For customers who want to go to `target`.
    pub(crate) async fn start(target: SocketAddr, block_bytes: u64) -> Self {
        let network = Network::with(|config| {
            config.backoff_base_ms = 20;
            config.drain_spread_ms = 100;
        })
        .await;
        let book = Shared::default();
        book.lock().unwrap().block_bytes = block_bytes;
        let relay = network.address.to_string();
        let api = control::start(&network.root, &network.token_key, relay, Arc::clone(&book)).await;
        let folder = tempfile::tempdir().unwrap();
        let (link, code) = (api.link(), JoinCode::generate().unwrap());
        let joining = Joining { link, role: Role::Proxy, code, label: "proxy".into(), country: None };
        let membership = Membership::join(&folder.path().join("proxy"), &joining).await.unwrap();
        let proxy = free_port();
        let config = format!(
            "refresh_ms = 200\ndrain_s = 1\nallow_exact = ['{target}']\n[[listen]]\naddress = '{proxy}'\n"
        );
        let config = proxy::Config::parse(&config).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(proxy::run(config, Arc::new(membership), async {
            let _ = stopped.await;
        }));
        for _ in 0..500 {
            if TcpStream::connect(proxy).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self { network, book, proxy, target, api, stop: Some(stop), running, _folder: folder }
    }

    /// A provider that has joined, is connected, and is in the api's list.
    pub(crate) async fn provider(&self) -> Running {
        let provider = Running::start(joined(&self.api).await, &allow(&[self.target]));
        let status = provider.until("connected", |status| status.link.state == "connected").await;
        let candidate = Candidate {
            provider: provider.client().0,
            epoch: 0,
            identity: identity(provider.folder.state.path()).to_string(),
            relay: self.network.address.to_string(),
            country: Some("DE".into()),
            connected_at_ms: status.now_ms,
            seen_at_ms: status.now_ms,
        };
        self.book.lock().unwrap().candidates.push(candidate);
        tokio::time::sleep(Duration::from_millis(500)).await;
        provider
    }

    /// A provider of this relay, whom the api's list shows at the first one.
    pub(crate) async fn provider_at(&self, relay: &Network) -> crate::relay_support::Provider {
        let provider = relay.provider().await;
        let now_ms = clock::unix_ms();
        let candidate = Candidate {
            provider: provider.member.client.0,
            epoch: 0,
            identity: provider.member.identity.public().to_string(),
            relay: self.network.address.to_string(),
            country: Some("DE".into()),
            connected_at_ms: now_ms,
            seen_at_ms: now_ms,
        };
        self.book.lock().unwrap().candidates.push(candidate);
        self.network.until(|status| status.elsewhere == 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        provider
    }

    /// A second relay, with a link to the first.
    pub(crate) async fn another_relay(&self, public_address: &str) -> Network {
        let first = self.network.address.to_string();
        let adapt = |config: &mut relay::Config| {
            config.backoff_base_ms = 20;
            config.peers = vec![first];
            public_address.clone_into(&mut config.public_address);
        };
        let second = self.network.another(adapt).await;
        self.network.until(|status| status.relays == 1).await;
        second
    }

    /// A stream by SOCKS5, or the reply code that there is none.
    pub(crate) async fn stream(&self, name: &str) -> Result<TcpStream, u8> {
        let mut socket = TcpStream::connect(self.proxy).await.unwrap();
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        let SocketAddr::V4(target) = self.target else { panic!("{}", self.target) };
        let all = [
            &[5, 1, 2, 1, length(name)][..],
            name.as_bytes(),
            &[length(SECRET)],
            SECRET.as_bytes(),
            &[5, 1, 0, 1],
            &target.ip().octets(),
            &target.port().to_be_bytes(),
        ];
        socket.write_all(&all.concat()).await.unwrap();
        let mut answers = [0; 14];
        tokio::time::timeout(SOON, socket.read_exact(&mut answers)).await.expect("no answer").unwrap();
        assert_eq!(answers[..4], [5, 2, 1, 0]);
        if answers[5] == 0 { Ok(socket) } else { Err(answers[5]) }
    }

    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        tokio::time::timeout(SOON, &mut self.running).await.expect("it does not stop").unwrap().unwrap();
    }
}

/// There and back.
pub(crate) async fn works(socket: &mut TcpStream) {
    socket.write_all(b"ping").await.unwrap();
    let mut back = [0; 4];
    tokio::time::timeout(SOON, socket.read_exact(&mut back)).await.expect("nothing comes back").unwrap();
    assert_eq!(&back, b"ping");
}

/// Waits for something that comes by itself.
pub(crate) async fn soon(what: &str, is_there: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_there() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} did not come");
}

fn identity(folder: &Path) -> PublicIdentity {
    let secret = std::fs::read(folder.join("identity")).unwrap();
    *trust::Identity::from_secret(&secret).unwrap().public()
}

fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
