//! What runs in a namespace of its own: a relay, a provider, an opener. Each says on its standard output what it sees.

use crate::support::{self, Member, Network};
use client::{Family, Host, Link, OpenError, OpenRequest, Opens, Phase, Target};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};
use trust::{ClientId, Identity, RelayId, Role, RootKey, TokenKey};

/// Where each provider's namespace has its target.
const TARGET: &str = "127.0.0.1:7777";
/// An open that is not answered by then has failed.
const DEADLINE: Duration = Duration::from_secs(4);
/// A relay that an opener was sent to must answer within this time; then its own one passes the stream on.
const AROUND: Duration = Duration::from_millis(1_500);
const OPEN_PAUSE: Duration = Duration::from_millis(250);

/// Runs this process's part, if it has one.
pub fn run() {
    let Ok(part) = std::env::var("HOLDFAST_PART") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let ends = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        let playing = async {
            match part.as_str() {
                "relay" => relay().await,
                "provider" => provider().await,
                "opener" => opener().await,
                other => panic!("no part {other}"),
            }
        };
        tokio::select! {
            // The test is over.
            _ = ends => {}
            () = playing => {}
        }
    });
}

fn say(line: &str) {
    println!("@ {line}");
}

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn keys() -> (RootKey, TokenKey) {
    let root = RootKey::from_seed(&unhex(&setting("ROOT"))).unwrap();
    (root, TokenKey::from_seed(&unhex(&setting("TOKENS"))).unwrap())
}

fn member(role: Role) -> Member {
    let (root, tokens) = keys();
    let identity = Arc::new(Identity::from_secret(&unhex(&setting("SECRET"))).unwrap());
    Member::of(root.network(), &tokens, role, identity, setting("CLIENT").parse().unwrap())
}

async fn relay() {
    let (root, tokens) = keys();
    let address: SocketAddr = setting("ADDRESS").parse().unwrap();
    let relay: RelayId = setting("RELAY").parse().unwrap();
    let network = Network::seeded(root, tokens, relay, address, |config| {
        config.peers = vec![setting("PEER")];
        config.peer_ping_interval_ms = 1_000;
    })
    .await;
    let mut status = network.status.clone();
    loop {
        let now = status.borrow_and_update().clone();
        say(&format!("relays={} providers={} elsewhere={}", now.relays, now.providers, now.elsewhere));
        status.changed().await.unwrap();
    }
}

async fn provider() {
    if let Ok(listener) = TcpListener::bind(TARGET).await {
        tokio::spawn(support::echo_on(listener));
    }
    let member = member(Role::Provider);
    let mut who = member.who();
    who.epoch = setting("EPOCH").parse().unwrap();
    let (opens, incoming) = Opens::channel(who.epoch);
    tokio::spawn(support::serve(incoming));
    loop {
        match Link::connect(&setting("ADDRESS"), who.clone(), Some(opens.clone())).await {
            Ok(link) => {
                say("up");
                let error = link.ended().await;
                say(&format!("ended {}", error.label()));
                if error.is_final() {
                    return std::future::pending().await;
                }
            }
            Err(error) if error.is_final() => {
                say(&format!("ended {}", error.label()));
                return std::future::pending().await;
            }
            Err(_) => {}
        }
        sleep(Duration::from_millis(300)).await;
    }
}

struct Opener {
    member: Member,
    own: String,
    links: tokio::sync::Mutex<Vec<(String, Link)>>,
}

/// Opens streams to each provider again and again, and holds one to each that it is told to hold.
async fn opener() {
    let (_, tokens) = keys();
    let member = member(Role::Proxy);
    let contract = member.contract(&tokens, 1 << 40);
    let opener = Arc::new(Opener { own: setting("ADDRESS"), member, links: tokio::sync::Mutex::default() });
    let mut tasks = Vec::new();
    for provider in setting("PROVIDERS").split(' ') {
        let [name, client, key] = provider.split(',').collect::<Vec<_>>()[..] else { panic!("{provider}") };
        let target: SocketAddr = TARGET.parse().unwrap();
        let request = OpenRequest {
            provider: client.parse::<ClientId>().unwrap(),
            provider_epoch: 0,
            provider_key: unhex(key).try_into().unwrap(),
            target: Target { host: Host::Address(target.ip()), port: target.port() },
            family: Family::Any,
            contract: contract.clone(),
            deadline: DEADLINE,
            forward: false,
        };
        tasks.push(tokio::spawn(hold(Arc::clone(&opener), name.to_owned(), request.clone())));
        tasks.push(tokio::spawn(open_again_and_again(Arc::clone(&opener), name.to_owned(), request)));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

async fn hold(opener: Arc<Opener>, name: String, request: OpenRequest) {
    let mut stream = loop {
        match opener.open(&request).await {
            Ok((stream, _)) => break stream,
            Err(_) => sleep(OPEN_PAUSE).await,
        }
    };
    say(&format!("held {name}"));
    let mut back = [0; 100];
    loop {
        let turn = async {
            stream.write_all(&[7; 100]).await?;
            stream.read_exact(&mut back).await
        };
        if let Err(error) = turn.await {
            return say(&format!("broken {name} {error}"));
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn open_again_and_again(opener: Arc<Opener>, name: String, request: OpenRequest) {
    loop {
        let began = Instant::now();
        match timeout(DEADLINE * 2, opener.open(&request)).await {
            Ok(Ok((_, way))) => say(&format!("opened {name} {way} {}", began.elapsed().as_millis())),
            Ok(Err(error)) => say(&format!("failed {name} {error}")),
            Err(_) => say(&format!("failed {name} in time")),
        }
        sleep(OPEN_PAUSE).await;
    }
}

impl Opener {
    async fn link(&self, address: &str) -> Result<Link, OpenError> {
        let mut links = self.links.lock().await;
        links.retain(|(_, link)| !matches!(*link.phase().borrow(), Phase::Ended(_)));
        if let Some((_, link)) = links.iter().find(|(to, _)| to == address) {
            return Ok(link.clone());
        }
        let link = Link::connect(address, self.member.who(), None).await?;
        links.push((address.to_owned(), link.clone()));
        Ok(link)
    }

    /// At its own relay, where that sends it, or around.
    async fn open(&self, request: &OpenRequest) -> Result<(client::Stream, &'static str), OpenError> {
        let own = self.link(&self.own).await?;
        let address = match own.open(request).await {
            Ok((stream, _)) => return Ok((stream, "here")),
            Err(OpenError::Moved { address, .. }) => address,
            Err(error) => return Err(error),
        };
        let there = async {
            let link = self.link(&address).await?;
            link.open(&OpenRequest { deadline: AROUND, ..request.clone() }).await
        };
        if let Ok(Ok((stream, _))) = timeout(AROUND, there).await {
            return Ok((stream, "there"));
        }
        let (stream, _) = own.open(&OpenRequest { forward: true, ..request.clone() }).await?;
        Ok((stream, "around"))
    }
}
