//! A network's api in front of a private PostgreSQL, and whoever asks it.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::sync::Arc;
use std::time::Duration;

use api::Config;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use client::{Api, ApiError, Joining, Membership, MembershipError};
use drill::port::PortLease;
use drill::postgres::{ADMIN_USER, DATABASE, PrivatePostgres};
use drill::relay::Relay;
use store::catalogue::Writer;
use store::migrate::{Passwords, migrate};
use store::pool::{Pool, PoolOptions};
use store::{DatabaseConfig, Store};
use tls::{TlsSession, TlsStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use trust::api::{ErrorCode, GrantRequest};
use trust::{
    CertificateRole, Identity, JoinCode, JoinLink, NetworkId, RequestId, RequestProof, Role, RootKey,
    TokenKey,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const PASSWORD: &str = "a long enough password";

/// The api, its database behind a relay that can break, and the folder with its files.
pub(crate) struct House {
    pub(crate) network: NetworkId,
    pub(crate) config: Config,
    pub(crate) root: RootKey,
    pub(crate) relay: Relay,
    pub(crate) postgres: PrivatePostgres,
    pub(crate) folder: tempfile::TempDir,
    port: PortLease,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl House {
    /// A new network with an operator, up.
    pub(crate) async fn start() -> Self {
        let postgres = PrivatePostgres::start_default().unwrap();
        let direct = format!(
            "host={} port={} user={ADMIN_USER} dbname={DATABASE}",
            postgres.socket_dir().display(),
            postgres.port()
        );
        let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
        migrate(&direct.parse().unwrap(), Some(&passwords)).await.unwrap();
        let relay = Relay::start(postgres.tcp_address()).unwrap();
        let (root, token_key) = (RootKey::generate().unwrap(), TokenKey::generate().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let certificate = root.issue(CertificateRole::Api, &names, now_ms()).unwrap();
        let port = PortLease::take().unwrap();
        let config = Config {
            listen: port.address(),
            network: root.network(),
            certificate: write("api.crt", &certificate.chain_pem()),
            certificate_key: write("api.key", &certificate.key_pem()),
            token_key: write("token.key", &BASE64_URL_SAFE_NO_PAD.encode(token_key.seed())),
            token_keys: None,
            root_key: Some(write("root.key", &BASE64_URL_SAFE_NO_PAD.encode(root.seed()))),
            state_folder: Some(folder.path().to_owned()),
            offline_after_ms: 15_000,
            cache: Default::default(),
            database: DatabaseConfig {
                url: format!("postgresql://holdfast_api@{}/{DATABASE}", relay.address()),
                connections: 4,
                acquire_ms: 2_000,
                work_ms: 3_000,
                pooler_wait_ms: None,
            },
        };
        let network = root.network();
        let mut house = Self { network, config, root, relay, postgres, folder, port, running: None };
        let store = house.store(Writer::Api);
        api::ensure_account(&store, "operator", PASSWORD, true).await.unwrap();
        house.up().await;
        house
    }

    pub(crate) async fn up(&mut self) {
        self.begin();
        let begun = tokio::time::Instant::now();
        while self.get("/ready").await.status != 200 {
            assert!(begun.elapsed() < PATIENCE, "the api is not ready");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts the api, whether it will be ready or not.
    pub(crate) fn begin(&mut self) {
        let (stop, stopping) = oneshot::channel();
        let config = self.config.clone();
        let task = tokio::spawn(async move {
            api::run(config, async { drop(stopping.await) }).await.unwrap();
        });
        self.running = Some((stop, task));
    }

    pub(crate) async fn down(&mut self) {
        let (stop, task) = self.running.take().unwrap();
        drop(stop);
        timeout(PATIENCE, task).await.unwrap().unwrap();
    }

    /// The database as one of the roles sees it.
    pub(crate) fn store(&self, writer: Writer) -> Store {
        let path =
            format!("postgresql://{}@{}/{DATABASE}", writer.database_role(), self.postgres.tcp_address());
        Store::new(Pool::new(path.parse().unwrap(), PoolOptions::default()).unwrap(), self.network)
    }

    pub(crate) fn link(&self) -> JoinLink {
        JoinLink { host: "127.0.0.1".into(), port: self.port.number(), network: self.network }
    }

    pub(crate) fn api(&self) -> Api {
        Api::new(&self.link()).unwrap()
    }

    pub(crate) async fn code(&self, role: Role) -> JoinCode {
        let api = self.api();
        let session = api.sign_in("operator", PASSWORD).await.unwrap();
        session.join_code(role).await.unwrap().code.parse().unwrap()
    }

    /// A client of the operator, joined.
    pub(crate) async fn member(&self, role: Role, country: Option<&str>) -> Member {
        let folder = tempfile::tempdir().unwrap();
        let joining = Joining {
            link: self.link(),
            role,
            code: self.code(role).await,
            label: "test".into(),
            country: country.map(str::to_owned),
        };
        let membership = Membership::join(&folder.path().join("member"), &joining).await.unwrap();
        Member { membership, _folder: folder }
    }

    /// Gives the operator's account bytes.
    pub(crate) async fn grant(&self, bytes: u64) {
        let api = self.api();
        let session = api.sign_in("operator", PASSWORD).await.unwrap();
        let account = session.account().await.unwrap().account;
        let (starts_at_ms, expires_at_ms) = (now_ms() - 1_000, now_ms() + 86_400_000);
        let request =
            GrantRequest { request: RequestId::random().0, account, bytes, starts_at_ms, expires_at_ms };
        session.add_grant(&request).await.unwrap();
        session.add_grant(&request).await.unwrap();
    }

    /// Signs in, and gives the bearer token.
    pub(crate) async fn bearer(&self, account: &str, password: &str) -> String {
        let body = format!(r#"{{"account": "{account}", "password": "{password}"}}"#);
        self.ask(&Ask::post("/v1/session", &body)).await.body["bearer"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&Ask::get(path)).await
    }

    /// Sends a request as it stands, and reads the answer.
    pub(crate) async fn ask(&self, ask: &Ask) -> Answer {
        timeout(PATIENCE, self.ask_unbounded(ask)).await.expect("an answer")
    }

    async fn ask_unbounded(&self, ask: &Ask) -> Answer {
        let Ok(mut stream) = self.dial().await else { return Answer::default() };
        let mut text = format!("{} {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n", ask.method, ask.path);
        for (name, value) in &ask.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", ask.body.len()));
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&ask.body);
        let _ = stream.write_all(&bytes).await;
        let _ = stream.flush().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        Answer::parse(&answer)
    }

    /// A connection with TLS on it.
    pub(crate) async fn dial(&self) -> std::io::Result<TlsStream<TcpStream>> {
        self.handshake(TcpStream::connect(self.port.address()).await?).await
    }

    /// TLS on a connection.
    pub(crate) async fn handshake(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let tls = trust::client_config(self.network, CertificateRole::Api, &[b"http/1.1"]).unwrap();
        let session = TlsSession::connect(Arc::clone(&tls), "127.0.0.1".try_into().unwrap()).unwrap();
        let mut stream = TlsStream::new(stream, session);
        stream.handshake().await?;
        Ok(stream)
    }
}

/// A client that joined, and its folder.
pub(crate) struct Member {
    pub(crate) membership: Membership,
    _folder: tempfile::TempDir,
}

/// A request, byte for byte.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Ask {
    pub(crate) fn get(path: &str) -> Self {
        Self { method: "GET", path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn post(path: &str, body: &str) -> Self {
        Self { method: "POST", body: body.into(), ..Self::get(path) }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// With a token, and a proof by these keys at that time.
    pub(crate) fn signed(self, token: &str, identity: &Identity, network: NetworkId, time_ms: u64) -> Self {
        let proof = RequestProof::sign(identity, network, time_ms, self.method, &self.path, &self.body);
        self.header("authorization", format!("Holdfast {token}")).header("holdfast-proof", proof.to_string())
    }
}

/// Status and body.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: serde_json::Value,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Self { status, body: serde_json::from_str(body).unwrap_or_default() }
    }

    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// Status and code, for comparisons.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status, self.code())
    }
}

/// The code of a refusal.
pub(crate) fn refusal(error: &ApiError) -> ErrorCode {
    match error {
        ApiError::Refused(answer) => answer.code,
        other => panic!("{other}"),
    }
}

/// The code of a refusal that a membership met.
pub(crate) fn refusal_of_member(error: &MembershipError) -> ErrorCode {
    match error {
        MembershipError::Api(error) => refusal(error),
        other => panic!("{other}"),
    }
}

pub(crate) fn now_ms() -> u64 {
    clock::unix_ms()
}
