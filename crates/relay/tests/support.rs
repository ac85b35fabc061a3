//! A network of one relay, whose clients are real.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a fixture of tests")]

use client::{
    Contract, Family, Host, Identification, Link, LinkError, OpenRequest, Opens, SealedOpen, Target,
    Transport, Ways,
};
use clock::unix_ms;
use relay::{Beat, Beaten, Config, Keys, Presence, RecordError, Records, Resources, Status, Stop, Usage};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use trust::{
    AccountId, CertificateRole, ClientClaims, ClientId, ContractClaims, ContractId, Identity, KeyRing,
    KeyState, NetworkId, RelayId, RevocationList, RingKey, Role, RootKey, TokenKey,
};

/// What a relay wrote down.
#[derive(Clone, Debug, Default)]
pub struct Written(pub Arc<Mutex<Book>>);

#[derive(Debug, Default)]
pub struct Book {
    pub presence: Vec<Presence>,
    pub usage: Vec<(u64, Usage)>,
    pub beats: Vec<Beat>,
    pub broken: bool,
    /// The relay has a record.
    pub known: bool,
    /// The relays that are named.
    pub relays: Vec<String>,
}

impl Written {
    fn with<T>(&self, work: impl FnOnce(&mut Book) -> T) -> Result<T, RecordError> {
        let mut book = self.0.lock().unwrap();
        if book.broken { Err("the database is gone".into()) } else { Ok(work(&mut book)) }
    }

    /// Bytes that were billed.
    pub fn billed(&self) -> u64 {
        self.0.lock().unwrap().usage.iter().map(|(_, usage)| usage.bytes).sum()
    }
}

impl Records for Written {
    async fn beat(&self, beat: Beat) -> Result<Beaten, RecordError> {
        self.with(|book| {
            book.beats.push(beat);
            if std::mem::replace(&mut book.known, true) { Beaten::Known } else { Beaten::New }
        })
    }

    async fn presence(&self, _epoch: u64, presence: &[Presence]) -> Result<(), RecordError> {
        self.with(|book| book.presence.extend_from_slice(presence))
    }

    async fn relays(&self) -> Result<Vec<String>, RecordError> {
        self.with(|book| book.relays.clone())
    }

    async fn usage(&self, epoch: u64, usage: &[Usage]) -> Result<(), RecordError> {
        self.with(|book| book.usage.extend(usage.iter().map(|&usage| (epoch, usage))))
    }
}

/// One relay of a network, and what the network's other parts need.
pub struct Network {
    pub root: Arc<RootKey>,
    pub token_key: Arc<TokenKey>,
    pub keys: watch::Sender<Arc<Keys>>,
    pub relay: RelayId,
    pub address: SocketAddr,
    pub written: Written,
    pub stop: watch::Sender<Stop>,
    pub status: watch::Receiver<Status>,
    pub running: JoinHandle<Result<(), relay::StartError>>,
    pub folder: Arc<tempfile::TempDir>,
    pub unknown_key: Arc<Notify>,
}

/// A network before its relays.
#[derive(Clone)]
struct Ground {
    root: Arc<RootKey>,
    token_key: Arc<TokenKey>,
    keys: watch::Sender<Arc<Keys>>,
}

fn keys(root: &RootKey, token_key: &TokenKey) -> Keys {
    let (network, now_s) = (root.network(), unix_ms() / 1_000);
    let ring_key = RingKey::new(*token_key.public_key(), KeyState::Signing);
    let ring = KeyRing::new(network, 1, now_s, vec![ring_key]).unwrap();
    Keys::new(network, ring, RevocationList::new(network, 1, now_s, Vec::new()).unwrap())
}

static EPOCH: AtomicU64 = AtomicU64::new(1);

/// An address that nobody listens at.
fn free() -> SocketAddr {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    probe.local_addr().unwrap()
}

pub fn next_epoch() -> u64 {
    EPOCH.fetch_add(1, Ordering::Relaxed)
}

impl Network {
    pub async fn start() -> Self {
        Self::with(|_| ()).await
    }

    pub async fn with(adapt: impl FnOnce(&mut Config)) -> Self {
        Self::recording(Written::default(), adapt).await
    }

    /// Why a relay with this configuration does not start.
    pub async fn try_with(adapt: impl FnOnce(&mut Config)) -> String {
        let network = Self::with(adapt).await;
        let ended = tokio::time::timeout(Duration::from_secs(10), network.running).await;
        ended.expect("it has started").unwrap().unwrap_err().to_string()
    }

    /// One that writes down where another has.
    pub async fn recording(written: Written, adapt: impl FnOnce(&mut Config)) -> Self {
        let root = RootKey::generate().unwrap();
        let token_key = TokenKey::generate().unwrap();
        let keys = watch::Sender::new(Arc::new(keys(&root, &token_key)));
        let ground = Ground { root: Arc::new(root), token_key: Arc::new(token_key), keys };
        Self::on(ground, RelayId::random(), Arc::new(tempfile::tempdir().unwrap()), free(), written, adapt)
            .await
    }

    /// One of a network whose keys are known, at an address.
    pub async fn seeded(
        root: RootKey,
        token_key: TokenKey,
        relay: RelayId,
        address: SocketAddr,
        adapt: impl FnOnce(&mut Config),
    ) -> Self {
        let keys = watch::Sender::new(Arc::new(keys(&root, &token_key)));
        let ground = Ground { root: Arc::new(root), token_key: Arc::new(token_key), keys };
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::on(ground, relay, folder, address, Written::default(), adapt).await
    }

    /// Another relay of the same network.
    pub async fn another(&self, adapt: impl FnOnce(&mut Config)) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::on(self.ground(), RelayId::random(), folder, free(), Written::default(), adapt).await
    }

    /// The next start of a relay that has ended.
    pub async fn again(self, adapt: impl FnOnce(&mut Config)) -> Self {
        let _ = self.running.await;
        let ground = Ground { root: self.root, token_key: self.token_key, keys: self.keys };
        Self::on(ground, self.relay, self.folder, self.address, self.written, adapt).await
    }

    fn ground(&self) -> Ground {
        Ground {
            root: Arc::clone(&self.root),
            token_key: Arc::clone(&self.token_key),
            keys: self.keys.clone(),
        }
    }

    async fn on(
        ground: Ground,
        relay: RelayId,
        folder: Arc<tempfile::TempDir>,
        address: SocketAddr,
        written: Written,
        adapt: impl FnOnce(&mut Config),
    ) -> Self {
        let Ground { root, token_key, keys } = ground;
        let names = [address.ip().to_string(), "localhost".to_owned()];
        let certificate = root.issue(CertificateRole::Relay, &names, unix_ms()).unwrap();
        let mut tls = Arc::unwrap_or_clone(trust::server_config(&certificate, link::RELAY_ALPN).unwrap());
        tls.key_log = tls::exporting();
        let mut config = Config {
            listen: address,
            state_folder: folder.path().join("relay"),
            usage_interval_ms: 50,
            contract_wait_ms: 100,
            offline_after_ms: 50,
            ..Config::default()
        };
        adapt(&mut config);
        let (status, status_receiver) = watch::channel(Status::default());
        let unknown_key = Arc::new(Notify::new());
        let resources = Resources {
            relay,
            tls: watch::channel(Arc::new(tls)).1,
            certificate: watch::channel(Arc::new(certificate)).1,
            keys: keys.subscribe(),
            unknown_key: Arc::clone(&unknown_key),
            records: written.clone(),
            status,
        };
        let (stop, stopped) = watch::channel(Stop::No);
        let running = tokio::spawn(relay::run(config, resources, stopped));
        // Told once it listens; one that does not start tells nothing. No connection is made, so that counts begin at 0.
        let _ = tokio::time::timeout(Duration::from_secs(10), status_receiver.clone().changed()).await;
        Self {
            root,
            token_key,
            keys,
            relay,
            address,
            written,
            stop,
            status: status_receiver,
            running,
            folder,
            unknown_key,
        }
    }

    pub fn network(&self) -> NetworkId {
        self.root.network()
    }

    pub fn member(&self, role: Role) -> Member {
        self.member_with(role, |_| ())
    }

    /// With other claims in its token.
    pub fn member_with(&self, role: Role, change: impl FnOnce(&mut ClientClaims)) -> Member {
        let identity = Arc::new(Identity::generate().unwrap());
        Member::with(self.network(), &self.token_key, role, identity, ClientId::random(), change)
    }

    /// From now on this client is revoked.
    pub fn revoke(&self, member: &Member) {
        let now_s = unix_ms() / 1_000;
        let revoked = trust::Revoked { client: member.client, before_s: now_s + 1 };
        let list = RevocationList::new(self.network(), 2, now_s, [revoked]).unwrap();
        let keys = Arc::clone(&self.keys.borrow());
        self.keys.send_replace(Arc::new(Keys { revocations: Arc::new(list), ..(*keys).clone() }));
    }

    pub fn contract(&self, opener: &Member, bytes: u64) -> Contract {
        self.contract_after(opener, bytes, None)
    }

    /// One that holds for so many seconds.
    pub fn contract_for(&self, opener: &Member, bytes: u64, seconds: u64) -> Contract {
        self.contract_with(opener, bytes, None, seconds)
    }

    pub fn contract_after(&self, opener: &Member, bytes: u64, follows: Option<ContractId>) -> Contract {
        self.contract_with(opener, bytes, follows, 3_600)
    }

    fn contract_with(
        &self,
        opener: &Member,
        bytes: u64,
        follows: Option<ContractId>,
        seconds: u64,
    ) -> Contract {
        opener.contract_with(&self.token_key, bytes, follows, seconds)
    }

    pub async fn connect_by(&self, member: &Member, ways: &Ways) -> Result<Link, LinkError> {
        Link::connect_by(&self.address.to_string(), member.who(), None, Arc::default(), ways).await
    }

    pub async fn connect(&self, member: &Member) -> Result<Link, LinkError> {
        Link::connect(&self.address.to_string(), member.who(), None).await
    }

    /// A provider that dials what it is asked for, without any policy.
    pub async fn provider(&self) -> Provider {
        let member = self.member(Role::Provider);
        self.provider_as(member).await
    }

    pub async fn provider_as(&self, member: Member) -> Provider {
        self.provider_by(member, &Ways::only(Transport::Direct)).await
    }

    pub async fn provider_by(&self, member: Member, ways: &Ways) -> Provider {
        let who = member.who();
        self.provider_who(member, who, ways).await
    }

    /// One that comes as this start.
    pub async fn provider_who(&self, member: Member, who: Identification, ways: &Ways) -> Provider {
        let (incoming, opens) = Opens::channel(who.epoch);
        let address = self.address.to_string();
        let connecting = Link::connect_by(&address, who, Some(incoming), Arc::default(), ways);
        let link = connecting.await.unwrap();
        let serving = tokio::spawn(serve(opens));
        Provider { member, link, serving }
    }

    pub async fn until(&self, what: impl Fn(&Status) -> bool) -> Status {
        let mut status = self.status.clone();
        let waited =
            tokio::time::timeout(Duration::from_secs(20), status.wait_for(|status| what(status))).await;
        waited.expect("the relay does not come to stand so").unwrap().clone()
    }
}

#[derive(Clone)]
pub struct Member {
    pub network: NetworkId,
    pub identity: Arc<Identity>,
    pub client: ClientId,
    pub role: Role,
    pub token: String,
    pub claims: ClientClaims,
}

impl Member {
    pub fn of(
        network: NetworkId,
        token_key: &TokenKey,
        role: Role,
        identity: Arc<Identity>,
        client: ClientId,
    ) -> Self {
        Self::with(network, token_key, role, identity, client, |_| ())
    }

    fn with(
        network: NetworkId,
        token_key: &TokenKey,
        role: Role,
        identity: Arc<Identity>,
        client: ClientId,
        change: impl FnOnce(&mut ClientClaims),
    ) -> Self {
        let now_s = unix_ms() / 1_000;
        let mut claims = ClientClaims {
            network,
            client,
            role,
            thumbprint: identity.public().thumbprint(),
            epoch: 0,
            issued_at_s: now_s,
            expires_at_s: now_s + 3_600,
        };
        change(&mut claims);
        let token = claims.sign(token_key).unwrap();
        Self { network, identity, client, role, token, claims }
    }

    pub fn contract(&self, token_key: &TokenKey, bytes: u64) -> Contract {
        self.contract_with(token_key, bytes, None, 3_600)
    }

    fn contract_with(
        &self,
        token_key: &TokenKey,
        bytes: u64,
        follows: Option<ContractId>,
        seconds: u64,
    ) -> Contract {
        let id = ContractId::random();
        let claims = ContractClaims {
            network: self.network,
            contract: id,
            payer: AccountId(uuid::Uuid::from_u128(1)),
            opener: self.client,
            bytes,
            expires_at_s: unix_ms() / 1_000 + seconds,
            offline: false,
        };
        Contract { id, text: claims.sign(token_key).unwrap().into(), follows }
    }

    pub fn who(&self) -> Identification {
        Identification {
            network: self.network,
            client: self.client,
            role: self.role,
            identity: Arc::clone(&self.identity),
            token: self.token.clone(),
            epoch: next_epoch(),
            software: "test 1".into(),
        }
    }
}

pub struct Provider {
    pub member: Member,
    pub link: Link,
    pub serving: JoinHandle<()>,
}

impl Provider {
    pub fn request(&self, contract: &Contract, target: SocketAddr) -> OpenRequest {
        OpenRequest {
            provider: self.member.client,
            provider_epoch: 0,
            provider_key: self.member.identity.public().seal_key(),
            target: Target { host: Host::Address(target.ip()), port: target.port() },
            family: Family::Any,
            contract: contract.clone(),
            deadline: Duration::from_secs(10),
            forward: false,
        }
    }
}

pub async fn serve(mut opens: mpsc::Receiver<SealedOpen>) {
    while let Some(open) = opens.recv().await {
        tokio::spawn(async move {
            let Some(open) = open.unseal() else { return };
            let Host::Address(address) = open.target().host else {
                return open.fail(client::Code::Policy, "names");
            };
            match TcpStream::connect((address, open.target().port)).await {
                Ok(socket) => {
                    let _ = socket.set_nodelay(true);
                    if let Ok(stream) = open.accept(address) {
                        stream.splice(socket, &[], client::SpliceLimits::default()).await;
                    }
                }
                Err(_) => open.fail(client::Code::TargetRefused, "nobody listens there"),
            }
        });
    }
}

/// A target that sends back what it gets.
pub async fn echo() -> SocketAddr {
    let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(echo_on(listener));
    address
}

/// A target that sends without end.
pub async fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move { while socket.write_all(&[7; 65_536]).await.is_ok() {} });
        }
    });
    target
}

pub async fn echo_on(listener: TcpListener) {
    loop {
        let Ok((mut socket, _)) = listener.accept().await else { return };
        tokio::spawn(async move {
            let (mut read, mut write) = socket.split();
            let _ = tokio::io::copy(&mut read, &mut write).await;
        });
    }
}
