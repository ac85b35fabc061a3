//! A network: one relay, a small api that knows its keys, and providers that run in this process.

use crate::fixtures::{Answer, Seen, Server};
use crate::relay_support::Network;
use client::{Contract, Family, Host, Link, OpenError, OpenRequest, Stream, Target};
use clock::unix_ms;
use provider::control::{Command, ask};
use provider::join::{JoinOptions, join};
use provider::{Config, RunError, StateFolder, Status};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trust::api::{RegisterAnswer, RegisterRequest, TokenAnswer, TrustAnswer, path};
use trust::{
    ClientClaims, ClientId, JoinCode, KeyRing, KeyState, NetworkId, PublicIdentity, RevocationList, RingKey,
    Role, RootKey, Thumbprint, TokenKey,
};

/// Longer than anything takes here on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A network whose clients can join.
pub(crate) struct Home {
    pub(crate) network: Network,
    pub(crate) api: Server,
    pub(crate) link: Link,
    pub(crate) contract: Contract,
}

impl Home {
    pub(crate) async fn start() -> Self {
        let network = Network::with(|config| {
            config.backoff_base_ms = 20;
            config.backoff_cap_ms = 100;
            config.hold_refused_ms = 0;
        })
        .await;
        let root = RootKey::from_seed(network.root.seed()).unwrap();
        let api = api(
            root,
            TokenKey::from_seed(network.token_key.seed()).unwrap(),
            vec![network.address.to_string()],
        )
        .await;
        let opener = network.member(Role::Proxy);
        let link = network.connect(&opener).await.unwrap();
        let contract = network.contract(&opener, 1 << 40);
        Self { network, api, link, contract }
    }

    /// A provider that has joined and is connected.
    pub(crate) async fn provider(&self, config: &str) -> Running {
        let folder = self.joined().await;
        let running = Running::start(folder, config);
        running.until("connected", |status| status.link.state == "connected").await;
        running
    }

    /// A state folder that has joined.
    pub(crate) async fn joined(&self) -> Folder {
        joined(&self.api).await
    }

    /// Opens a stream through a provider.
    pub(crate) async fn open(&self, provider: &Running, target: &str) -> Result<Stream, OpenError> {
        self.open_at(provider.client(), provider.seal_key(), target).await
    }

    /// Opens a stream through the provider of that name and key.
    pub(crate) async fn open_at(
        &self,
        provider: ClientId,
        provider_key: [u8; 32],
        target: &str,
    ) -> Result<Stream, OpenError> {
        let (host, port) = target.rsplit_once(':').unwrap();
        let request = OpenRequest {
            provider,
            provider_epoch: 0,
            provider_key,
            target: Target { host: Host::Name(host.to_owned()), port: port.parse().unwrap() },
            family: Family::Any,
            contract: self.contract.clone(),
            deadline: Duration::from_secs(5),
            forward: false,
        };
        self.link.open(&request).await.map(|(stream, _)| stream)
    }
}

/// A state folder of a provider that has joined by this api.
pub(crate) async fn joined(api: &Server) -> Folder {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("state");
    let options = JoinOptions {
        link: api.link(),
        code: JoinCode::generate().unwrap(),
        label: "attic".to_owned(),
        country: Some("de".to_owned()),
    };
    join(&path, options).await.unwrap();
    Folder { state: StateFolder::open(&path).unwrap(), _base: Arc::new(base) }
}

/// A state folder that lives as long as somebody has it.
#[derive(Clone)]
pub(crate) struct Folder {
    pub(crate) state: StateFolder,
    _base: Arc<TempDir>,
}

impl Folder {
    /// The same, copied file by file: what a careless owner does.
    pub(crate) fn copy(&self) -> Self {
        let base = tempfile::tempdir().unwrap();
        let state = StateFolder::open(&base.path().join("state")).unwrap();
        for file in std::fs::read_dir(self.state.path()).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), state.path().join(file.file_name())).unwrap();
            }
        }
        Self { state, _base: Arc::new(base) }
    }
}

/// A provider that runs.
pub(crate) struct Running {
    pub(crate) folder: Folder,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub(crate) fn start(folder: Folder, config: &str) -> Self {
        let config: Config = toml::from_str(config).unwrap();
        let (stop, stopped) = oneshot::channel();
        let state = folder.state.clone();
        let task = tokio::spawn(provider::run(state, Some(config), async {
            // Whoever drops the other end wants it to stop, too.
            let _ = stopped.await;
        }));
        Self { folder, stop: Some(stop), task }
    }

    pub(crate) async fn status(&self) -> Status {
        self.tell(Command::Status).await
    }

    pub(crate) async fn tell(&self, command: Command) -> Status {
        for _ in 0..100 {
            match ask(&self.folder.state, command).await {
                Ok(status) => return status,
                Err(error) => {
                    assert!(!self.task.is_finished(), "it has ended: {error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        panic!("the provider does not answer");
    }

    /// Waits until it stands so.
    pub(crate) async fn until(&self, what: &str, stands: impl Fn(&Status) -> bool) -> Status {
        let mut last = self.status().await;
        let waited = timeout(SOON, async {
            while !stands(&last) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                last = self.status().await;
            }
        })
        .await;
        assert!(waited.is_ok(), "not {what}: {last:#?}");
        last
    }

    pub(crate) async fn stop(mut self) -> Folder {
        drop(self.stop.take());
        timeout(SOON, &mut self.task).await.expect("it does not stop").unwrap().unwrap();
        self.folder.clone()
    }

    fn record(&self) -> serde_json::Value {
        record(self.folder.state.path())
    }

    pub(crate) fn client(&self) -> ClientId {
        self.record()["member"]["client"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) fn token(&self) -> String {
        self.record()["member"]["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn seal_key(&self) -> [u8; 32] {
        let secret = std::fs::read(self.folder.state.path().join("identity")).unwrap();
        trust::Identity::from_secret(&secret).unwrap().public().seal_key()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn record(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.join("membership.json")).unwrap()).unwrap()
}

/// An api that registers everybody, as `key` of the network of `root`.
pub(crate) async fn api(root: RootKey, key: TokenKey, relays: Vec<String>) -> Server {
    let signer = RootKey::from_seed(root.seed()).unwrap();
    let known: Mutex<HashMap<Thumbprint, ClientId>> = Mutex::default();
    Server::start_under(root, move |seen| answer(seen, &signer, &key, &relays, &known)).await
}

fn answer(
    seen: &Seen,
    root: &RootKey,
    key: &TokenKey,
    relays: &[String],
    known: &Mutex<HashMap<Thumbprint, ClientId>>,
) -> Answer {
    let network = root.network();
    let trust = || {
        let ring = vec![RingKey::new(*key.public_key(), KeyState::Signing)];
        TrustAnswer {
            key_ring: KeyRing::new(network, 1, 0, ring).unwrap().sign(root).unwrap(),
            revocations: RevocationList::new(network, 1, 0, []).unwrap().sign(root).unwrap(),
        }
    };
    match seen.path.as_str() {
        path::CLIENTS => {
            let request: RegisterRequest = serde_json::from_slice(&seen.body).unwrap();
            let thumbprint = request.identity.parse::<PublicIdentity>().unwrap().thumbprint();
            let client = *known.lock().unwrap().entry(thumbprint).or_insert_with(ClientId::random);
            let token = token(network, key, client, thumbprint, relays);
            Answer::json(
                &serde_json::to_string(&RegisterAnswer { client: client.0, token, trust: trust() }).unwrap(),
            )
        }
        path::TRUST => Answer::json(&serde_json::to_string(&trust()).unwrap()),
        _ => Answer { status: 503, body: String::new() },
    }
}

fn token(
    network: NetworkId,
    key: &TokenKey,
    client: ClientId,
    thumbprint: Thumbprint,
    relays: &[String],
) -> TokenAnswer {
    let now_s = unix_ms() / 1_000;
    let claims = ClientClaims {
        network,
        client,
        role: Role::Provider,
        thumbprint,
        epoch: 0,
        issued_at_s: now_s,
        expires_at_s: now_s + 86_400,
    };
    TokenAnswer {
        token: claims.sign(key).unwrap(),
        expires_at_ms: (now_s + 86_400) * 1_000,
        refresh_after_ms: (now_s + 43_200) * 1_000,
        relays: relays.to_vec(),
        now_ms: unix_ms(),
    }
}

/// The configuration that lets a provider reach these.
pub(crate) fn allow(targets: &[SocketAddr]) -> String {
    let targets: Vec<String> = targets.iter().map(|target| format!("\"{target}\"")).collect();
    format!("[egress]\nallow_exact = [{}]\n", targets.join(", "))
}

/// The code of an open that was refused.
pub(crate) fn code(opened: Result<Stream, OpenError>) -> client::Code {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.code().unwrap_or_else(|| panic!("{error}")),
    }
}
