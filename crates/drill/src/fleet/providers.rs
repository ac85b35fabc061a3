//! The providers of the bench: real links, which come back by the rules of the protocol.

use super::Seeds;
use super::part::{Standing, tell};
use ::clock::{Clock, unix_ms};
use client::{Identification, Link, LinkError, Opens};
use link::{Comeback, Pace};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use trust::{ClientClaims, ClientId, Identity, NetworkId, Role, RootKey, TokenKey};

const TELL: Duration = Duration::from_millis(50);
/// A connection that does not stand by then is given up: the relay's queue of them was full.
const DIAL_LIMIT: Duration = Duration::from_secs(10);
const TOKEN_LIFE_S: u64 = 7 * 24 * 3_600;
/// A provider's address is 127.16.0.1 and so on, 250 in each net of 256.
const FIRST_NET: usize = 16 * 256;
const HOSTS: usize = 250;

#[derive(Debug, Default)]
struct Counts {
    connected: AtomicUsize,
    dials: AtomicU64,
    causes: Mutex<BTreeMap<String, u64>>,
}

impl Counts {
    fn ended(&self, error: &LinkError) {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        *causes.entry(error.label().to_owned()).or_default() += 1;
    }
}

pub(super) async fn run(seeds: Seeds, address: SocketAddr, first: usize, count: usize) -> anyhow::Result<()> {
    let network = RootKey::from_seed(&seeds.root)?.network();
    let token_key = TokenKey::from_seed(&seeds.tokens)?;
    let counts = Arc::new(Counts::default());
    let mut fleet = Vec::with_capacity(count);
    for index in first..first + count {
        fleet.push((source(index)?, identification(network, &token_key)?));
    }
    for (from, who) in fleet {
        tokio::spawn(serve(from, address, who, Arc::clone(&counts)));
    }
    loop {
        tell(Standing {
            connected: counts.connected.load(Ordering::Relaxed),
            dials: counts.dials.load(Ordering::Relaxed),
            causes: counts.causes.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        })?;
        tokio::time::sleep(TELL).await;
    }
}

/// Where a provider dials from.
fn source(index: usize) -> anyhow::Result<Ipv4Addr> {
    let net = FIRST_NET + index / HOSTS;
    Ok(Ipv4Addr::new(
        127,
        u8::try_from(net / 256)?,
        u8::try_from(net % 256)?,
        u8::try_from(1 + index % HOSTS)?,
    ))
}

fn identification(network: NetworkId, token_key: &TokenKey) -> anyhow::Result<Identification> {
    let identity = Identity::generate()?;
    let (client, now_s) = (ClientId::random(), unix_ms() / 1_000);
    let claims = ClientClaims {
        network,
        client,
        role: Role::Provider,
        thumbprint: identity.public().thumbprint(),
        epoch: 0,
        issued_at_s: now_s,
        expires_at_s: now_s + TOKEN_LIFE_S,
    };
    Ok(Identification {
        network,
        client,
        role: Role::Provider,
        identity: Arc::new(identity),
        token: claims.sign(token_key)?,
        epoch: 1,
        software: "bench".into(),
    })
}

/// Dials for as long as the process runs.
async fn serve(from: Ipv4Addr, relay: SocketAddr, who: Identification, counts: Arc<Counts>) {
    let clock = Clock::start();
    let mut comeback = Comeback::new();
    loop {
        counts.dials.fetch_add(1, Ordering::Relaxed);
        let error = match dial(from, relay, who.clone()).await {
            Ok(link) => {
                comeback.set_pace(Pace::from(link.welcome()));
                comeback.connected(clock.now());
                counts.connected.fetch_add(1, Ordering::Relaxed);
                let error = link.ended().await;
                counts.connected.fetch_sub(1, Ordering::Relaxed);
                error
            }
            Err(error) => error,
        };
        counts.ended(&error);
        let wait = comeback.ended(error.retry_after(), fastrand::u64(..), clock.now());
        tokio::time::sleep(wait).await;
    }
}

async fn dial(from: Ipv4Addr, relay: SocketAddr, who: Identification) -> Result<Link, LinkError> {
    let socket = match tokio::time::timeout(DIAL_LIMIT, connect(from, relay)).await {
        Ok(connected) => {
            connected.map_err(|error| LinkError::Io { what: "connecting", error: error.into() })?
        }
        Err(_) => return Err(LinkError::Silent(DIAL_LIMIT)),
    };
    let (incoming, _opens) = Opens::channel(who.epoch);
    Link::over(socket, &relay.to_string(), who, Some(incoming)).await
}

async fn connect(from: Ipv4Addr, relay: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    socket.connect(relay).await
}
